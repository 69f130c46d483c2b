#include "tools/dump_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/decimal.h"
#include "tools/escape.h"
#include "wire/resp_decoder.h"
#include "wire/resp_reply.h"

namespace skep {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kReadBytes = 256 * 1024;

void AddBytes(Json& json, const std::string& name, std::string_view bytes) {
  if (IsUtf8(bytes)) {
    json[name] = bytes;
  } else {
    json[name + "_base64"] = ToBase64(bytes);
  }
}

// The fields of a line, as far as they were seen.
struct Line {
  std::optional<std::string> key;
  std::optional<std::string> value;
  uint64_t deadline_ms = 0;
};

DumpProblem TakeBytes(const Json& json, bool is_base64, std::optional<std::string>* to) {
  if (*to) return "twice";
  if (!json.is_string()) return "not a string";
  const std::string& text = json.get_ref<const std::string&>();
  to->emplace(text);
  if (is_base64 && !FromBase64(text, &**to)) return "not base64";
  return {};
}

DumpProblem TakeField(const std::string& name, const Json& json, Line* line) {
  if (name == "key" || name == "key_base64") {
    return TakeBytes(json, name == "key_base64", &line->key);
  }
  if (name == "value" || name == "value_base64") {
    return TakeBytes(json, name == "value_base64", &line->value);
  }
  if (name != "deadline_ms") return "not known";
  if (!json.is_number_unsigned()) return "not a whole number";
  line->deadline_ms = json.get<uint64_t>();
  return {};
}

DumpProblem ParseLine(std::string_view text, Line* line) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return "not JSON";
  if (!json.is_object()) return "not an object";
  for (const auto& [name, field] : json.items()) {
    const DumpProblem problem = TakeField(name, field, line);
    if (!problem.empty()) return fmt::format("{}: {}", Quoted(name), problem);
  }
  if (!line->key) return "no key";
  if (!line->value) return "no value";
  return {};
}

DumpProblem TakeCommand(std::span<const std::string_view> args, const DumpSink& sink,
                        bool* goes_on) {
  if (EqualsIgnoringCase(args[0], "set") && args.size() >= 3) {
    *goes_on = sink.on_set(args);
    return {};
  }
  if (EqualsIgnoringCase(args[0], "select") && args.size() == 2) {
    const auto db = ParseUint64(args[1]);
    if (!db) return "not a number of a database";
    *goes_on = sink.on_select(*db);
    return {};
  }
  return fmt::format("{} with {} arguments is neither SELECT nor SET",
                     Quoted(args[0].substr(0, 32)), args.size() - 1);
}

}  // namespace

void AppendResp(const DumpItem& item, std::string* out) {
  if (item.deadline_ms == 0) {
    AppendCommand(*out, {"SET", item.key, item.value});
  } else {
    AppendCommand(*out,
                  {"SET", item.key, item.value, "PXAT", fmt::format_int(item.deadline_ms).c_str()});
  }
}

void AppendJsonl(const DumpItem& item, std::string* out) {
  Json json;
  AddBytes(json, "key", item.key);
  AddBytes(json, "value", item.value);
  if (item.deadline_ms != 0) json["deadline_ms"] = item.deadline_ms;
  *out += json.dump();
  *out += '\n';
}

DumpProblem ReadCommands(const DumpSource& source,
                         const std::function<DumpProblem(std::span<const std::string_view> args,
                                                         bool* goes_on)>& on_command) {
  RespDecoder decoder;
  std::vector<std::string_view> args;
  std::string input;
  size_t begin = 0;
  uint64_t number = 1;
  const auto at = [&](std::string_view problem) {
    return fmt::format("command {}: {}", number, problem);
  };
  for (bool goes_on = true; goes_on;) {
    switch (decoder.Next(std::string_view(input).substr(begin), RespLimits(), args)) {
      case RespDecoder::Event::kCommand:
        begin += decoder.consumed();
        if (args.empty()) break;
        if (const DumpProblem p = on_command(args, &goes_on); !p.empty()) return at(p);
        ++number;
        break;
      case RespDecoder::Event::kError:
        return at(decoder.error());
      case RespDecoder::Event::kNeedMore:
        input.erase(0, begin);
        begin = 0;
        if (source(&input, std::max(kReadBytes, decoder.wanted()))) break;
        return input.empty() ? DumpProblem() : at("the input ends in it");
    }
  }
  return {};
}

DumpProblem ReadLines(
    const DumpSource& source,
    const std::function<DumpProblem(std::string_view line, bool* goes_on)>& on_line) {
  std::string input;
  size_t begin = 0;
  size_t searched = 0;
  bool is_end = false;
  bool goes_on = true;
  for (uint64_t number = 1; goes_on; ++number) {
    size_t end = 0;
    while ((end = input.find('\n', searched)) == input.npos && !is_end) {
      input.erase(0, std::exchange(begin, 0));
      searched = input.size();
      is_end = !source(&input, kReadBytes);
    }
    if (begin == input.size()) return {};
    end = std::min(end, input.size());
    const std::string_view line = std::string_view(input).substr(begin, end - begin);
    begin = searched = std::min(end + 1, input.size());
    const DumpProblem problem = on_line(line, &goes_on);
    if (!problem.empty()) return fmt::format("line {}: {}", number, problem);
  }
  return {};
}

DumpProblem ReadResp(const DumpSource& source, const DumpSink& sink) {
  return ReadCommands(source, [&](std::span<const std::string_view> args, bool* goes_on) {
    return TakeCommand(args, sink, goes_on);
  });
}

DumpProblem ReadJsonl(const DumpSource& source,
                      const std::function<bool(const DumpItem& item)>& on_item) {
  return ReadLines(source, [&](std::string_view text, bool* goes_on) -> DumpProblem {
    if (text.find_first_not_of(" \t\r") == text.npos) return {};
    Line line;
    if (DumpProblem problem = ParseLine(text, &line); !problem.empty()) return problem;
    *goes_on = on_item({.key = *line.key, .value = *line.value, .deadline_ms = line.deadline_ms});
    return {};
  });
}

}  // namespace skep
