#include "durable/log_check.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "base/varint.h"
#include "durable/directory.h"
#include "durable/log_reader.h"

namespace skep::durable {
namespace {

class Checker {
 public:
  Checker(FileSystem& files, LogReader& reader, uint64_t needed, const ChangeVisit& visit)
      : files_(files), reader_(reader), needed_(needed), visit_(visit) {}

  Result<LogCheck> Run() {
    for (const LogReader::Segment& segment : reader_.segments()) {
      const Status s = AddSegment(segment);
      if (!s.ok()) return Fail(s);
    }
    found_.end = reader_.position();
    found_.ends_early = needed_ > 0;
    while (true) {
      const auto record = reader_.Next();
      if (!record && record.error().code() != Code::kCorrupt) return Fail(record.error());
      const Status s = !record ? PassOver() : *record ? Add(**record) : Status();
      if (!s.ok()) return Fail(s);
      if (record && !*record) break;
      if (record && reader_.position() >= needed_) found_.ends_early = false;
    }
    found_.end = reader_.position();
    for (const auto& [keyspace, versions] : incomplete_) found_.incomplete += versions.size();
    if (reader_.is_torn()) {
      found_.torn_file = reader_.file();
      found_.torn_offset = reader_.position() - SegmentAt(reader_.position()).begin;
    }
    if (const Status s = CheckEnds(); !s.ok()) return Fail(s);
    return std::move(found_);
  }

 private:
  Status AddSegment(const LogReader::Segment& segment) {
    auto file = files_.Open(segment.path, FileSystem::Mode::kRead);
    if (!file) return file.error();
    const auto bytes = (*file)->Size();
    if (!bytes) return bytes.error();
    found_.segments.push_back({.file = segment.path,
                               .begin = segment.begin,
                               .epoch = segment.epoch,
                               .end = segment.begin,
                               .file_bytes = *bytes});
    return {};
  }

  // Checks that each segment has ended where the next one of its epoch begins. A segment of an
  // older epoch, as all are in version 1, may go on there: those records were never synced.
  Status CheckEnds() {
    const auto& segments = reader_.segments();
    for (size_t i = 0; i + 1 < segments.size(); ++i) {
      if (segments[i].epoch == 0 || segments[i].epoch != segments[i + 1].epoch) continue;
      const auto bytes = reader_.BytesBehindEnd(i);
      if (!bytes) return bytes.error();
      if (*bytes == 0) continue;
      auto& list = segments[i].end >= needed_ ? found_.damage : found_.not_needed;
      list.push_back({.file = segments[i].path,
                      .offset = segments[i].end - segments[i].begin,
                      .bytes = *bytes,
                      .what = "records that the next segment has, too"});
    }
    return {};
  }

  // The last segment that begins at the position or before.
  SegmentCheck& SegmentAt(uint64_t position) {
    auto at = std::ranges::upper_bound(found_.segments, position, {}, &SegmentCheck::begin);
    return at == found_.segments.begin() ? *at : *--at;
  }

  void NoteDamage(uint64_t position, uint64_t bytes, const char* what) {
    const uint64_t end = position + bytes;
    for (const LogReader::Segment& segment : reader_.segments()) {
      const uint64_t from = std::max(position, segment.begin);
      const uint64_t to = std::min(end, segment.end);
      if (from >= to) continue;
      auto& list = to > needed_ ? found_.damage : found_.not_needed;
      list.push_back(
          {.file = segment.path, .offset = from - segment.begin, .bytes = to - from, .what = what});
    }
  }

  Status PassOver() {
    const uint64_t position = reader_.position();
    const auto bytes = reader_.Skip();
    if (!bytes) return bytes.error();
    NoteDamage(position, bytes->value_or(0), "records of the log");
    return {};
  }

  Status Add(const LogRecord& record) {
    SegmentCheck& segment = SegmentAt(record.position);
    ++segment.records;
    segment.end = reader_.position();
    found_.is_ended = record.type == RecordType::kEnd ||
                      (found_.is_ended && record.type == RecordType::kProgress);
    bool is_good = true;
    switch (record.type) {
      case RecordType::kChanges:
        ++segment.batches;
        is_good = AddChanges(record, segment);
        break;
      case RecordType::kStart: {
        ++segment.starts;
        incomplete_.clear();
        std::string_view payload = record.payload.substr(1);
        uint64_t version = 0;
        is_good = TakeVarint(payload, &version);
        if (version > kLogVersion) {
          return {Code::kNotSupported, "the log is of a newer format", version};
        }
        break;
      }
      case RecordType::kProgress:
        ++segment.progresses;
        is_good = AddProgress(record, segment);
        break;
      case RecordType::kEnd:
        ++segment.ends;
        break;
      case RecordType::kPool:
        is_good = record.payload.size() > 1;
        if (is_good) ++segment.pool[static_cast<uint8_t>(record.payload[1])];
        break;
      default:
        is_good = false;
    }
    if (!is_good) {
      NoteDamage(record.position, kRecordHeaderBytes + record.payload.size(),
                 "a record of the log that cannot be understood");
    }
    return {};
  }

