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
  std::string_view payload;  // with its type; valid until the next call
};

// The record as the log has it.
void AppendRecord(std::string& to, uint64_t position, std::string_view payload);

// What a progress record says.
struct Progress {
  uint64_t synced_position = 0;
  struct Complete {
    uint32_t keyspace = 0;
    uint64_t version = 0;
  };
  std::vector<Complete> complete;
};
// Nothing if the payload is not one.
std::optional<Progress> ReadProgress(std::string_view payload);

// Thread safety: one owner.
class LogReader {
 public:
  struct Segment {
    uint64_t begin = 0;
    uint64_t end = UINT64_MAX;  // where the next one begins
    uint64_t epoch = 0;
    std::string path;
  };

  // Reads from the position on, in the chain of segments (log_format.h). Without a segment that is
  // the end of the log.
  //   kIo
  //   kCorrupt  the log has no segment with the position
  static Result<std::unique_ptr<LogReader>> Open(FileSystem& files, const std::string& directory,
                                                 uint64_t position);
  // Reads one segment, from its first record on, as if there were no others. Where in the log it
  // lies is what its name says, or, if it has been given another, its first record.
  //   kIo
  //   kCorrupt  neither says it
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
  // Behind the last good record.
  uint64_t position() const { return position_; }
  // Of what was read last, or could not be.
  const std::string& file() const { return path_; }
  // Of position() in file(). There is a segment.
  uint64_t offset() const { return position_ - segments_[segment_].begin; }
  // At the end: whether records, or bytes of one that was not completed, follow; they are cut off.
  bool is_torn() const { return is_torn_; }
  // Ascending.
  const std::vector<Segment>& segments() const { return segments_; }

  // The bytes of a good record that a segment has where the next one begins: 0 if it has none
  // there, or is the last. What was read last is not valid any more.
  //   kIo
  Result<uint64_t> BytesBehindEnd(size_t segment);

  // Goes on behind damage: to the next good record. Returns how many bytes of the log were left
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
  uint64_t buffer_offset_ = 0;  // of its first one
  std::string_view bytes_;      // that were read last
  bool is_torn_ = false;
};

}  // namespace skep::durable
