// Entries, batches and messages are read as they were written, and no bytes break a reader.
#include "pool/messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "pool/item.h"

namespace skep::pool {
namespace {

using Kind = LogEntry::Kind;
using Condition = LogEntry::Condition;

LogEntry RandomEntry(Random& random, const std::string& key) {
  LogEntry entry = {
      .kind = static_cast<Kind>(random.Below(static_cast<uint64_t>(LogEntry::kLastKind) + 1)),
      .client = static_cast<uint32_t>(random.Next()),
      .sequence = random.Next()};
  switch (entry.kind) {
    case Kind::kPut:
      entry.slot = Slot(random.Next() | 1);
      [[fallthrough]];
    case Kind::kDelete:
      entry.key = key;
      entry.condition = random.Chance(1, 2) ? Condition::kIfSlot : Condition::kIfPresent;
      if (entry.condition == Condition::kIfSlot) entry.expected = Slot(random.Next());
      break;
    case Kind::kServer:
      entry.range.first = static_cast<uint32_t>(random.Below(kFramesMax / 2));
      entry.range.count = static_cast<uint32_t>(random.Below(1000));
      [[fallthrough]];
    case Kind::kDrain:
    case Kind::kGone:
      entry.range.server = static_cast<uint32_t>(random.Next());
      break;
    case Kind::kLease:
      entry.frames = {static_cast<uint32_t>(random.Below(kFramesMax)), kNoFrame};
      if (random.Chance(1, 2)) entry.frames[1] = static_cast<uint32_t>(random.Below(kFramesMax));
      entry.chunk = static_cast<uint32_t>(random.Below(kChunksMax));
      break;
    case Kind::kAdopt:
      entry.gen = static_cast<uint8_t>(random.Next());
      entry.from = static_cast<uint32_t>(random.Below(kChunksMax));
      [[fallthrough]];
    case Kind::kSeal:
    case Kind::kRecycle:
    case Kind::kShed:
      entry.chunk = static_cast<uint32_t>(random.Below(kChunksMax));
      break;
    case Kind::kJoin:
    case Kind::kLeave:
      break;
  }
  return entry;
}

void ExpectSame(const LogEntry& a, const LogEntry& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.condition, b.condition);
  EXPECT_EQ(a.client, b.client);
  EXPECT_EQ(a.sequence, b.sequence);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.slot, b.slot);
  EXPECT_EQ(a.expected, b.expected);
  EXPECT_EQ(a.chunk, b.chunk);
  EXPECT_EQ(a.frames, b.frames);
  EXPECT_EQ(a.gen, b.gen);
  EXPECT_EQ(a.from, b.from);
  EXPECT_EQ(a.range, b.range);
}

TEST(LogBatch, IsReadAsItWasWritten) {
  SeededRandom random(3);
  for (int round = 0; round < 100; ++round) {
    LogBatch batch(1 + random.Below(1 << 20));
    std::vector<std::string> keys(random.Below(20));
    for (std::string& key : keys) {
      key.assign(random.Below(100), static_cast<char>(random.Below(256)));
      batch.Add(RandomEntry(random, key));
    }
    std::string bytes;
    batch.EncodeTo(bytes);
    std::string_view left = bytes;
    LogBatch read;
    ASSERT_TRUE(LogBatch::Decode(left, &read));
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(read.first_index(), batch.first_index());
    ASSERT_EQ(read.size(), batch.size());
    for (size_t i = 0; i < batch.size(); ++i) ExpectSame(read.entry(i), batch.entry(i));
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      left = std::string_view(bytes).substr(0, cut);
      EXPECT_FALSE(LogBatch::Decode(left, &read)) << cut;
    }
  }
}

TEST(LogEntry, WhatCannotBeIsRefused) {
  const auto can_be = [](const LogEntry& entry) {
    std::string bytes;
    EncodeEntry(entry, bytes);
    std::string_view left = bytes;
    LogEntry read;
    return DecodeEntry(left, &read);
  };
  const std::string long_key(kKeyBytesMax + 1, 'k');
  EXPECT_TRUE(can_be({.kind = Kind::kPut, .key = "key", .slot = Slot(1)}));
  EXPECT_FALSE(can_be({.kind = Kind::kPut, .key = "key"})) << "no slot";
  EXPECT_FALSE(can_be({.kind = Kind::kPut, .key = long_key, .slot = Slot(1)}));
  EXPECT_FALSE(can_be({.kind = Kind::kDelete, .condition = Condition::kIfAbsent, .key = "key"}));
  EXPECT_FALSE(can_be({.kind = Kind::kLease, .chunk = kChunksMax}));
  EXPECT_FALSE(can_be({.kind = Kind::kLease, .frames = {kFramesMax, kNoFrame}}));
  EXPECT_FALSE(can_be({.kind = Kind::kAdopt, .from = kChunksMax}));
  EXPECT_FALSE(can_be({.kind = Kind::kServer, .range = {.first = kFramesMax, .count = 1}}));
}

