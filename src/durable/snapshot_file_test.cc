// A snapshot's items are read as they were written, and nothing else is ever read.
#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "durable/snapshot_test.h"
#include "sim/file_worlds_test.h"

namespace skep::durable {
namespace {

template <typename World>
class SnapshotFile : public testing::Test {
 protected:
  FileSystem& files() { return world_.files(); }
  std::string path() const { return world_.directory + "/dump.skep"; }

  std::string Bytes(const TestSnapshot& snapshot) {
    const Status status = WriteSnapshot(files(), path(), snapshot);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return *files().ReadAll(path());
  }
  void ExpectRoundTrip(const TestSnapshot& snapshot) {
    Bytes(snapshot);
    const Result<TestSnapshot> read = ReadSnapshot(files(), path());
    ASSERT_TRUE(read) << read.error().ToString();
    EXPECT_TRUE(*read == snapshot);
  }
  // Checks that these bytes are not taken for another snapshot than `original`.
  void ExpectRefused(const std::string& bytes) {
    StoreBytes(files(), path(), bytes);
    const Result<TestSnapshot> read = ReadSnapshot(files(), path());
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), Code::kCorrupt) << read.error().ToString();
    EXPECT_LE(read.error().detail(), bytes.size());
  }

  World world_;
};

TYPED_TEST_SUITE(SnapshotFile, FileWorlds, FileWorldName);

std::string RandomBytes(std::mt19937& rng, size_t bytes, unsigned letters) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(rng() % letters);
  return text;
}

TestSnapshot RandomSnapshot(std::mt19937& rng) {
  TestSnapshot snapshot = {.created_ms = rng(), .keyspaces = {}, .items = {}};
  const auto keyspaces = static_cast<uint32_t>(1 + rng() % 4);
  for (uint32_t i = 0; i < keyspaces; ++i) {
    snapshot.keyspaces.push_back({.index = i * 7,
                                  .engine = RandomBytes(rng, rng() % 256, 256),
                                  .version = rng(),
                                  .now_ms = rng(),
                                  .log_position = rng()});
  }
  const size_t value_bytes_max = rng() % 2 == 0 ? 20 : 20'000;
  for (size_t pieces = rng() % 20; pieces > 0; --pieces) {
    const auto keyspace = static_cast<uint32_t>(rng() % keyspaces * 7);
    for (size_t items = rng() % 300; items > 0; --items) {
      const unsigned letters = rng() % 2 == 0 ? 3 : 256;
      snapshot.items.push_back({.keyspace = keyspace,
                                .key = RandomBytes(rng, rng() % 40, letters),
                                .value = RandomBytes(rng, rng() % value_bytes_max, letters),
                                .deadline_ms = rng() % 3 == 0 ? 0 : uint64_t{rng()} * rng()});
    }
  }
  return Counted(std::move(snapshot));
}

// Goal: any items come back, in their order, with everything that is said of their keyspaces.
TYPED_TEST(SnapshotFile, RandomItems) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  for (int round = 0; round < 15; ++round) this->ExpectRoundTrip(RandomSnapshot(rng));
}

TYPED_TEST(SnapshotFile, NothingAtAll) {
  this->ExpectRoundTrip({});
  this->ExpectRoundTrip({.created_ms = 0, .keyspaces = {{.index = 9}}, .items = {}});
}

TYPED_TEST(SnapshotFile, Small) { this->ExpectRoundTrip(SmallSnapshot()); }

// Goal: the largest keys and values fit, one more byte does not.
TYPED_TEST(SnapshotFile, Limits) {
  const std::string key(kSnapshotKeyBytesMax, 'k');
  std::mt19937 rng(1);
  std::string noise(kSnapshotValueBytesMax, '\0');
  for (size_t i = 0; i + 4 <= noise.size(); i += 4) {
    const auto word = static_cast<uint32_t>(rng());
    memcpy(&noise[i], &word, sizeof(word));
  }
  const std::string zeroes(kSnapshotValueBytesMax, '\0');
  this->ExpectRoundTrip(Counted({.keyspaces = {{.index = 0}},
                                 .items = {{0, "a", "1"},
                                           {0, key, zeroes},
                                           {0, key, noise, UINT64_MAX},
                                           {0, key, ""},
                                           {0, "z", "2"}}}));
  for (const TestItem& item : {TestItem{0, key + "k", ""}, TestItem{0, "", zeroes + "0"}}) {
    const Status status = WriteSnapshot(this->files(), this->path() + "2",
                                        {.keyspaces = {{.index = 0}}, .items = {item}});
    EXPECT_EQ(status.code(), Code::kTooLarge);
    EXPECT_EQ(status.detail(), item.key.empty() ? kSnapshotValueBytesMax : kSnapshotKeyBytesMax);
    EXPECT_EQ(this->files().List(this->world_.directory)->size(), 1u);
  }
}

