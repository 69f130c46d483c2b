#include "durable/log_reader.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/varint.h"
#include "durable/log_test.h"

namespace skep::durable {
namespace {

// A progress record's payload.
std::string ProgressOf(uint64_t synced_position) {
  std::string payload = {static_cast<char>(RecordType::kProgress)};
  AppendVarint(payload, synced_position);
  AppendVarint(payload, 0);
  return payload;
}

const std::string kEnd = {static_cast<char>(RecordType::kEnd)};

// Writes records one behind the other; the reader does not look into them.
class Segment {
 public:
  explicit Segment(uint64_t begin = 0) : begin_(begin) {}

  Segment& Add(const std::string& payload) {
    AppendRecord(bytes_, position(), payload);
    return *this;
  }
  uint64_t begin() const { return begin_; }
  uint64_t position() const { return begin_ + bytes_.size(); }
  const std::string& bytes() const { return bytes_; }

 private:
  const uint64_t begin_;
  std::string bytes_;
};

// Reads segments, and collects the records.
class Reading {
 public:
  explicit Reading(const Image& image, uint64_t from = 0) : disk_(1, trace_) {
    StoreImage(disk_, image);
    auto reader = LogReader::Open(disk_, kTestDirectory, from);
    if (!reader) {
      status = reader.error();
      return;
    }
    reader_ = std::move(*reader);
    ReadOn();
  }

  // Reads on to the end, or to damage.
  void ReadOn() {
    while (true) {
      const auto record = reader_->Next();
      status = record ? Status() : record.error();
      if (!record || !*record) break;
      payloads.emplace_back((*record)->payload);
    }
    is_torn = reader_->is_torn();
    position = reader_->position();
    file = reader_->file();
  }

  // How much was left out; 0: there is nothing more.
  uint64_t Skip() { return reader_->Skip()->value_or(0); }

  std::vector<std::string> payloads;
  Status status;
  bool is_torn = false;
  uint64_t position = 0;
  std::string file;

