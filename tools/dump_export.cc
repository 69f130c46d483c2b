#include "tools/dump_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/decimal.h"
#include "tools/dump_writer.h"
#include "tools/escape.h"

namespace skep {
namespace {

using Type = RespReply::Type;

constexpr const char* kNoRangesAnswer = "the server's answer is not one of KSCAN";
constexpr const char* kNoScanAnswer = "the server's answer is not one of SCAN";

class Exporter {
 public:
  Exporter(ServerClient& client, const ExportOptions& options, const DumpTarget& target,
           ExportSummary* summary)
      : client_(client), options_(options), summary_(*summary), writer_(options, target, summary) {}

  std::string Run() {
    const std::string db = std::to_string(options_.db);
    if (!Call({"SELECT", db})) return problem_;
    const bool is_done = BeginRange() ? ReadRange() : problem_.empty() && ReadAll();
    if (is_done && writer_.Flush()) return {};
    return problem_;
  }

 private:
  bool FailWith(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  // Receives a reply into reply_. Returns false on failure; problem_ says why.
  bool Receive() {
    auto reply = client_.Receive();
    if (!reply) return FailWith(reply.error().ToString());
    reply_ = std::move(*reply);
    return true;
  }
  bool Call(std::initializer_list<std::string_view> args) {
    client_.Send(args);
    return Receive() && (!reply_.is_error() || FailWith(reply_.text));
  }

  // ---- At one version ----

  // Receives the first chunk into reply_. Returns false without a problem if the keyspace has no
  // order, or the server no ranges.
  bool BeginRange() {
    const std::string min = options_.from.empty() ? "-" : "[" + options_.from;
    const std::string max = options_.to ? "(" + *options_.to : "+";
    std::vector<std::string_view> args = {"KSCAN", min, max};
    if (options_.prefix) args = {"KSCAN", "PREFIX", *options_.prefix};
    args.insert(args.end(), {"COUNT", "1000", "WITHVALUES", "WITHDEADLINES"});
    client_.Send(args);
    if (!Receive()) return false;
    if (!reply_.is_error()) return true;
    const bool has_no_ranges = reply_.text == "ERR this engine has no order" ||
                               reply_.text.starts_with("ERR unknown command");
    return has_no_ranges ? false : FailWith(reply_.text);
  }

  bool ReadRange() {
    for (bool is_first = true;; is_first = false) {
      if (reply_.is_error()) return FailWith(reply_.text);
      if (reply_.elements.size() != 2 || reply_.elements[1].elements.size() % 3 != 0) {
        return FailWith(kNoRangesAnswer);
      }
      const RespReply chunk = std::move(reply_);
      const std::string& token = chunk.elements[0].text;
      // While this chunk is written to the target, the server reads the next one.
      if (token != "0") client_.Send({"KSCAN", "NEXT", token});
      const auto& fields = chunk.elements[1].elements;
      summary_.is_one_version = is_first;
      for (size_t i = 0; i < fields.size(); i += 3) {
        if (fields[i + 1].is_null()) {
          ++summary_.skipped;
          continue;
        }
        const int64_t deadline_ms = fields[i + 2].integer;
        const DumpItem item = {
            .key = fields[i].text,
            .value = fields[i + 1].text,
            .deadline_ms = static_cast<uint64_t>(std::max<int64_t>(deadline_ms, 0))};
        if (!writer_.Write(item)) return false;
      }
      if (token == "0") return is_first || LookForVersions();
      if (!Receive()) return false;
    }
  }

  // Finds out whether chunks of the database are of one version, if the server says so.
  bool LookForVersions() {
    if (!Call({"INFO", "keyspace"})) return false;
    const std::string_view text = reply_.text;
    const size_t line = text.find(fmt::format("keyspace{}:", options_.db));
    if (line == text.npos) return true;
    const std::string_view fields = text.substr(line, text.find('\r', line) - line);
    summary_.is_one_version = fields.ends_with(",versions=many");
    return true;
  }

  // ---- Key by key ----

  bool ReadAll() {
    client_.Send({"SCAN", "0", "COUNT", "100"});
    while (true) {
      if (!Receive()) return false;
      if (reply_.is_error()) return FailWith(reply_.text);
      if (reply_.elements.size() != 2) return FailWith(kNoScanAnswer);
      const RespReply chunk = std::move(reply_);
      for (const RespReply& key : chunk.elements[1].elements) {
        if (writer_.IsWanted(key.text)) SendKey(key.text);
      }
      const std::string& cursor = chunk.elements[0].text;
      if (cursor != "0") client_.Send({"SCAN", cursor, "COUNT", "100"});
      for (const RespReply& key : chunk.elements[1].elements) {
        if (writer_.IsWanted(key.text) && !ReceiveKey(key.text)) return false;
      }
      if (cursor == "0") return true;
    }
  }

  // Value and deadline are read at one instant.
  void SendKey(std::string_view key) {
    client_.Send({"MULTI"});
    client_.Send({"GET", key});
    client_.Send({"PEXPIRETIME", key});
    client_.Send({"EXEC"});
  }
  bool ReceiveKey(std::string_view key) {
    for (int queued = 0; queued < 3; ++queued) {
      if (!Receive()) return false;
      if (reply_.is_error()) return FailWith(fmt::format("key {}: {}", Quoted(key), reply_.text));
    }
    if (!Receive()) return false;
    if (reply_.elements.size() != 2) {
      return FailWith(fmt::format("key {}: {}", Quoted(key), reply_.text));
    }
    const RespReply& value = reply_.elements[0];
    if (value.is_null()) return true;  // the key is gone
    if (value.is_error() && value.text.starts_with("WRONGTYPE")) {
      ++summary_.skipped;
      return true;
    }
    if (value.is_error()) return FailWith(fmt::format("key {}: {}", Quoted(key), value.text));
    const int64_t deadline_ms = std::max<int64_t>(reply_.elements[1].integer, 0);
    return writer_.Write(
        {.key = key, .value = value.text, .deadline_ms = static_cast<uint64_t>(deadline_ms)});
  }

  ServerClient& client_;
  const ExportOptions& options_;
  ExportSummary& summary_;
  DumpWriter writer_;
  RespReply reply_;
  std::string problem_;
};

}  // namespace

std::string Export(ServerClient& client, const ExportOptions& options, const DumpTarget& target,
                   ExportSummary* summary) {
  return Exporter(client, options, target, summary).Run();
}

}  // namespace skep
