#include "durable/log_reader.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "base/varint.h"
#include "durable/directory.h"
#include "durable/snapshot_block.h"

namespace skep::durable {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

// Counts the zeroes in front. Most of a segment behind the end of the log is zeroes.
size_t CountZeroes(std::string_view bytes) {
  size_t count = 0;
  for (uint64_t word = 0; count + sizeof(word) <= bytes.size(); count += sizeof(word)) {
    std::memcpy(&word, bytes.data() + count, sizeof(word));
    if (word != 0) break;
  }
  while (count < bytes.size() && bytes[count] == '\0') ++count;
  return count;
}

}  // namespace

void AppendRecord(std::string& to, uint64_t position, std::string_view payload) {
  char header[kRecordHeaderBytes];
  WriteHeader(
      {.payload_crc = Crc32c(payload), .payload_bytes = payload.size(), .position = position},
      header);
  to.append(header, sizeof(header));
  to.append(payload);
}

std::optional<Progress> ReadProgress(std::string_view payload) {
  if (payload.empty() || payload[0] != static_cast<char>(RecordType::kProgress)) {
    return std::nullopt;
  }
  payload.remove_prefix(1);
  Progress progress;
  uint64_t count = 0;
  if (!TakeVarint(payload, &progress.synced_position) || !TakeVarint(payload, &count)) {
    return std::nullopt;
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t keyspace = 0;
    uint64_t version = 0;
    if (!TakeVarint(payload, &keyspace) || keyspace > UINT32_MAX ||
        !TakeVarint(payload, &version)) {
      return std::nullopt;
    }
    progress.complete.push_back({static_cast<uint32_t>(keyspace), version});
  }
  if (!payload.empty()) return std::nullopt;
  return progress;
}

Result<std::unique_ptr<LogReader>> LogReader::Open(FileSystem& files, const std::string& directory,
                                                   uint64_t position) {
  const auto found = ListStoreFiles(files, directory);
  if (!found) return Fail(found.error());
  std::vector<Segment> segments;
  for (const SegmentId& segment : found->segments) {
    if (!segments.empty()) segments.back().end = segment.begin;
    segments.push_back({.begin = segment.begin,
                        .epoch = segment.epoch,
                        .path = directory + "/" + SegmentName(segment)});
  }
  auto reader = std::unique_ptr<LogReader>(new LogReader(files, std::move(segments), position));
  const auto& all = reader->segments_;
  if (all.empty()) return reader;
  const auto at = std::ranges::find_if(all, [&](const Segment& segment) {
    return segment.begin <= position && position < segment.end;
  });
  if (at == all.end()) {
    return skep::Fail(Code::kCorrupt, "the log does not reach back to the snapshot", position);
  }
  reader->segment_ = static_cast<size_t>(at - all.begin());
  return reader;
}

Result<bool> LogReader::Reaches(FileSystem& files, const std::string& directory,
                                uint64_t position) {
  const auto found = ListStoreFiles(files, directory);
  if (!found) return Fail(found.error());
  if (found->segments.empty()) return false;
  const auto reader = Open(files, directory, found->segments.front().begin);
  if (!reader) return Fail(reader.error());
  bool has_record = false;
  while (!has_record || (*reader)->position() < position) {
    const auto record = (*reader)->Next();
    if (record && !*record) return false;
    has_record = record.has_value();
    if (record) continue;
    if (record.error().code() != Code::kCorrupt) return Fail(record.error());
    if (const auto skipped = (*reader)->Skip(); !skipped) return Fail(skipped.error());
  }
  return true;
}

Result<std::unique_ptr<LogReader>> LogReader::OpenSegmentFile(FileSystem& files,
                                                              const std::string& path) {
  auto begin = PositionOfSegment(std::string_view(path).substr(path.rfind('/') + 1));
  if (!begin) {
    auto file = files.Open(path, FileSystem::Mode::kRead);
    if (!file) return Fail(file.error());
    char header[kRecordHeaderBytes];
    if (const Status s = ReadExactly(**file, 0, header, sizeof(header)); !s.ok()) return Fail(s);
    begin = PositionIn(header);
    if (!ReadHeader(header, *begin)) {
      return Fail(Code::kCorrupt, "where in the log the segment lies is not known");
    }
  }
  std::vector<Segment> segments = {{.begin = *begin, .path = path}};
  return std::unique_ptr<LogReader>(new LogReader(files, std::move(segments), *begin));
}

