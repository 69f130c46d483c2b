// What every fabric does once two endpoints are connected: operations on regions, and messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/sanitized.h"
#include "rma/testing/fabric_test.h"

namespace skep::rma {
namespace {

using Kind = Event::Kind;

class FabricOperations : public FabricTest {
 protected:
  void SetUp() override {
    std::iota(Words(*writable_), Words(*writable_) + kWords, 1);
    std::iota(Words(*readable_), Words(*readable_) + kWords, 1'000'000'000);
    target_ = OpenTarget({{writable_.get(), Access::kReadWrite}, {readable_.get(), Access::kRead}});
    caller_ = Open({});
    std::tie(peer_, caller_peer_) = Connect(caller_, target_);
  }

  std::unique_ptr<SharedMemory> writable_ = NewMemory();
  std::unique_ptr<SharedMemory> readable_ = NewMemory();
  Node* target_ = nullptr;
  Node* caller_ = nullptr;
  PeerId peer_ = 0;         // the target, as the caller calls it
  PeerId caller_peer_ = 0;  // the caller, as the target calls it
};

// Goal: a peer learns what regions there are; of none, and of nobody, there are no bytes.
TEST_P(FabricOperations, RegionsAreTold) {
  EXPECT_EQ((*caller_)->RegionBytes(peer_, 0), kRegionBytes);
  EXPECT_EQ((*caller_)->RegionBytes(peer_, 1), kRegionBytes);
  EXPECT_EQ((*caller_)->RegionBytes(peer_, 2), 0u);
  EXPECT_EQ((*caller_)->RegionBytes(peer_ + 1, 0), 0u);
  EXPECT_EQ((*target_)->RegionBytes(caller_peer_, 0), 0u);
  const Capabilities& capabilities = (*caller_)->capabilities();
  EXPECT_FALSE(capabilities.name.empty());
  EXPECT_GE(capabilities.post_operations_max, 64u);
  EXPECT_GE(capabilities.post_bytes_max, size_t{1} << 20);
  EXPECT_NE(capabilities.one_sided, capabilities.needs_target_progress);
}

// Goal: what is read is what is there, of a word and of a whole region, from either region.
TEST_P(FabricOperations, Reads) {
  uint64_t word = 0;
  ASSERT_TRUE(Do(caller_, peer_, {Read(5, 1, &word)}).ok());
  EXPECT_EQ(word, 6u);
  ASSERT_TRUE(Do(caller_, peer_, {Read(kWords - 1, 1, &word, 1)}).ok());
  EXPECT_EQ(word, 1'000'000'000 + kWords - 1);
  std::vector<uint64_t> large(kWords / 4);  // 1 MiB
  ASSERT_TRUE(Do(caller_, peer_, {Read(kWords / 2, large.size(), large.data())}).ok());
  EXPECT_TRUE(std::ranges::equal(large, std::span(Words(*writable_) + kWords / 2, large.size())));
}

// Goal: what is written is there once kDone is, and nothing beside it has changed.
TEST_P(FabricOperations, Writes) {
  std::vector<uint64_t> bytes(kWords / 4, 7);
  ASSERT_TRUE(Do(caller_, peer_, {Write(10, bytes.size(), bytes.data())}).ok());
  const uint64_t* const words = Words(*writable_);
  EXPECT_EQ(words[9], 10u);
  EXPECT_TRUE(std::ranges::equal(bytes, std::span(words + 10, bytes.size())));
  EXPECT_EQ(words[10 + bytes.size()], 11 + bytes.size());
}

// Goal: what a Post of reads has not read yet is not written to its local bytes any more once it is
// abandoned, and its kDone comes all the same; posts before and behind it are read.
TEST_P(FabricOperations, AbandonedReadsWriteNothing) {
  constexpr size_t kCount = 3;
  uint64_t words[kCount] = {};
  for (size_t i = 0; i < kCount; ++i) {
    const Operation read = Read(5 + i, 1, &words[i]);
    (*caller_)->Post(peer_, 100 + i, {&read, 1});
  }
  const bool is_given_back = (*caller_)->Abandon(peer_, 101);
  const uint64_t left = std::exchange(words[1], 77);
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_TRUE(Take(caller_, Kind::kDone, peer_, 100 + i).status.ok());
  }
  EXPECT_EQ(words[0], 6u);
  EXPECT_EQ(words[2], 8u);
  if (is_given_back) {
    EXPECT_EQ(words[1], 77u);
    EXPECT_TRUE(left == 0 || left == 7) << left;
  }
}

// Goal: any mix of reads and writes agrees with an array of words.
// Method: one Post at a time, of operations that do not overlap, since these are in no order (F2).
TEST_P(FabricOperations, AgreeWithModel) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  std::vector<uint64_t> model(Words(*writable_), Words(*writable_) + kWords);
  for (int round = 0; round < Rounds(200); ++round) {
    std::vector<Operation> operations;
    std::vector<std::vector<uint64_t>> buffers;
    uint64_t at = random.Below(1000);
    const uint64_t count = 1 + random.Below(100);
    while (operations.size() < count) {
      const uint64_t words = 1 + random.Below(random.Chance(1, 20) ? 2000 : 20);
      if (at + words > kWords) break;
      buffers.emplace_back(words);
      if (random.Chance(1, 2)) {
        std::ranges::generate(buffers.back(), [&] { return random.Below(1 << 30); });
        operations.push_back(Write(at, words, buffers.back().data()));
      } else {
        operations.push_back(Read(at, words, buffers.back().data()));
      }
      at += words + random.Below(50);
    }
    ASSERT_TRUE(Do(caller_, peer_, operations).ok());
    for (size_t i = 0; i < operations.size(); ++i) {
      const auto part = std::span(model).subspan(operations[i].offset / 8, buffers[i].size());
      if (operations[i].kind == Operation::Kind::kWrite)
        std::ranges::copy(buffers[i], part.begin());
      ASSERT_TRUE(std::ranges::equal(buffers[i], part)) << "round " << round;
    }
  }
  EXPECT_TRUE(std::ranges::equal(model, std::span(Words(*writable_), kWords)));
}

// Goal: an operation that is not within a region is refused, whatever its numbers; the ones after
// it work.
TEST_P(FabricOperations, BoundsAreKept) {
  uint64_t word = 77;
  const auto code = [&](Operation::Kind kind, uint32_t region, uint64_t offset, uint32_t bytes) {
    return Do(caller_, peer_,
              {{.kind = kind, .region = region, .offset = offset, .bytes = bytes, .local = &word}})
        .code();
  };
  for (const auto kind : {Operation::Kind::kRead, Operation::Kind::kWrite}) {
    EXPECT_EQ(code(kind, 0, kRegionBytes, 8), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, 0, kRegionBytes - 8, 16), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, 0, ~uint64_t{7}, 8), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, 0, ~uint64_t{7}, ~uint32_t{7}), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, 0, 8, ~uint32_t{7}), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, 0, 4, 8), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, 0, 0, 4), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, 0, 0, 0), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, 2, 0, 8), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, 65'536, 0, 8), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, ~uint32_t{0}, 0, 8), Code::kInvalidArgument);
    EXPECT_EQ(code(kind, 0, kRegionBytes - 8, 8), Code::kOk);
  }
  EXPECT_EQ(Words(*writable_)[kWords - 1], word);
  EXPECT_EQ(Words(*writable_)[0], 1u);
}

