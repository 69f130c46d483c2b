// log_reader.h: reads the log, record by record, and tells its torn end from damage.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "durable/log_format.h"

namespace skep::durable {

struct LogRecord {
  uint64_t position = 0;
  RecordType type = RecordType::kChanges;
  std::string_view payload;  // begins with its type; valid until the next call
};

// Appends a record to `to`, as the log has it.
void AppendRecord(std::string& to, uint64_t position, std::string_view payload);

// The contents of a progress record.
struct Progress {
  uint64_t synced_position = 0;
  struct Complete {
    uint32_t keyspace = 0;
    uint64_t version = 0;
  };
  std::vector<Complete> complete;
};
// Reads a payload; nothing if it is not that of a progress record.
std::optional<Progress> ReadProgress(std::string_view payload);

// Thread safety: one owner.
class LogReader {
 public:
  struct Segment {
    uint64_t begin = 0;
    uint64_t end = UINT64_MAX;  // where the next segment begins
    uint64_t epoch = 0;
    std::string path;
  };

  // Reads from the position on, in the chain of segments (log_format.h). If there is no segment,
  // the position is the end of the log.
  //   kIo
  //   kCorrupt  the log has no segment with the position
  static Result<std::unique_ptr<LogReader>> Open(FileSystem& files, const std::string& directory,
                                                 uint64_t position);
  // Reads one segment, from its first record on, as if there were no others. Its position in the
  // log is in its name or, if it has been given another name, in its first record.
  //   kIo
  //   kCorrupt  neither has it
  static Result<std::unique_ptr<LogReader>> OpenSegmentFile(FileSystem& files,
                                                            const std::string& path);

  // Whether a record of the directory's log ends at the position or behind it.
  //   kIo
  // Cost: reads the log up to there.
  static Result<bool> Reaches(FileSystem& files, const std::string& directory, uint64_t position);

  // The next record; nothing at the end.
  //   kIo
  //   kCorrupt  a record that was once synced is bad; `detail` is its offset in file()
  Result<std::optional<LogRecord>> Next();
  // The position behind the last good record.
  uint64_t position() const { return position_; }
  // The file that was read last, or could not be read.
  const std::string& file() const { return path_; }
  // The offset of position() in file(). Required: there is a segment.
  uint64_t offset() const { return position_ - segments_[segment_].begin; }
  // At the end of the log: whether records that were not synced, or bytes of an incomplete one,
  // follow. They are cut off.
  bool is_torn() const { return is_torn_; }
  // The chain, ascending.
  const std::vector<Segment>& segments() const { return segments_; }

  // The size of the good record that a segment has where the next one begins: 0 if it has none
  // there, or is the last. Views of the last record are not valid any more.
  //   kIo
  Result<uint64_t> BytesBehindEnd(size_t segment);

  // Goes on behind damage, at the next good record. Returns how many bytes of the log were left
  // out; nothing if there is no other record.
  Result<std::optional<uint64_t>> Skip();

 private:
  LogReader(FileSystem& files, std::vector<Segment> segments, uint64_t position)
      : files_(files), segments_(std::move(segments)), position_(position) {}

  Status OpenSegment(size_t number);
  Result<bool> Read(uint64_t offset, size_t bytes);
  Result<bool> ReadRecord(uint64_t offset);
  Result<std::optional<uint64_t>> FindPosition(uint64_t offset, uint64_t end);
  Result<std::optional<uint64_t>> FindRecord(size_t* segment, uint64_t offset);
  Result<bool> WasSynced();
  Result<bool> HasTornRecord(uint64_t offset);

  FileSystem& files_;
  std::vector<Segment> segments_;
  uint64_t position_;
  size_t segment_ = 0;
  std::unique_ptr<File> open_;
  size_t open_segment_ = SIZE_MAX;
  std::string path_;
  uint64_t file_bytes_ = 0;
  std::string buffer_;          // bytes of the open file
  uint64_t buffer_offset_ = 0;  // of its first byte in the file
  std::string_view bytes_;      // the ones that were read last
  bool is_torn_ = false;
};

}  // namespace skep::durable