Status LogReader::OpenSegment(size_t number) {
  if (open_segment_ == number) return {};
  open_segment_ = SIZE_MAX;
  path_ = segments_[number].path;
  auto file = files_.Open(path_, FileSystem::Mode::kRead);
  if (!file) return file.error();
  const auto size = (*file)->Size();
  if (!size) return size.error();
  open_ = std::move(*file);
  file_bytes_ = *size;
  open_segment_ = number;
  buffer_.clear();
  return {};
}

// Reads bytes of the open file to bytes_. False: the file has not so many.
Result<bool> LogReader::Read(uint64_t offset, size_t bytes) {
  if (offset > file_bytes_ || bytes > file_bytes_ - offset) return false;
  const bool is_there =
      offset >= buffer_offset_ && offset + bytes <= buffer_offset_ + buffer_.size();
  if (!is_there) {
    buffer_.resize(std::min<uint64_t>(std::max(bytes, kBufferBytes), file_bytes_ - offset));
    buffer_offset_ = offset;
    for (size_t have = 0; have < buffer_.size();) {
      const auto got = open_->ReadAt(offset + have, buffer_.data() + have, buffer_.size() - have);
      if (!got || *got == 0) buffer_.clear();
      if (!got) return Fail(got.error());
      if (*got == 0) return false;
      have += *got;
    }
  }
  bytes_ = std::string_view(buffer_).substr(offset - buffer_offset_, bytes);
  return true;
}

// Reads a record of the open segment, whose payload is in bytes_ then. False: there is none.
Result<bool> LogReader::ReadRecord(uint64_t offset) {
  const auto has_header = Read(offset, kRecordHeaderBytes);
  if (!has_header || !*has_header) return has_header;
  const auto header = ReadHeader(bytes_.data(), segments_[open_segment_].begin + offset);
  if (!header || header->payload_bytes == 0) return false;
  const auto has_payload = Read(offset + kRecordHeaderBytes, header->payload_bytes);
  if (!has_payload || !*has_payload) return has_payload;
  return Crc32c(bytes_) == header->payload_crc;
}

Result<std::optional<LogRecord>> LogReader::Next() {
  if (segments_.empty()) return std::nullopt;
  if (position_ >= segments_[segment_].end) ++segment_;
  if (const Status s = OpenSegment(segment_); !s.ok()) return Fail(s);
  const uint64_t offset = position_ - segments_[segment_].begin;
  const auto is_good = ReadRecord(offset);
  if (!is_good) return Fail(is_good.error());
  if (*is_good) {
    const LogRecord record = {
        .position = position_, .type = static_cast<RecordType>(bytes_[0]), .payload = bytes_};
    position_ += kRecordHeaderBytes + bytes_.size();
    return record;
  }
  const std::string path = path_;
  const auto was_synced = WasSynced();
  if (!was_synced) return Fail(was_synced.error());
  path_ = path;
  if (*was_synced) {
    return Fail(Code::kCorrupt, "a record of the log is damaged", offset);
  }
  if (is_torn_) return std::nullopt;
  const auto is_torn = HasTornRecord(offset);
  if (!is_torn) return Fail(is_torn.error());
  is_torn_ = *is_torn;
  return std::nullopt;
}

// Finds the offset in the open segment, at this one or behind it, at which a header with the right
// position may be. Few other bytes look like one.
Result<std::optional<uint64_t>> LogReader::FindPosition(uint64_t offset, uint64_t end) {
  const uint64_t begin = segments_[open_segment_].begin;
  while (offset + kRecordHeaderBytes <= end) {
    const auto is_there = Read(offset, kRecordHeaderBytes);
    if (!is_there) return Fail(is_there.error());
    if (!*is_there) break;
    const uint64_t buffer_end = std::min(end, buffer_offset_ + buffer_.size());
    while (offset + kRecordHeaderBytes <= buffer_end) {
      const char* const header = buffer_.data() + (offset - buffer_offset_);
      const uint64_t position = PositionIn(header);
      if (position == begin + offset) return offset;
      // A header ends with its position. So where there are zeroes no header begins until they are
      // too few for a position.
      const char* const last = header + kRecordHeaderBytes - sizeof(position);
      const char* const end_of_buffer = buffer_.data() + (buffer_end - buffer_offset_);
      offset += position != 0 ? 1 : CountZeroes({last, end_of_buffer}) + 1 - sizeof(position);
    }
  }
  return std::nullopt;
}