// Goal: a region that is only read is not written, and the refusal tells so.
TEST_P(FabricOperations, AccessIsKept) {
  uint64_t word = 77;
  EXPECT_EQ(Do(caller_, peer_, {Write(0, 1, &word, 1)}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Words(*readable_)[0], 1'000'000'000u);
  EXPECT_TRUE(Do(caller_, peer_, {Read(0, 1, &word, 1)}).ok());
}

// Goal: the limits of a Post are those that the capabilities tell; a Post of nothing is done.
TEST_P(FabricOperations, PostsHaveLimits) {
  EXPECT_TRUE(Do(caller_, peer_, {}).ok());
  const Capabilities& capabilities = (*caller_)->capabilities();
  std::vector<uint64_t> words(capabilities.post_operations_max + 1);
  std::vector<Operation> operations;
  for (size_t i = 0; i < words.size(); ++i) operations.push_back(Read(i, 1, &words[i]));
  const Status status = Do(caller_, peer_, operations);
  EXPECT_EQ(status.code(), Code::kTooLarge);
  EXPECT_EQ(status.detail(), capabilities.post_operations_max);
  operations.pop_back();
  EXPECT_TRUE(Do(caller_, peer_, operations).ok());
  EXPECT_EQ(words[capabilities.post_operations_max - 1], capabilities.post_operations_max);

  const uint64_t posts = capabilities.post_bytes_max / kRegionBytes;
  if (posts > 100) return;
  std::vector<uint64_t> large(kWords);
  operations.assign(posts, Read(0, kWords, large.data()));
  operations.push_back(Read(0, 1, large.data()));
  EXPECT_EQ(Do(caller_, peer_, operations).code(), Code::kTooLarge);
  operations.resize(posts - 1);
  EXPECT_TRUE(Do(caller_, peer_, operations).ok());
}

// Goal: an operation that is done later reads what an earlier one wrote, when its caller waited for
// it (F2, F3); each Post has one event with its token.
TEST_P(FabricOperations, ThousandsOfPosts) {
  constexpr uint64_t kPosts = 3000;
  std::vector<uint64_t> written(kPosts);
  std::iota(written.begin(), written.end(), 5'000'000);
  for (uint64_t i = 0; i < kPosts; ++i) {
    const std::vector operations = {Write(i, 1, &written[i])};
    (*caller_)->Post(peer_, i, operations);
  }
  ASSERT_TRUE(Await([&] { return caller_->Count(Kind::kDone) == kPosts; }));
  std::set<uint64_t> tokens;
  for (const Told& t : caller_->told) {
    EXPECT_TRUE(t.status.ok());
    EXPECT_EQ(t.peer, peer_);
    tokens.insert(t.token);
  }
  EXPECT_EQ(tokens.size(), kPosts);
  EXPECT_EQ(*tokens.rbegin(), kPosts - 1);
  caller_->told.clear();
  std::vector<uint64_t> read(kPosts);
  ASSERT_TRUE(Do(caller_, peer_, {Read(0, kPosts, read.data())}).ok());
  EXPECT_EQ(read, written);
  ExpectSilence();
}

// Goal: where operations are one-sided, a target that does not poll is read and written as one that
// does, more often than any queue is long.
TEST_P(FabricOperations, TargetsThatDoNotPoll) {
  if (!(*caller_)->capabilities().one_sided) GTEST_SKIP() << "the target must poll";
  target_->is_stopped = true;
  uint64_t written = 77;
  ASSERT_TRUE(Do(caller_, peer_, {Write(1, 1, &written)}).ok());
  for (uint64_t i = 0; i < 1500; ++i) {
    uint64_t read = 0;
    ASSERT_TRUE(Do(caller_, peer_, {Read(i, 1, &read)}).ok());
    ASSERT_EQ(read, i == 1 ? 77 : i + 1);
  }
}

// Goal: large Posts that are under way together neither disconnect a peer nor get lost: more than
// what may wait unsent, each way, at a target that does not poll at first.
TEST_P(FabricOperations, MoreBytesThanMayWait) {
  auto memory = NewMemory();
  Node* const target =
      OpenTarget({{memory.get(), Access::kReadWrite}}, {.unsent_bytes_max = size_t{256} << 10});
  Node* const caller = Open({.unsent_bytes_max = size_t{256} << 10});
  const PeerId peer = Connect(caller, target).first;
  constexpr uint64_t kPosts = 40;
  constexpr uint64_t kPostWords = 8192;  // 64 KiB
  std::vector<uint64_t> written(kPosts * kPostWords);
  std::vector<uint64_t> read(written.size());
  std::iota(written.begin(), written.end(), 1);
  for (uint64_t i = 0; i < kPosts; ++i) {
    const std::vector operations = {Write(i * kPostWords, kPostWords, &written[i * kPostWords])};
    (*caller)->Post(peer, i, operations);
    caller->Poll();
  }
  ASSERT_TRUE(Await([&] { return caller->Count(Kind::kDone) == kPosts; }));
  for (uint64_t i = 0; i < kPosts; ++i) {
    const std::vector operations = {Read(i * kPostWords, kPostWords, &read[i * kPostWords])};
    (*caller)->Post(peer, kPosts + i, operations);
    caller->Poll();
  }
  ASSERT_TRUE(Await([&] { return caller->Count(Kind::kDone) == 2 * kPosts; }));
  for (const Told& t : caller->told) EXPECT_TRUE(t.status.ok()) << t.status.ToString();
  EXPECT_EQ(caller->told.size(), 2 * kPosts);
  EXPECT_EQ(read, written);
}

// Goal: both sides of one connection read and write the other one's regions.
TEST_P(FabricOperations, GoBothWays) {
  auto memory = NewMemory();
  Node* const both = OpenTarget({{memory.get(), Access::kReadWrite}});
  const auto [target, self] = Connect(both, target_);
  EXPECT_EQ((*target_)->RegionBytes(self, 0), kRegionBytes);
  uint64_t there = 123;
  ASSERT_TRUE(Do(target_, self, {Write(3, 1, &there)}).ok());
  EXPECT_EQ(Words(*memory)[3], 123u);
  uint64_t here = 0;
  ASSERT_TRUE(Do(both, target, {Read(3, 1, &here)}).ok());
  EXPECT_EQ(here, 4u);
}

// Goal: messages of every length arrive as they are, and so do the replies; longer ones are refused
// with the limit, and nothing else is the worse for it.
TEST_P(FabricOperations, MessagesOfEveryLength) {
  constexpr size_t kMax = 100'000;
  Node* const target = OpenTarget({}, {.message_bytes_max = kMax});
  Node* const caller = Open({});
  const PeerId peer = Connect(caller, target).first;
  uint64_t token = 0;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, kMax}) {
    std::string request(bytes, 'q');
    if (bytes > 0) request.back() = 'e';
    (*caller)->Call(peer, ++token, request);
    const Told asked = Take(target, Kind::kRequest);
    EXPECT_EQ(asked.bytes, request);
    std::string reply(kMax - bytes, 'r');
    (*target)->Reply(asked.peer, asked.token, reply);
    const Told answered = Take(caller, Kind::kReply, peer, token);
    EXPECT_TRUE(answered.status.ok());
    EXPECT_EQ(answered.bytes, reply);
  }
  (*caller)->Call(peer, ++token, std::string(kMax + 1, 'q'));
  const Told refused = Take(caller, Kind::kReply, peer, token);
  EXPECT_EQ(refused.status.code(), Code::kTooLarge);
  EXPECT_EQ(refused.status.detail(), kMax);
  EXPECT_EQ(refused.bytes, "");
  (*caller)->Call(peer, ++token, "short");
  const Told asked = Take(target, Kind::kRequest);
  (*target)->Reply(asked.peer, asked.token, std::string(kMax + 1, 'r'));
  EXPECT_EQ(Take(caller, Kind::kReply, peer, token).status.code(), Code::kTooLarge);
  ExpectSilence();
}

