#include "tools/dump_import.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/check.h"
#include "durable/rdb_collection.h"
#include "durable/rdb_payload.h"
#include "types/score.h"
#include "types/value_type.h"

namespace skep {
namespace {

// Ends the reading of a file; the importer knows why.
constexpr Status kEnded(Code::kAborted, "the import ended");

class Skipped final : public durable::RdbVisitor {
 public:
  Skipped(RdbImport& import, bool takes_collections)
      : import_(import), takes_collections_(takes_collections) {}

  Status OnString(uint64_t, std::string_view, std::string_view, uint64_t) override { return {}; }
  Status OnMembers(uint64_t db, std::string_view key, const durable::RdbMembers& members,
                   uint64_t) override {
    if (takes_collections_ || !members.is_last) return {};
    return OnSkipped(db, key, types::NameOf(members.kind));
  }
  Status OnSkipped(uint64_t db, std::string_view key, std::string_view type) override {
    ++import_.skipped;
    import_.on_skipped(db, key, type);
    return {};
  }

 private:
  RdbImport& import_;
  const bool takes_collections_;
};

class Storing final : public durable::RdbVisitor {
 public:
  explicit Storing(Importer& importer) : importer_(importer) {}

  Status OnString(uint64_t db, std::string_view key, std::string_view value,
                  uint64_t deadline_ms) override {
    const DumpItem item = {.key = key, .value = value, .deadline_ms = deadline_ms};
    return importer_.Select(db) && importer_.Set(item) ? Status() : kEnded;
  }
  Status OnMembers(uint64_t db, std::string_view key, const durable::RdbMembers& members,
                   uint64_t deadline_ms) override {
    if (!importer_.takes_collections()) return {};
    return importer_.Select(db) && importer_.Add(key, members, deadline_ms) ? Status() : kEnded;
  }
  Status OnSkipped(uint64_t, std::string_view, std::string_view) override { return {}; }

 private:
  Importer& importer_;
};

// The command that adds members to a collection.
std::string_view AddingCommand(uint8_t kind) {
  switch (kind) {
    case types::kHash:
      return "HSET";
    case types::kSet:
      return "SADD";
    case types::kList:
      return "RPUSH";
    default:
      return "ZADD";
  }
}

}  // namespace

bool Importer::Select(uint64_t db) { return UseDatabase(db_.value_or(db)); }

bool Importer::UseDatabase(uint64_t db) {
  if (selected_ == db) return true;
  if (!Finish()) return false;
  const std::string why = pipeline_.Select(db);
  if (why.empty()) {
    selected_ = db;
    return true;
  }
  problem_ = fmt::format("database {}: {}", db, why);
  return false;
}

bool Importer::Set(std::span<const std::string_view> args) {
  if (!selected_ && !Select(0)) return false;
  return Send(args, args[1], true);
}

bool Importer::Send(std::span<const std::string_view> args, std::string_view key, bool is_last) {
  are_last_.push_back(is_last);
  return pipeline_.Send(args, std::string(key)) || NoteBroken();
}

// The first piece replaces what the key has, and the others are added. A deadline that passes
// meanwhile takes the pieces before it with it, so the last command gives it once more.
bool Importer::Add(std::string_view key, const durable::RdbMembers& members, uint64_t deadline_ms) {
  const std::string deadline = std::to_string(deadline_ms);
  if (members.is_first) {
    const auto payload = durable::DumpCollection(members.kind, members.value);
    SKEP_CHECK(payload);
    return Send(
        std::to_array<std::string_view>({"RESTORE", key, deadline, *payload, "REPLACE", "ABSTTL"}),
        key, members.is_last);
  }
  std::vector<std::string_view> args = {AddingCommand(members.kind), key};
  std::deque<std::string> scores;
  bool is_sent = true;
  durable::ForEachMember(members.kind, members.value, [&](const durable::RdbMember& member) {
    if (member.deadline_ms != 0) {
      const std::string until = std::to_string(member.deadline_ms);
      is_sent =
          is_sent && Send(std::to_array<std::string_view>({"HSETEX", key, "PXAT", until, "FIELDS",
                                                           "1", member.member, member.value}),
                          key, false);
      return;
    }
    if (members.kind == types::kSortedSet) {
      args.push_back(scores.emplace_back(types::ScoreText(member.score)));
    }
    args.push_back(member.member);
    if (members.kind == types::kHash) args.push_back(member.value);
  });
  const bool has_deadline = deadline_ms != 0;
  if (!is_sent) return false;
  // A piece whose fields all have deadlines ends with a command that changes nothing.
  if (args.size() == 2) args = {"HLEN", key};
  if (!Send(args, key, members.is_last && !has_deadline)) return false;
  return !members.is_last || !has_deadline ||
         Send(std::to_array<std::string_view>({"PEXPIREAT", key, deadline}), key, true);
}

bool Importer::Set(const DumpItem& item) {
  if (!selected_ && !Select(0)) return false;
  are_last_.push_back(true);
  return pipeline_.Set(item, std::string(item.key)) || NoteBroken();
}

bool Importer::Finish() { return pipeline_.Finish() || NoteBroken(); }

bool Importer::NoteBroken() {
  problem_ = fmt::format("{}; the last {} keys may or may not be stored",
                         pipeline_.status().ToString(), pipeline_.unanswered());
  return false;
}

void Importer::TakeReply(std::string_view key, const RespReply& reply) {
  const bool is_last = are_last_.front();
  are_last_.pop_front();
  if (reply.is_error() || reply.is_null()) {
    ++refused_;
    on_refused_(key, reply.is_null() ? "its condition does not hold" : reply.text);
  } else if (is_last) {
    ++stored_;
  }
}

std::string ImportRdb(FileSystem& files, const std::string& path, Importer& importer,
                      RdbImport* import) {
  Skipped skipped(*import, importer.takes_collections());
  const auto looked = ReadRdb(files, path, skipped);
  if (!looked) return fmt::format("{}: {}", path, looked.error().ToString());
  import->skipped += looked->functions;
  if (import->is_strict && import->skipped > 0) {
    return fmt::format("{}: {} keys or libraries cannot be stored: nothing was imported", path,
                       import->skipped);
  }
  Storing storing(importer);
  const auto stored = ReadRdb(files, path, storing);
  if (stored || !importer.problem().empty()) return {};
  return fmt::format("{}: {}", path, stored.error().ToString());
}

}  // namespace skep
