// Which pieces of a state a newcomer takes.
#include "pool/state_receiver.h"

#include <gtest/gtest.h>

#include <string>

#include "model/model_engine.h"
#include "pool/fields.h"

namespace skep::pool {
namespace {

using Result = StateReceiver::Result;

class StateReceiverTest : public testing::Test {
 protected:
  // Of a transfer over a connection of this number.
  Result Take(rma::PeerId peer, uint64_t epoch, uint64_t attempt, uint64_t number, StatePart part,
              const std::string& more = "") {
    std::string fields;
    AppendVarint(fields, epoch);
    AppendVarint(fields, attempt);
    AppendVarint(fields, number);
    fields.push_back(static_cast<char>(part));
    return receiver_.Take(peer, fields + more);
  }
  Result Begin(rma::PeerId peer, uint64_t epoch, uint64_t attempt) {
    std::string more(1, 7);
    for (int i = 0; i < 4; ++i) AppendWord(more, 1);
    return Take(peer, epoch, attempt, 0, StatePart::kBegin, more);
  }
  static std::string Key(const std::string& key, Slot slot) {
    std::string bytes;
    AppendBytes(bytes, key);
    AppendSlot(bytes, slot);
    return bytes;
  }
  std::unique_ptr<Engine> MakeTree() {
    EngineOptions options;
    options.budget = &budget_;
    return ModelEngine::kInfo.make(options);
  }

  MemoryBudget budget_;
  StateReceiver receiver_{[this] { return MakeTree(); }};
};

TEST_F(StateReceiverTest, TakesAStateInItsOrder) {
  EXPECT_EQ(Begin(1, 3, 1), Result::kBegun);
  EXPECT_EQ(Take(1, 3, 1, 1, StatePart::kKeys, Key("a", Slot(1)) + Key("b", Slot(2))),
            Result::kTaken);
  EXPECT_EQ(Take(1, 3, 1, 2, StatePart::kKeys, Key("a", Slot()) + Key("b", Slot(3))),
            Result::kTaken);
  EXPECT_EQ(Take(1, 3, 1, 3, StatePart::kServers, std::string("\1\5\0\1\0\1\0\0", 8)),
            Result::kTaken);
  EXPECT_EQ(Take(1, 3, 1, 4, StatePart::kChunks, std::string("\1\2\3\4\5\6\1\0", 8)),
            Result::kTaken);
  EXPECT_EQ(Take(1, 3, 1, 5, StatePart::kSessions, std::string("\3\0", 2)), Result::kTaken);
  EXPECT_EQ(Take(1, 3, 1, 6, StatePart::kEnd, "\11\4"), Result::kWhole);
  const ReceivedState state = receiver_.TakeState();
  EXPECT_EQ(state.epoch, 3u);
  EXPECT_EQ(state.hash_server, 7u);
  EXPECT_EQ(state.applied, 9u);
  EXPECT_EQ(state.next_client, 4u);
  EXPECT_TRUE(state.sessions.Knows(3));
  EXPECT_EQ(state.chunks.free_count(), 0u);
  EXPECT_EQ(state.chunks.live_units(), 5u);
  EXPECT_EQ(state.chunks.all()[0],
            (Chunks::Chunk{Chunks::State::kLeased, 2, 3, 4, 5, 6, {0, kNoFrame}}));
  EXPECT_EQ(state.tree->Statistics().items, 1u);
}

// T5: messages of a connection that was given up may come after those of the next one.
TEST_F(StateReceiverTest, OnlyTheNewestTransferCounts) {
  EXPECT_EQ(Begin(2, 3, 2), Result::kBegun);
  EXPECT_EQ(Begin(1, 3, 1), Result::kRefused) << "an earlier attempt";
  EXPECT_EQ(Begin(1, 3, 2), Result::kRefused) << "the same";
  EXPECT_EQ(Take(1, 3, 1, 1, StatePart::kKeys), Result::kRefused);
  EXPECT_EQ(Take(1, 3, 2, 1, StatePart::kKeys), Result::kRefused) << "another connection";
  EXPECT_EQ(Take(2, 3, 2, 1, StatePart::kKeys), Result::kTaken);
  EXPECT_EQ(Begin(1, 4, 1), Result::kBegun) << "of a later epoch";
  EXPECT_EQ(Take(2, 3, 2, 2, StatePart::kKeys), Result::kRefused);
}

TEST_F(StateReceiverTest, WithAPieceMissingThereIsNoState) {
  EXPECT_EQ(Begin(1, 3, 1), Result::kBegun);
  EXPECT_EQ(Take(1, 3, 1, 2, StatePart::kKeys), Result::kRefused);
  EXPECT_EQ(Take(1, 3, 1, 1, StatePart::kKeys), Result::kRefused) << "it is over";
  EXPECT_EQ(Begin(1, 3, 2), Result::kBegun);
  EXPECT_EQ(Take(1, 3, 2, 1, StatePart::kServers, std::string("\1\5\0\1\0\1\0\0", 8)),
            Result::kTaken);
  EXPECT_EQ(Take(1, 3, 2, 2, StatePart::kEnd, "\11\4"), Result::kRefused) << "no chunks";
}

TEST_F(StateReceiverTest, HalfAStateGoesWithItsConnection) {
  EXPECT_EQ(Begin(1, 3, 1), Result::kBegun);
  receiver_.HandleLeft(2);
  EXPECT_EQ(Take(1, 3, 1, 1, StatePart::kKeys), Result::kTaken);
  receiver_.HandleLeft(1);
  EXPECT_EQ(Take(1, 3, 1, 2, StatePart::kKeys), Result::kRefused);
}

}  // namespace
}  // namespace skep::pool