// Goal: each of many calls in flight gets its own reply, whatever the order of the replies; two
// with the same token get two.
TEST_P(FabricOperations, RepliesInAnyOrder) {
  constexpr uint64_t kCalls = 500;
  for (uint64_t i = 0; i < kCalls; ++i) (*caller_)->Call(peer_, i / 2, std::to_string(i));
  ASSERT_TRUE(Await([&] { return target_->Count(Kind::kRequest) == kCalls; }));
  std::ranges::shuffle(target_->told, std::mt19937(std::random_device{}()));
  for (const Told& t : target_->told) {
    EXPECT_EQ(t.peer, caller_peer_);
    (*target_)->Reply(t.peer, t.token, "to " + t.bytes);
  }
  target_->told.clear();
  ASSERT_TRUE(Await([&] { return caller_->Count(Kind::kReply) == kCalls; }));
  std::set<std::string> replies;
  for (const Told& t : caller_->told) {
    EXPECT_EQ(std::stoull(t.bytes.substr(3)) / 2, t.token);
    replies.insert(t.bytes);
  }
  EXPECT_EQ(replies.size(), kCalls);
}

// Goal: calls are seen in the order in which they were made, and replies in that in which they were
// given.
TEST_P(FabricOperations, MessagesKeepTheirOrder) {
  constexpr uint64_t kCalls = 200;
  for (uint64_t i = 0; i < kCalls; ++i) (*caller_)->Call(peer_, i, std::to_string(i));
  ASSERT_TRUE(Await([&] { return target_->Count(Kind::kRequest) == kCalls; }));
  for (uint64_t i = 0; i < kCalls; ++i) EXPECT_EQ(target_->told[i].bytes, std::to_string(i));
  std::ranges::reverse(target_->told);
  for (const Told& t : target_->told) (*target_)->Reply(t.peer, t.token, t.bytes);
  target_->told.clear();
  ASSERT_TRUE(Await([&] { return caller_->Count(Kind::kReply) == kCalls; }));
  for (uint64_t i = 0; i < kCalls; ++i) EXPECT_EQ(caller_->told[i].token, kCalls - 1 - i);
}

