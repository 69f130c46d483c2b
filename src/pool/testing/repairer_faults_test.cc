// What becomes of copies whose copier is killed, or stopped for long, before any of its messages.
#include <gtest/gtest.h>

#include <algorithm>

#include "pool/client_session.h"
#include "pool/fields.h"
#include "pool/testing/cleaner_world.h"

namespace skep::pool {
namespace {

constexpr uint32_t kFirst = 101;
constexpr uint32_t kSecond = 102;

class RepairerFaultsTest : public CleanerWorld {
 protected:
  // A pool of three memory servers, the first of which is gone or is to be drained, and an agent
  // whose messages are counted.
  void BeginCounted(bool drains) {
    Begin(Eviction::kNone, 3);
    agent_.reset();
    Await([&] { return chunks().servers().size() == 3; });
    ASSERT_TRUE(Fill("a", 50, kTwentieth));
    if (drains) {
      Drain(kFirst);
    } else {
      LoseServer(kFirst);
    }
    messages_ = {.counts_posts = true};
    fabric_ = std::make_unique<CountedFabric>(pool_->fabric(), messages_);
    agent_ = NewAgent(*fabric_);
  }
  void LoseServer(uint32_t server) {
    pool_->Kill(server);
    pool_->EndSession(server);
    for (const uint32_t index : {1, 2}) pool_->Tell(index);
    Await([&] { return chunks().FindServer(server)->state == Chunks::ServerState::kGone; });
  }
  void Drain(uint32_t server) {
    ClientSession session(pool_->fabric().Open({}).value(), pool_->simulation().clock(),
                          [this] { return pool_->map(); });
    session.set_deadline_ns(pool_->now_ns() + 10'000 * kMs);
    std::string request(1, static_cast<char>(MessageKind::kDrain));
    AppendVarint(request, server);
    ReplyCode code;
    ASSERT_TRUE(session.Call(ClientSession::To::kHashServer, request, &code).has_value());
  }
  // Goes on with the client's upkeep until it is so.
  void Await(const std::function<bool()>& is_so) {
    for (int i = 0; i < 10'000 && !is_so(); ++i) {
      engine_->Maintain(0);
      pool_->Sleep(10 * kMs);
    }
    ASSERT_TRUE(is_so());
  }
  // Every chunk with items lies on two servers, none of which is the first.
  bool IsRepaired() {
    return std::ranges::all_of(chunks().all(), [this](const Chunks::Chunk& chunk) {
      return chunk.items == 0 || std::ranges::all_of(chunk.frames, [this](uint32_t frame) {
               return frame != kNoFrame && chunks().ServerOf(frame).range.server != kFirst;
             });
    });
  }
  void Repair(int turns) {
    for (int i = 0; i < turns && !messages_.is_dead && !IsRepaired(); ++i) {
      engine_->Maintain(0);
      TurnOrPause(*agent_);
    }
  }
  bool LosesRepairer(uint64_t k, bool drains);
  bool StopsRepairer(uint64_t k, uint64_t stop_ns, int writes);

  MessageCount messages_;
  std::unique_ptr<CountedFabric> fabric_;
};

// The copier dies before its k-th message, and another one does the work; then the next memory
// server may go. False: it does not send so many.
bool RepairerFaultsTest::LosesRepairer(uint64_t k, bool drains) {
  BeginCounted(drains);
  messages_.sent_max = k;
  Repair(1'000);
  if (!messages_.is_dead) {
    EXPECT_TRUE(IsRepaired()) << k;
    return false;
  }
  ExpectAllIsThere();
  messages_ = {};
  agent_ = NewAgent(pool_->fabric());
  Repair(1'000);
  EXPECT_TRUE(IsRepaired()) << k;
  LoseServer(kSecond);
  ExpectAllIsThere();
  return true;
}

TEST_F(RepairerFaultsTest, TheRepairerMayDieBeforeAnyMessage) {
  uint64_t k = 0;
  while (!HasFailure() && LosesRepairer(k, false)) ++k;
  EXPECT_GT(k, 12u);
}

TEST_F(RepairerFaultsTest, TheRepairerMayDieBeforeAnyMessageOfADrain) {
  uint64_t k = 0;
  while (!HasFailure() && LosesRepairer(k, true)) ++k;
  EXPECT_GT(k, 12u);
}

// The copier stops before its k-th message for so long, while clients write everything anew so
// often, and another one copies. Then it goes on. False: it does not send so many.
bool RepairerFaultsTest::StopsRepairer(uint64_t k, uint64_t stop_ns, int writes) {
  BeginCounted(false);
  bool is_stopped = false;
  bool goes_on = false;
  messages_.before_each = [&] {
    if (is_stopped || messages_.sent != k) return;
    is_stopped = true;
    pool_->Sleep(stop_ns);
    goes_on = true;
  };
  AddAgentFiber();
  for (int i = 0; i < 1'000 && !is_stopped && !IsRepaired(); ++i) {
    engine_->Maintain(0);
    pool_->Sleep(UpkeepThread::kPauseMs * kMs);
  }
  const auto other = NewAgent(pool_->fabric());
  const auto keys = keys_;
  for (int round = 0; round < writes && is_stopped; ++round) {
    for (const auto& [key, value] : keys) {
      for (int i = 0; i < 200 && !Put(key, kTwentieth).ok(); ++i) TurnOrPause(*other);
    }
  }
  EXPECT_FALSE(goes_on) << "it was to be stopped for longer";
  for (int i = 0; is_stopped && (i < 300 || !goes_on); ++i) {
    TurnOrPause(*other);
    if (i % 20 == 0) Get(keys_.begin()->first);
  }
  EndAgentFiber();
  ExpectAllIsThere();
  return is_stopped;
}

// Until the pool has forgotten it.
TEST_F(RepairerFaultsTest, TheRepairerMayStopForLongBeforeAnyMessage) {
  uint64_t k = 0;
  while (!HasFailure() && StopsRepairer(k, 2 * kTimes.silence_ns_max, 1)) ++k;
  EXPECT_GT(k, 12u);
}

// The pool knows it yet, and what it was copying is another generation by then. Before every fifth
// message: each of these runs takes seconds.
TEST_F(RepairerFaultsTest, TheRepairerMayStopForAWhile) {
  uint64_t k = 0;
  while (!HasFailure() && StopsRepairer(k, kTimes.silence_ns_max / 2, 12)) k += 5;
  EXPECT_GT(k, 12u);
}

}  // namespace
}  // namespace skep::pool
