#include "durable/directory_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "durable/directory.h"
#include "durable/directory_engines.h"
#include "durable/log_format.h"
#include "durable/snapshot_salvage.h"

namespace skep::durable {
namespace {

Result<uint64_t> BytesOfFile(FileSystem& files, const std::string& path) {
  const auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file) return Fail(file.error());
  return (*file)->Size();
}

class RdbCheckVisitor final : public RdbVisitor {
 public:
  RdbCheckVisitor(RdbSummary& summary, CheckVisitor* visitor)
      : summary_(summary), visitor_(visitor) {}

  Status OnString(uint64_t db, std::string_view key, std::string_view value,
                  uint64_t deadline_ms) override {
    ++summary_.strings;
    if (visitor_ != nullptr) {
      visitor_->OnItem(db, {.key = key, .value = value, .deadline_ms = deadline_ms});
    }
    return {};
  }
  Status OnMembers(uint64_t, std::string_view, const RdbMembers& members, uint64_t) override {
    if (members.is_last) ++summary_.collections;
    return {};
  }
  Status OnSkipped(uint64_t, std::string_view, std::string_view) override {
    ++summary_.skipped;
    return {};
  }

 private:
  RdbSummary& summary_;
  CheckVisitor* const visitor_;
};

class DirectoryChecker {
 public:
  DirectoryChecker(FileSystem& files, const std::string& directory, CheckVisitor* visitor,
                   std::string* problem)
      : files_(files), visitor_(visitor), problem_(*problem) {
    found_.directory = directory;
  }

  Result<DirectoryCheck> Run() {
    const auto names = files_.List(found_.directory);
    if (!names) return Failed(found_.directory, names.error());
    const bool is_store = std::ranges::any_of(*names, [](const std::string& name) {
      return name == kKeyspaceFile || PositionOfSegment(name) || PositionOfSnapshot(name);
    });
    if (!is_store) {
      return Failed(found_.directory, {Code::kInvalidArgument, "nothing of a store is here"});
    }
    const auto lock = LockDirectory(files_, found_.directory, &problem_);
    if (!lock) return Fail(lock.error());
    for (const std::string& name : *names) {
      if (name.ends_with(kDamagedSuffix)) found_.put_aside.push_back(PathOf(name));
    }
    Status s = CheckKeyspaces();
    if (s.ok()) s = CheckSnapshots(*names);
    if (s.ok()) s = CheckTheLog();
    if (!s.ok()) return Fail(s);
    return std::move(found_);
  }

 private:
  std::string PathOf(const std::string& name) const { return found_.directory + "/" + name; }
  std::unexpected<Status> Failed(const std::string& file, Status status) {
    problem_ = fmt::format("{}: {}", file, status.ToString());
    return Fail(status);
  }

  Status CheckKeyspaces() {
    const std::string path = PathOf(kKeyspaceFile);
    const DirectoryEngines engines = FindEngines(files_, found_.directory);
    const Status& status = engines.list_status;
    if (!status.ok() && status.code() != Code::kCorrupt) return Failed(path, status).error();
    found_.keyspaces = engines.all();
    if (status.ok() && !engines.Contradiction()) return {};
    const auto bytes = BytesOfFile(files_, path);
    if (!bytes) return Failed(path, bytes.error()).error();
    found_.damage.push_back({.file = path,
                             .offset = 0,
                             .bytes = *bytes,
                             .what = status.ok() ? kContradictoryList : kDamagedList});
    return {};
  }

  Status CheckSnapshots(const std::vector<std::string>& names) {
    for (const std::string& name : names) {  // they are sorted, so the newest is the last
      const auto position = PositionOfSnapshot(name);
      if (!position) continue;
      auto snapshot = CheckSnapshot(files_, PathOf(name), visitor_);
      if (!snapshot) return Failed(PathOf(name), snapshot.error()).error();
      found_.snapshots.push_back(std::move(*snapshot));
      const auto& keyspaces = found_.snapshots.back().keyspaces;
      needed_ = keyspaces ? PositionIn(*keyspaces).value_or(*position) : *position;
    }
    for (const SnapshotCheck& snapshot : found_.snapshots) {
      auto& to = &snapshot == &found_.snapshots.back() ? found_.damage : found_.not_needed;
      to.insert(to.end(), snapshot.damage.begin(), snapshot.damage.end());
    }
    return {};
  }