  bool AddChanges(const LogRecord& record, SegmentCheck& segment) {
    auto decoder = ChangeDecoder::Open(record.payload);
    if (!decoder) return false;
    const uint32_t keyspace = decoder->keyspace();
    while (true) {
      const auto change = decoder->NextOfAny();
      if (!change) return false;
      if (!*change) return true;
      const Version version = (*change)->version;
      for (KeyspaceInLog* in : {&segment.keyspaces[keyspace], &found_.keyspaces[keyspace]}) {
        ++in->changes;
        in->highest = std::max(in->highest, version);
      }
      ++segment.changes[static_cast<size_t>((*change)->kind)];
      if (version > found_.keyspaces[keyspace].complete) incomplete_[keyspace].push_back(version);
      if (!visit_) continue;
      visit_({.position = record.position,
              .keyspace = keyspace,
              .change = **change,
              .function_name = decoder->function_name(),
              .function_element = decoder->function_element()});
    }
  }

  bool AddProgress(const LogRecord& record, SegmentCheck& segment) {
    const auto progress = ReadProgress(record.payload);
    if (!progress) return false;
    segment.synced_position = std::max(segment.synced_position, progress->synced_position);
    found_.synced_position = std::max(found_.synced_position, progress->synced_position);
    for (const Progress::Complete& complete : progress->complete) {
      segment.keyspaces[complete.keyspace].complete = complete.version;
      found_.keyspaces[complete.keyspace].complete = complete.version;
      std::erase_if(incomplete_[complete.keyspace],
                    [&](Version version) { return version <= complete.version; });
    }
    return true;
  }

  FileSystem& files_;
  LogReader& reader_;
  const uint64_t needed_;
  const ChangeVisit& visit_;
  LogCheck found_;
  std::map<uint32_t, std::vector<Version>> incomplete_;
};

}  // namespace

uint64_t SegmentCheck::all_changes() const {
  return std::accumulate(changes.begin(), changes.end(), uint64_t{0});
}

bool LogCheck::is_of_pool() const {
  return std::ranges::any_of(segments, [](const auto& segment) { return !segment.pool.empty(); });
}

std::string_view NameOf(LogChange::Kind kind) {
  switch (kind) {
    case LogChange::Kind::kPut:
      return "put";
    case LogChange::Kind::kPutUntil:
      return "put until";
    case LogChange::Kind::kErase:
      return "erase";
    case LogChange::Kind::kSetDeadline:
      return "set deadline";
    case LogChange::Kind::kMove:
      return "move";
    case LogChange::Kind::kApply:
      return "apply";
    case LogChange::Kind::kEraseRange:
      return "erase range";
    case LogChange::Kind::kEraseFrom:
      return "erase from";
    case LogChange::Kind::kEraseAll:
      return "erase all";
    case LogChange::Kind::kPutTyped:
      return "put typed";
  }
  return "unknown";
}

Result<LogCheck> CheckLog(FileSystem& files, const std::string& directory, uint64_t needed,
                          const ChangeVisit& visit, std::string* file) {
  *file = directory;
  const auto found = ListStoreFiles(files, directory);
  if (!found) return Fail(found.error());
  const uint64_t begin = found->segments.empty() ? 0 : found->segments.front().begin;
  const auto reader = LogReader::Open(files, directory, begin);
  if (!reader) return Fail(reader.error());
  auto check = Checker(files, **reader, needed, visit).Run();
  if (!check && !(*reader)->file().empty()) *file = (*reader)->file();
  if (check) {
    for (const SegmentId& segment : found->superseded) {
      check->superseded.push_back(directory + "/" + SegmentName(segment));
    }
  }
  if (check && begin > needed && !check->is_of_pool()) {
    check->damage.insert(check->damage.begin(), {.file = directory + "/" + SegmentName(needed),
                                                 .offset = 0,
                                                 .bytes = begin - needed,
                                                 .what = "the log begins later than it has to"});
  }
  return check;
}

Result<LogCheck> CheckSegment(FileSystem& files, const std::string& path,
                              const ChangeVisit& visit) {
  const auto reader = LogReader::OpenSegmentFile(files, path);
  if (!reader) return Fail(reader.error());
  return Checker(files, **reader, 0, visit).Run();
}

}  // namespace skep::durable