// Goal: blocks are about as large as they should be, whatever the items.
TYPED_TEST(SnapshotFile, BlocksAreFull) {
  TestSnapshot snapshot = {.keyspaces = {{.index = 0}}, .items = {}};
  for (int i = 0; i < 30'000; ++i) {
    snapshot.items.push_back({0, "key:" + std::to_string(1'000'000 + i), std::string(30, 'v')});
  }
  this->ExpectRoundTrip(Counted(snapshot));
  const auto reader = SnapshotReader::Open(this->files(), this->path());
  ASSERT_TRUE(reader);
  uint64_t raw_bytes = 0;
  for (size_t i = 0; i < (*reader)->block_count(); ++i) {
    const SnapshotBlockInfo block = (*reader)->block(i);
    EXPECT_LE(block.raw_bytes, kSnapshotBlockBytes);
    if (i + 1 < (*reader)->block_count()) {
      EXPECT_GT(block.raw_bytes, kSnapshotBlockBytes - 100);
    }
    EXPECT_LT(block.bytes, block.raw_bytes / 4);
    raw_bytes += block.raw_bytes;
  }
  EXPECT_EQ((*reader)->raw_bytes(), raw_bytes);
  EXPECT_EQ((*reader)->items(), 30'000u);
  // The bytes that a key has in common with the one before are not stored again.
  EXPECT_LT(raw_bytes, 30'000u * (30 + 4 + 4));
}

// Goal: however well a value compresses, its size can be told from the file's.
TYPED_TEST(SnapshotFile, ZeroesAreNotABomb) {
  const std::string bytes = this->Bytes(
      Counted({.keyspaces = {{.index = 0}}, .items = {{0, "key", std::string(8'000'000, '\0')}}}));
  EXPECT_GE(bytes.size(), 8'000'000 / kSnapshotExpansionMax);
  EXPECT_LE(bytes.size(), 8'000'000 / kSnapshotExpansionMax + 300);
}

using SimulatedSnapshotFile = SnapshotFile<SimulatedFiles>;

// Goal: every byte counts, and a fault is found where it is.
TEST_F(SimulatedSnapshotFile, EveryFlippedByteIsFound) {
  const std::string bytes = Bytes(SmallSnapshot());
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0xff, 1, 0x80}) {
      SCOPED_TRACE(testing::Message() << "byte " << at << " of " << bytes.size() << " ^ " << flip);
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ flip);
      ExpectRefused(flipped);
    }
  }
}

TEST_F(SimulatedSnapshotFile, EveryTruncationIsFound) {
  const std::string bytes = Bytes(SmallSnapshot());
  for (size_t left = 0; left < bytes.size(); ++left) {
    SCOPED_TRACE(testing::Message() << left << " bytes left");
    ExpectRefused(bytes.substr(0, left));
  }
  ExpectRefused(bytes + '\0');
  ExpectRefused('\0' + bytes);
}

// Goal: a snapshot that lies in another file is not taken for that file's own.
TEST_F(SimulatedSnapshotFile, SnapshotInAFile) {
  const std::string bytes = Bytes(SmallSnapshot());
  ExpectRefused(bytes + bytes);
  ExpectRefused(bytes.substr(0, sizeof(SnapshotHeader)) + bytes);
}

// Goal: blocks of one file do not fit another place or file.
TEST_F(SimulatedSnapshotFile, ExchangedBlocksAreFound) {
  TestSnapshot snapshot = {.keyspaces = {{.index = 0}, {.index = 1}},
                           .items = {{0, "a", "1"}, {1, "b", "2"}}};
  const std::string bytes = Bytes(Counted(snapshot));
  const auto reader = SnapshotReader::Open(files(), path());
  ASSERT_TRUE(reader);
  const SnapshotBlockInfo first = (*reader)->block(0);
  ASSERT_EQ(first.bytes, (*reader)->block(1).bytes);
  std::string exchanged = bytes;
  std::swap_ranges(exchanged.begin() + first.offset, exchanged.begin() + first.offset + first.bytes,
                   exchanged.begin() + first.offset + first.bytes);
  ExpectRefused(exchanged);

  snapshot.items[0].value = "2";
  std::string other = Bytes(Counted(snapshot));
  other.replace(first.offset, first.bytes, bytes.substr(first.offset, first.bytes));
  ExpectRefused(other);
}

}  // namespace
}  // namespace skep::durable