 private:
  Trace trace_;
  SimFileSystem disk_;
  std::unique_ptr<LogReader> reader_;
};

Image ImageOf(const std::vector<std::pair<uint64_t, std::string>>& segments) {
  Image image;
  for (const auto& [begin, bytes] : segments) image[SegmentName(begin)] = bytes;
  return image;
}

using Payloads = std::vector<std::string>;

TEST(LogReader, NoSegmentIsAnEmptyLog) {
  const Reading reading({{"other", "file"}}, 77);
  EXPECT_TRUE(reading.status.ok());
  EXPECT_TRUE(reading.payloads.empty());
  EXPECT_EQ(reading.position, 77u);
}

TEST(LogReader, PositionBeforeTheFirstSegment) {
  const Segment segment = Segment(1'000).Add("a");
  EXPECT_EQ(Reading(ImageOf({{1'000, segment.bytes()}}), 999).status.code(), Code::kCorrupt);
}

// Goal: records come in their order, from any of their positions on.
TEST(LogReader, FromAnyRecord) {
  Segment first;
  first.Add("a").Add("bb");
  Segment second(first.position());
  second.Add("ccc");
  const Image image = ImageOf({{0, first.bytes() + std::string(500, '\0')},
                               {second.begin(), second.bytes() + std::string(500, '\0')}});
  EXPECT_EQ(Reading(image).payloads, (Payloads{"a", "bb", "ccc"}));
  EXPECT_EQ(Reading(image, kRecordHeaderBytes + 1).payloads, (Payloads{"bb", "ccc"}));
  EXPECT_EQ(Reading(image, second.begin()).payloads, Payloads{"ccc"});
  const Reading at_end(image, second.position());
  EXPECT_TRUE(at_end.status.ok());
  EXPECT_TRUE(at_end.payloads.empty());
}

// Goal: zeroes behind the last record are its end; anything else there is torn, also behind zeroes.
TEST(LogReader, Ends) {
  const Segment segment = Segment().Add("a");
  for (const size_t zeroes : {0, 1, 23, 24, 100, 3'000'000}) {
    const Reading reading(ImageOf({{0, segment.bytes() + std::string(zeroes, '\0')}}));
    EXPECT_TRUE(reading.status.ok());
    EXPECT_EQ(reading.payloads, Payloads{"a"});
    EXPECT_FALSE(reading.is_torn) << zeroes;
    EXPECT_EQ(reading.position, segment.position());
  }
  const std::string torn = Segment(segment.position()).Add("torn record").bytes();
  for (size_t length = 1; length < torn.size(); ++length) {
    for (const size_t zeroes : {0, 100}) {
      const Reading reading(
          ImageOf({{0, segment.bytes() + torn.substr(0, length) + std::string(zeroes, '\0')}}));
      EXPECT_TRUE(reading.status.ok());
      EXPECT_EQ(reading.payloads, Payloads{"a"});
      EXPECT_TRUE(reading.is_torn) << length;
    }
  }
  for (size_t zeroed = 1; zeroed < torn.size(); ++zeroed) {
    const std::string rest = std::string(zeroed, '\0') + torn.substr(zeroed);
    const Reading reading(ImageOf({{0, segment.bytes() + rest}}));
    EXPECT_EQ(reading.payloads, Payloads{"a"});
    EXPECT_TRUE(reading.is_torn) << zeroed;
  }
}

// Goal: a segment that is used again ends where its new records end, and is not torn for what is
// left of old ones.
// Method: the old bytes are good records of another position, at each distance to the new ones.
TEST(LogReader, StaleBytes) {
  const Segment segment = Segment(5'000).Add("new");
  for (size_t shift = 0; shift < 40; ++shift) {
    const Segment old = Segment(100 + shift).Add(ProgressOf(9'000)).Add("old").Add(kEnd);
    const Reading reading(
        ImageOf({{5'000, segment.bytes() + std::string(shift, '\0') + old.bytes()}}), 5'000);
    EXPECT_TRUE(reading.status.ok());
    EXPECT_EQ(reading.payloads, Payloads{"new"});
    EXPECT_FALSE(reading.is_torn) << shift;
  }
}

// Goal: among old bytes, too, a record that was not completed is told from them.
// Method: a segment full of old records; the new ones are written over it up to each byte.
TEST(LogReader, TornAmongStaleBytes) {
  Segment old(100);
  while (old.bytes().size() < 500) old.Add("old").Add(ProgressOf(9'000));
  Segment segment(5'000);
  segment.Add("new");
  const size_t first = segment.bytes().size();
  segment.Add("the next one");
  for (size_t length = first; length < segment.bytes().size(); ++length) {
    const std::string written = segment.bytes().substr(0, length);
    const Reading reading(ImageOf({{5'000, written + old.bytes().substr(length)}}), 5'000);
    EXPECT_TRUE(reading.status.ok());
    EXPECT_EQ(reading.payloads, Payloads{"new"});
    // A part of a header may look like old bytes.
    if (length > first && length < first + kRecordHeaderBytes) continue;
    EXPECT_EQ(reading.is_torn, length > first) << length - first;
  }
}

// Goal: good records that are cut off with a bad one are told of, whatever is left of that.
TEST(LogReader, RecordsBehindAHole) {
  const Segment before = Segment().Add("a");
  const Segment behind = Segment(before.position() + 40).Add("b");
  for (const bool in_next_segment : {false, true}) {
    Image image = ImageOf({{0, before.bytes() + std::string(40, '\0')}});
    if (in_next_segment) {
      image[SegmentName(behind.begin())] = behind.bytes();
    } else {
      image[SegmentName(0)] += behind.bytes();
    }
    const Reading reading(image);
    EXPECT_TRUE(reading.status.ok());
    EXPECT_EQ(reading.payloads, Payloads{"a"});
    EXPECT_TRUE(reading.is_torn) << in_next_segment;
  }
}

// Goal: where segments overlap the later one counts, and only that.
TEST(LogReader, Overlap) {
  Segment first;
  first.Add("a");
  const uint64_t middle = first.position();
  first.Add("old b").Add("old c");
  const Segment second = Segment(middle).Add("new b");
  const Image image = ImageOf({{0, first.bytes()}, {middle, second.bytes()}});
  EXPECT_EQ(Reading(image).payloads, (Payloads{"a", "new b"}));
  // Also if it has nothing good: what it replaces is void.
  const Reading reading(ImageOf({{0, first.bytes()}, {middle, std::string(100, '\0')}}));
  EXPECT_TRUE(reading.status.ok());
  EXPECT_EQ(reading.payloads, Payloads{"a"});
}

struct Case {
  const char* what;
  std::vector<std::string> behind;  // payloads behind the bad record
  bool is_damage;
};

// Goal: a bad record is damage if one behind it says that it was synced, else the torn end.
TEST(LogReader, WasSynced) {
  Segment before;
  before.Add("a").Add("b");
  const uint64_t bad = kRecordHeaderBytes + 1;  // the position of b
  const std::vector<Case> cases = {
      {"nothing", {}, false},
      {"changes", {"\x01"}, false},
      {"synced up to the bad one", {ProgressOf(bad)}, false},
      {"synced behind it", {ProgressOf(bad + 1)}, true},
      {"said late", {"\x01", ProgressOf(0), "\x01", ProgressOf(before.position())}, true},
      {"the end", {kEnd}, true},
      {"not a progress", {std::string("\x03\xff", 2)}, false},
  };
  for (const Case& c : cases) {
    for (const bool in_next_segment : {false, true}) {
      SCOPED_TRACE(std::string(c.what) + (in_next_segment ? ", in the next segment" : ""));
      Segment behind(before.position());
      for (const std::string& payload : c.behind) behind.Add(payload);
      Image image = ImageOf({{0, before.bytes()}});
      if (in_next_segment) {
        image[SegmentName(behind.begin())] = behind.bytes();
      } else {
        image[SegmentName(0)] += behind.bytes();
      }
      image[SegmentName(0)][bad + kRecordHeaderBytes] ^= 1;  // its payload
      Reading reading(image);
      EXPECT_EQ(reading.payloads, Payloads{"a"});
      EXPECT_EQ(reading.status.code(), c.is_damage ? Code::kCorrupt : Code::kOk);
      EXPECT_EQ(reading.file, std::string(kTestDirectory) + "/" + SegmentName(0));
      EXPECT_EQ(reading.position, bad);
      if (c.is_damage) {
        EXPECT_EQ(reading.status.detail(), bad);
      } else {
        EXPECT_TRUE(reading.is_torn);
      }
    }
  }
}

// Goal: behind damage there is more, and how much was left out is said.
TEST(LogReader, Skip) {
  Segment segment;
  segment.Add("a").Add("bad").Add("c").Add("bad, too");
  const uint64_t last = segment.position();
  segment.Add(ProgressOf(last)).Add("d");
  std::string bytes = segment.bytes();
  bytes[kRecordHeaderBytes + 1 + 8] ^= 1;  // the size of the first bad one
  bytes[last - 1] ^= 1;                    // the payload of the second one
  Reading reading(ImageOf({{0, bytes}}));
  EXPECT_EQ(reading.status.code(), Code::kCorrupt);
  EXPECT_EQ(reading.Skip(), kRecordHeaderBytes + 3);
  reading.ReadOn();
  EXPECT_EQ(reading.payloads, (Payloads{"a", "c"}));
  EXPECT_EQ(reading.status.code(), Code::kCorrupt);
  EXPECT_EQ(reading.Skip(), kRecordHeaderBytes + 8);
  reading.ReadOn();
  EXPECT_TRUE(reading.status.ok());
  EXPECT_EQ(reading.payloads, (Payloads{"a", "c", ProgressOf(last), "d"}));
  EXPECT_EQ(reading.Skip(), 0u);
}

// Goal: a record larger than the reader's buffer, and many that cross its end, are read.
TEST(LogReader, LargeRecords) {
  Segment segment;
  Payloads written;
  for (const size_t bytes : {1, 100, 3'000'000, 1'048'000, 700, 1'100'000, 5}) {
    written.push_back(std::string(bytes, static_cast<char>('a' + written.size())));
    segment.Add(written.back());
  }
  EXPECT_TRUE(Reading(ImageOf({{0, segment.bytes()}})).payloads == written);
}

// Goal: a header that says more than there is does not make the reader take memory, or fail.
TEST(LogReader, LargeSizes) {
  for (const uint64_t size :
       {uint64_t{1} << 20, kRecordBytesMax, kRecordBytesMax + 1, UINT64_MAX}) {
    std::string bytes = Segment().Add("a").bytes();
    const uint64_t at = bytes.size();
    bytes.resize(at + kRecordHeaderBytes);
    WriteHeader({.payload_bytes = size, .position = at}, &bytes[at]);
    const Reading reading(ImageOf({{0, bytes}}));
    EXPECT_TRUE(reading.status.ok());
    EXPECT_EQ(reading.payloads, Payloads{"a"});
    EXPECT_TRUE(reading.is_torn);
  }
}

TEST(LogReader, ReadsProgress) {
  std::string payload = {static_cast<char>(RecordType::kProgress)};
  for (const uint64_t number : {uint64_t{300}, uint64_t{2}, uint64_t{0}, uint64_t{7},
                                uint64_t{4'000'000'000}, UINT64_MAX}) {
    AppendVarint(payload, number);
  }
  const auto progress = ReadProgress(payload);
  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(progress->synced_position, 300u);
  ASSERT_EQ(progress->complete.size(), 2u);
  EXPECT_EQ(progress->complete[1].keyspace, 4'000'000'000u);
  EXPECT_EQ(progress->complete[1].version, UINT64_MAX);
  for (size_t length = 0; length < payload.size(); ++length) {
    EXPECT_FALSE(ReadProgress(std::string_view(payload).substr(0, length))) << length;
  }
  EXPECT_FALSE(ReadProgress(payload + "x"));
  EXPECT_FALSE(ReadProgress(std::string("\x03\0\xff\xff\xff\xff\x0f", 7)));  // 2^32 - 1 keyspaces
}

}  // namespace
}  // namespace skep::durable