// Finds the offset of the next good record of a segment, from the offset on, or of the segments
// behind it.
Result<std::optional<uint64_t>> LogReader::FindRecord(size_t* segment, uint64_t offset) {
  for (; *segment < segments_.size(); ++*segment, offset = 0) {
    if (const Status s = OpenSegment(*segment); !s.ok()) return Fail(s);
    const Segment& in = segments_[*segment];
    const uint64_t end = std::min(file_bytes_, in.end - in.begin);
    while (true) {
      const auto maybe = FindPosition(offset, end);
      if (!maybe) return Fail(maybe.error());
      if (!*maybe) break;
      const auto is_good = ReadRecord(**maybe);
      if (!is_good) return Fail(is_good.error());
      if (*is_good) return maybe;
      offset = **maybe + 1;
    }
  }
  return std::nullopt;
}

// Whether a record behind position_ says that the bytes at position_ were synced. If none does, the
// good records there are cut off.
Result<bool> LogReader::WasSynced() {
  size_t segment = segment_;
  uint64_t offset = position_ - segments_[segment_].begin + 1;
  bool has_more = false;
  while (true) {
    const auto found = FindRecord(&segment, offset);
    if (!found) return Fail(found.error());
    if (!*found) break;
    has_more = true;
    const auto progress = ReadProgress(bytes_);
    if (progress && progress->synced_position > position_) return true;
    // Only the log of a store that was closed has an end record.
    if (bytes_[0] == static_cast<char>(RecordType::kEnd)) return true;
    offset = **found + kRecordHeaderBytes + bytes_.size();
  }
  if (const Status s = OpenSegment(segment_); !s.ok()) return Fail(s);
  is_torn_ = has_more;
  return false;
}

// Whether the open segment has anything from the offset on but zeroes and, in version 1, the
// remains of an older use of the file. Those have, somewhere, the header of a record of an older
// position.
Result<bool> LogReader::HasTornRecord(uint64_t offset) {
  const Segment& in = segments_[open_segment_];
  const uint64_t end = std::min(file_bytes_, in.end - in.begin);
  const auto has_header = Read(offset, kRecordHeaderBytes);
  if (!has_header) return has_header;
  const bool is_begun = *has_header && PositionIn(bytes_.data()) == position_;
  bool has_bytes = false;
  for (uint64_t at = offset; at < end;) {
    const auto is_there = Read(at, std::min<uint64_t>(kRecordHeaderBytes, end - at));
    if (!is_there || !*is_there) return is_there;
    if (bytes_[0] == '\0') {
      // An old header that begins with a zero, one in 256, is overlooked.
      at += CountZeroes(std::string_view(buffer_).substr(at - buffer_offset_));
      continue;
    }
    has_bytes = true;
    if (is_begun || in.epoch != 0) break;
    if (bytes_.size() == kRecordHeaderBytes) {
      const uint64_t position = PositionIn(bytes_.data());
      if (position < in.begin + at && ReadHeader(bytes_.data(), position)) return false;
    }
    ++at;
  }
  return has_bytes;
}

Result<uint64_t> LogReader::BytesBehindEnd(size_t segment) {
  const Segment& in = segments_[segment];
  if (in.end == UINT64_MAX) return 0;
  const std::string path = path_;
  if (const Status s = OpenSegment(segment); !s.ok()) return Fail(s);
  const auto is_good = ReadRecord(in.end - in.begin);
  path_ = path;
  if (!is_good) return Fail(is_good.error());
  return *is_good ? kRecordHeaderBytes + bytes_.size() : 0;
}

Result<std::optional<uint64_t>> LogReader::Skip() {
  size_t segment = segment_;
  const auto found = FindRecord(&segment, position_ - segments_[segment_].begin + 1);
  if (!found) return Fail(found.error());
  if (!*found) return std::nullopt;
  const uint64_t to = segments_[segment].begin + **found;
  const uint64_t left_out = to - position_;
  segment_ = segment;
  position_ = to;
  return left_out;
}

}  // namespace skep::durable