TEST(Messages, AreReadAsTheyWereWritten) {
  const ScanRequest scan = {.epoch = 7,
                            .lower = "a",
                            .upper = "b",
                            .has_upper = true,
                            .is_reverse = true,
                            .counts_only = true,
                            .limit = 9};
  std::string bytes;
  EncodeScan(scan, bytes);
  std::string_view left = bytes;
  ScanRequest read;
  ASSERT_TRUE(DecodeScan(left, &read));
  EXPECT_EQ(read.epoch, 7u);
  EXPECT_EQ(read.lower, "a");
  EXPECT_EQ(read.upper, "b");
  EXPECT_TRUE(read.has_upper && read.is_reverse && read.counts_only && !read.seeks_floor);
  EXPECT_EQ(read.limit, 9u);

  bytes.clear();
  EncodeScanReply({.applied = 5, .count = 6, .more = true, .next = "n", .slots = "12345678"},
                  bytes);
  left = bytes;
  ScanReply reply;
  ASSERT_TRUE(DecodeScanReply(left, &reply));
  EXPECT_EQ(reply.applied, 5u);
  EXPECT_EQ(reply.count, 6u);
  EXPECT_TRUE(reply.more);
  EXPECT_EQ(reply.next, "n");
  EXPECT_EQ(reply.slots, "12345678");

  bytes.clear();
  EncodeStatus({.items = 1, .chunks = 2, .free_chunks = 3, .clients = 4, .live_units = 5}, bytes);
  PoolStatus status;
  ASSERT_TRUE(DecodeStatus(bytes, &status));
  EXPECT_EQ(status.items, 1u);
  EXPECT_EQ(status.clients, 4u);
  EXPECT_EQ(status.live_units, 5u);
}

TEST(Messages, VictimsComeAsTheyWere) {
  std::string bytes;
  EncodeVictimsRequest({.by_age = true,
                        .from_rank = 1 << 20,
                        .from_chunk = 3,
                        .found_nothing = true,
                        .figures = {.items_moved = 4, .chunks_evicted = 5}},
                       bytes);
  VictimsRequest request;
  ASSERT_TRUE(DecodeVictimsRequest(bytes, &request));
  EXPECT_TRUE(request.by_age && request.found_nothing);
  EXPECT_EQ(request.from_rank, 1u << 20);
  EXPECT_EQ(request.from_chunk, 3u);
  EXPECT_EQ(request.figures.items_moved, 4u);
  EXPECT_EQ(request.figures.chunks_evicted, 5u);
  EXPECT_FALSE(DecodeVictimsRequest(bytes + "x", &request));

  bytes.clear();
  EncodeVictims(
      {.missing = 2, .victims = {{.chunk = 1, .gen = 2, .live_units = 3, .sealed_index = 4}, {}}},
      bytes);
  Victims victims;
  ASSERT_TRUE(DecodeVictims(bytes, &victims));
  EXPECT_EQ(victims.missing, 2u);
  ASSERT_EQ(victims.victims.size(), 2u);
  EXPECT_EQ(victims.victims[0].gen, 2);
  EXPECT_EQ(victims.victims[0].sealed_index, 4u);
  EXPECT_FALSE(DecodeVictims(bytes + "x", &victims));
}

TEST(Messages, NoBytesBreakAReader) {
  SeededRandom random(4);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random.Below(40), '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random.Chance(1, 2) ? random.Below(9) : random.Next());
    std::string_view left = bytes;
    LogBatch batch;
    LogBatch::Decode(left, &batch);
    left = bytes;
    ScanRequest scan;
    DecodeScan(left, &scan);
    left = bytes;
    ScanReply reply;
    DecodeScanReply(left, &reply);
    left = bytes;
    CommitVerdict verdict;
    TakeVerdict(left, &verdict);
    PoolStatus status;
    DecodeStatus(bytes, &status);
    VictimsRequest request;
    DecodeVictimsRequest(bytes, &request);
    Victims victims;
    DecodeVictims(bytes, &victims);
  }
}

TEST(AppliedWord, TellsEpochAndIndex) {
  const AppliedWord word(5, 123);
  EXPECT_EQ(word.index(), 123u);
  EXPECT_TRUE(word.IsOf(5));
  EXPECT_FALSE(word.IsOf(6));
  EXPECT_TRUE(AppliedWord(AppliedWord::kEpochMask + 6, 0).IsOf(5));
}

}  // namespace
}  // namespace skep::pool
