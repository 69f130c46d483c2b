// The log of an index server with any of its bytes changed: it is refused, with the file's name, or
// its torn end is cut off. What is recovered is a state that there was.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "durable/log_check.h"
#include "durable/log_reader.h"
#include "pool/disk/logged_pool_test.h"
#include "pool/state_pieces.h"

namespace skep::pool {
namespace {

const std::string kDirectory = "/index";

class IndexLogDamageTest : public LoggedPoolTest {
 protected:
  struct Record {
    uint64_t position = 0;
    uint64_t bytes = 0;  // with its header
    std::string file;
    uint64_t offset = 0;  // in the file
  };

  // Of a pool whose servers were killed: the last records were not synced.
  void MakeLog() {
    compact_bytes_min_ = 8 * 1024;
    BeginPair(1, LogSync::kEverySecond, 150);
    Kill(kHash);
    Kill(kSorted);
    ReadRecords();
    for (const Record& record : records_) before_.push_back(Recover(record.position).value());
    whole_ = Recover(UINT64_MAX).value();
  }
  void ReadRecords() {
    const uint64_t begin = durable::ListStoreFiles(disk(), kDirectory)->segments.front().begin;
    const auto reader = durable::LogReader::Open(disk(), kDirectory, begin).value();
    for (auto record = reader->Next().value(); record; record = reader->Next().value()) {
      const uint64_t bytes = durable::kRecordHeaderBytes + record->payload.size();
      records_.push_back({.position = record->position,
                          .bytes = bytes,
                          .file = reader->file(),
                          .offset = reader->offset() - bytes});
      if (record->type == durable::RecordType::kPool) {
        ++of_pool_[static_cast<uint8_t>(record->payload[1])];
      }
    }
  }
  // The owners and the whole state that the log has before this position, as bytes.
  Result<std::string> Recover(uint64_t end) {
    auto recovered =
        RecoverIndexLog(disk(), kDirectory, end, [this] { return pool_->MakeTree(); }, &problem_);
    if (!recovered) return Fail(recovered.error());
    std::string state;
    for (const uint32_t owner : recovered->found.owners) state += std::to_string(owner) + ' ';
    if (recovered->found.state == nullptr) return state;
    StatePieces pieces(*recovered->found.state, {});
    while (!pieces.IsDone()) pieces.Next(state);
    return state;
  }
  void Change(const Record& record, uint64_t at) {
    char byte = 0;
    const auto file = disk().Open(record.file, FileSystem::Mode::kReadWrite).value();
    ASSERT_EQ(file->ReadAt(record.offset + at, &byte, 1).value(), 1u);
    byte = static_cast<char>(byte ^ 0x10);
    ASSERT_TRUE(file->WriteAt(record.offset + at, {&byte, 1}).ok());
  }
  // The byte of the i-th record is another one.
  void Check(size_t i, uint64_t at) {
    const Record& record = records_[i];
    SCOPED_TRACE(record.file + " at " + std::to_string(record.offset + at));
    ASSERT_NO_FATAL_FAILURE(Change(record, at));
    problem_.clear();
    const auto state = Recover(UINT64_MAX);
    ASSERT_NO_FATAL_FAILURE(Change(record, at));
    if (!state) {
      ++refused_;
      EXPECT_EQ(state.error().code(), Code::kCorrupt) << problem_;
      EXPECT_NE(problem_.find(record.file), std::string::npos) << problem_;
      return;
    }
    ++cut_;
    EXPECT_TRUE(*state == before_[i]) << "a state that there was not, or what is good was cut";
  }
  SimFileSystem& disk() { return *disks_[DiskOf(kHash)]; }

  std::vector<Record> records_;
  std::map<uint8_t, uint64_t> of_pool_;  // records, by kind
  std::vector<std::string> before_;      // the state before each record
  std::string whole_;
  int refused_ = 0;
  int cut_ = 0;
};

// Goal: what skep-check says of such a directory: it is sound, and has these records.
TEST_F(IndexLogDamageTest, ACheckCountsTheRecords) {
  ASSERT_NO_FATAL_FAILURE(MakeLog());
  std::string file;
  const auto check = durable::CheckLog(disk(), kDirectory, 0, {}, &file);
  ASSERT_TRUE(check.has_value()) << file;
  EXPECT_TRUE(check->damage.empty()) << check->damage.front().what;
  EXPECT_GT(check->segments.front().begin, 0u) << "nothing was dropped";
  std::map<uint8_t, uint64_t> of_pool;
  for (const durable::SegmentCheck& segment : check->segments) {
    for (const auto& [kind, count] : segment.pool) of_pool[kind] += count;
  }
  EXPECT_EQ(of_pool, of_pool_);
  for (const IndexLog::Kind kind : {IndexLog::Kind::kStateSince, IndexLog::Kind::kStateEnd}) {
    EXPECT_GE(of_pool[static_cast<uint8_t>(kind)], 1u) << NameOf(kind);
  }
}

// Goal: whatever byte changes, no server starts with a state that there was not.
TEST_F(IndexLogDamageTest, AnyByteMayChange) {
  ASSERT_NO_FATAL_FAILURE(MakeLog());
  ASSERT_GT(compactions_, 0u) << "there is no state that was made out of the log";
  ASSERT_EQ(Recover(UINT64_MAX).value(), whole_);
  for (size_t i = 0; i < records_.size() && !HasFailure(); ++i) {
    const uint64_t bytes = records_[i].bytes;
    // All of the header, what comes first of the payload, its middle and its end.
    std::vector<uint64_t> places = {bytes / 2, bytes - 1};
    for (uint64_t at = 0; at < std::min(bytes, durable::kRecordHeaderBytes + 6); ++at) {
      places.push_back(at);
    }
    for (const uint64_t at : places) Check(i, at);
  }
  EXPECT_GT(refused_, 100);
  EXPECT_GT(cut_, 20);
  std::printf("%zu records: %d refused, %d cut\n", records_.size(), refused_, cut_);
}

}  // namespace
}  // namespace skep::pool