// Goal: both sides call each other and post at the same time, and each gets what is its own.
TEST_P(FabricOperations, BothSidesCall) {
  const auto echo = [](Node* node) {
    node->on_event = [node](const Told& t) {
      if (t.kind == Kind::kRequest) (*node)->Reply(t.peer, t.token, t.bytes + "!");
    };
  };
  echo(caller_);
  echo(target_);
  constexpr uint64_t kCalls = 100;
  std::vector<uint64_t> read(kCalls);
  for (uint64_t i = 0; i < kCalls; ++i) {
    (*caller_)->Call(peer_, i, "c" + std::to_string(i));
    (*target_)->Call(caller_peer_, i, "t" + std::to_string(i));
    const std::vector operations = {Read(i, 1, &read[i])};
    (*caller_)->Post(peer_, i, operations);
  }
  ASSERT_TRUE(Await([&] {
    return caller_->Count(Kind::kReply) == kCalls && target_->Count(Kind::kReply) == kCalls &&
           caller_->Count(Kind::kDone) == kCalls;
  }));
  for (const auto& [node, name] : {std::pair(caller_, "c"), std::pair(target_, "t")}) {
    for (const Told& t : node->told) {
      if (t.kind != Kind::kReply) continue;
      EXPECT_EQ(t.bytes, name + std::to_string(t.token) + "!");
    }
  }
  for (uint64_t i = 0; i < kCalls; ++i) EXPECT_EQ(read[i], i + 1);
}

// Goal: one target serves many callers, each of which gets its own.
TEST_P(FabricOperations, ManyPeers) {
  std::vector<Node*> callers;
  std::vector<PeerId> peers;
  for (int i = 0; i < 20; ++i) {
    callers.push_back(Open({}));
    peers.push_back(Connect(callers.back(), target_).first);
  }
  std::vector<uint64_t> read(callers.size());
  for (size_t i = 0; i < callers.size(); ++i) {
    (*callers[i])->Call(peers[i], i, std::to_string(i));
    const std::vector operations = {Read(i, 1, &read[i])};
    (*callers[i])->Post(peers[i], i, operations);
  }
  target_->on_event = [&](const Told& t) {
    if (t.kind == Kind::kRequest) (*target_)->Reply(t.peer, t.token, t.bytes);
  };
  for (size_t i = 0; i < callers.size(); ++i) {
    EXPECT_EQ(Take(callers[i], Kind::kReply).bytes, std::to_string(i));
    EXPECT_TRUE(Take(callers[i], Kind::kDone).status.ok());
    EXPECT_EQ(read[i], i + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FabricOperations, testing::ValuesIn(AllBackends()), NameOfBackend);

}  // namespace
}  // namespace skep::rma