  Status CheckTheLog() {
    const auto visit = [this](const LoggedChange& change) { visitor_->OnChange(change); };
    std::string file;
    auto log = CheckLog(files_, found_.directory, needed_,
                        visitor_ == nullptr ? ChangeVisit() : visit, &file);
    if (!log) return Failed(file, log.error()).error();
    found_.log = std::move(*log);
    const LogCheck& is = found_.log;
    found_.damage.insert(found_.damage.end(), is.damage.begin(), is.damage.end());
    found_.not_needed.insert(found_.not_needed.end(), is.not_needed.begin(), is.not_needed.end());
    return {};
  }

  FileSystem& files_;
  CheckVisitor* const visitor_;
  std::string& problem_;
  DirectoryCheck found_;
  uint64_t needed_ = 0;
};

}  // namespace

Result<SnapshotCheck> CheckSnapshot(FileSystem& files, const std::string& path,
                                    CheckVisitor* visitor) {
  SnapshotCheck check{.file = path};
  const auto bytes = BytesOfFile(files, path);
  if (!bytes) return Fail(bytes.error());
  check.file_bytes = *bytes;
  auto salvage = SalvageBlocks(files, path, [&](uint32_t keyspace, const SnapshotItem& item) {
    if (visitor != nullptr) visitor->OnItem(keyspace, item);
    return Status();
  });
  if (!salvage) return Fail(salvage.error());
  if (salvage->has_header) check.created_ms = salvage->created_ms;
  if (salvage->has_footer) check.keyspaces = std::move(salvage->keyspaces);
  check.blocks = salvage->blocks;
  check.items = salvage->items;
  const auto named = PositionOfSnapshot(std::string_view(path).substr(path.rfind('/') + 1));
  if (named && check.keyspaces && PositionIn(*check.keyspaces).value_or(*named) != *named) {
    check.damage.push_back(
        {.file = path, .offset = 0, .bytes = *bytes, .what = kWrongSnapshotName});
  }
  for (const SnapshotSalvage::Loss& loss : salvage->lost) {
    check.damage.push_back(
        {.file = path, .offset = loss.offset, .bytes = loss.bytes, .what = "part of a snapshot"});
  }
  return check;
}

Result<RdbCheck> CheckRdb(FileSystem& files, const std::string& path, CheckVisitor* visitor) {
  RdbCheck check{.file = path};
  const auto bytes = BytesOfFile(files, path);
  if (!bytes) return Fail(bytes.error());
  check.file_bytes = *bytes;
  RdbCheckVisitor counter(check.summary, visitor);
  const auto summary = ReadRdb(files, path, counter);
  if (summary) {
    check.summary = *summary;
  } else if (summary.error().code() == Code::kCorrupt) {
    const uint64_t offset = std::min(summary.error().detail(), *bytes);
    check.damage.push_back(
        {.file = path, .offset = offset, .bytes = *bytes - offset, .what = summary.error().what()});
  } else {
    return Fail(summary.error());
  }
  return check;
}

Result<DirectoryCheck> CheckDirectory(FileSystem& files, const std::string& directory,
                                      CheckVisitor* visitor, std::string* problem) {
  return DirectoryChecker(files, directory, visitor, problem).Run();
}

Result<std::optional<FileKind>> KindOf(FileSystem& files, const std::string& path) {
  if (files.List(path)) return FileKind::kDirectory;
  const auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file) return Fail(file.error());
  char head[kRecordHeaderBytes] = {};
  size_t have = 0;
  while (have < sizeof(head)) {
    const auto got = (*file)->ReadAt(have, head + have, sizeof(head) - have);
    if (!got) return Fail(got.error());
    if (*got == 0) break;
    have += *got;
  }
  const std::string_view bytes(head, have);
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (bytes.starts_with(BytesOf(kSnapshotMagic))) return FileKind::kSnapshot;
  if (bytes.starts_with("REDIS")) return FileKind::kRdb;
  if (have == sizeof(head) && ReadHeader(head, PositionIn(head))) return FileKind::kSegment;
  if (name.starts_with("snapshot-") || name.contains(".sks")) return FileKind::kSnapshot;
  if (name.contains(".skl")) return FileKind::kSegment;
  if (name.ends_with(".rdb")) return FileKind::kRdb;
  return std::nullopt;
}

}  // namespace skep::durable
