// Waiters of keys by themselves, and the protocol of key_waiters.h in threads.
#include "server/key_waiters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <map>
#include <random>
#include <ranges>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/decimal.h"
#include "base/network.h"
#include "engine/request_chain.h"
#include "keyspace/factory.h"
#include "server/command.h"
#include "types/text.h"
#include "types/value_type.h"

namespace skep {
namespace {

constexpr Command kCommand{};
using State = KeyWaiter::State;

void AddPop(std::span<const std::string_view>, std::span<const std::string_view> keys,
            Batch& batch) {
  static const Function* const pop = FindFunction("list-pop-left");
  const std::string_view one = "1";
  const std::string_view operand = types::JoinTexts({&one, 1}, batch.scratch());
  uint32_t slot = batch.Apply(keys[0], pop, operand);
  for (const std::string_view key : keys.subspan(1)) {
    slot = batch.Add(ChainedAfter(slot, key, pop, operand));
  }
}

// The element of the first slot that has one.
std::string ElementOf(const KeyWaiter& waiter) {
  for (uint32_t slot = 0; slot < waiter.popped_keys.size(); ++slot) {
    std::string_view bytes = waiter.popped->outcome(slot).value;
    std::string_view text;
    if (types::TakeText(bytes, &text)) return std::string(text);
  }
  return {};
}

class KeyWaitersTest : public testing::Test {
 protected:
  Version Execute(Engine& engine, Batch& batch) {
    ++executed_;
    batch.set_now_ms(1);
    return engine.Execute(batch);
  }
  KeyWaiters::Execute executor() {
    return [this](Engine& engine, Batch& batch) { return Execute(engine, batch); };
  }
  // What a writer does before it calls Serve.
  void Write(Batch& batch, std::string_view key, const std::vector<std::string>& elements) {
    static const Function* const push = FindFunction("list-push-right");
    const std::vector<std::string_view> words(elements.begin(), elements.end());
    batch.Apply(key, push, types::JoinTexts(words, batch.scratch()));
    Execute(*engine_, batch);
  }
  void Push(std::string_view key, const std::vector<std::string>& elements) {
    Batch batch;
    Write(batch, key, elements);
    waiters_.Serve(*engine_, batch, executor());
  }
  int64_t LengthOf(std::string_view key) {
    Batch batch;
    batch.Apply(key, FindFunction("list-length"), {});
    Execute(*engine_, batch);
    return batch.outcome(0).integer;
  }
  std::shared_ptr<KeyWaiter> Make(std::shared_ptr<WaiterInbox> inbox, uint64_t client,
                                  const std::vector<std::string>& keys) {
    const std::vector<std::string_view> words(keys.begin(), keys.end());
    auto waiter = std::make_shared<KeyWaiter>(*engine_, kCommand, words, words);
    waiter->kind = types::kList;
    waiter->add_pop = AddPop;
    auto info = std::make_shared<ClientInfo>();
    info->id = client;
    waiter->client = info;
    waiter->inbox = std::move(inbox);
    return waiter;
  }
  std::shared_ptr<WaiterInbox> MakeInbox() {
    return std::make_shared<WaiterInbox>(SocketNetwork().NewPoller());
  }

  MemoryBudget budget_;
  std::unique_ptr<Engine> engine_ = FindEngine("btree")->make({.budget = &budget_});
  KeyWaiters waiters_;
  std::atomic<uint64_t> executed_{0};
};

// Goal: a write executes a pop for each waiter that it serves, and one more; one of a key that
// nobody waits for executes none.
// Method: a thousand waiters of one key; what is executed is counted.
TEST_F(KeyWaitersTest, ServingCostsAPopEach) {
  const auto inbox = MakeInbox();
  for (uint64_t i = 1; i <= 1000; ++i) {
    ASSERT_FALSE(waiters_.Begin(Make(inbox, i, {"key", "other"}), executor()));
  }
  executed_ = 0;
  Push("unrelated", {"x"});
  EXPECT_EQ(executed_, 1u);
  executed_ = 0;
  Push("key", {"a", "b", "c"});
  EXPECT_EQ(executed_, 1u + 3 + 1);
  const auto ended = inbox->Take();
  ASSERT_EQ(ended.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ended[i]->client->id, i + 1);
    EXPECT_EQ(ElementOf(*ended[i]), std::string(1, static_cast<char>('a' + i)));
  }
  EXPECT_EQ(waiters_.size(), 997u);
}

// Goal: keys become ready in the order in which a batch gives them elements, whichever it has
// looked at before.
TEST_F(KeyWaitersTest, WhatChangesNothingMakesNoKeyReady) {
  const auto inbox = MakeInbox();
  ASSERT_FALSE(waiters_.Begin(Make(inbox, 1, {"a"}), executor()));
  ASSERT_FALSE(waiters_.Begin(Make(inbox, 2, {"b"}), executor()));
  Batch batch(Batch::Kind::kAtomic);
  const std::string_view a = "a";
  AddPop({}, {&a, 1}, batch);
  const std::string_view element = "x";
  for (const std::string_view key : {"b", "a"}) {
    batch.Apply(key, FindFunction("list-push-right"),
                types::JoinTexts({&element, 1}, batch.scratch()));
  }
  Execute(*engine_, batch);
  waiters_.Serve(*engine_, batch, executor());
  const auto ended = inbox->Take();
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0]->client->id, 2u);
  EXPECT_EQ(ended[1]->client->id, 1u);
}

// Goal: a write that serves very many does so piece by piece, in order.
// Method: a push of as many elements as there are waiters; the pops of each call are counted.
TEST_F(KeyWaitersTest, ManyAreServedInPieces) {
  constexpr size_t kCount = 3 * KeyWaiters::kPopsMax + 7;
  const auto inbox = MakeInbox();
  std::vector<std::string> elements;
  for (uint64_t i = 1; i <= kCount; ++i) {
    ASSERT_FALSE(waiters_.Begin(Make(inbox, i, {"key"}), executor()));
    elements.push_back(std::to_string(i));
  }
  executed_ = 0;
  Push("key", elements);
  EXPECT_EQ(executed_, 1 + KeyWaiters::kPopsMax);
  EXPECT_TRUE(waiters_.has_left());
  for (int calls = 0; waiters_.has_left(); ++calls) {
    ASSERT_LT(calls, 4);
    executed_ = 0;
    waiters_.ServeMore(executor());
    EXPECT_LE(executed_, KeyWaiters::kPopsMax);
  }
  const auto ended = inbox->Take();
  ASSERT_EQ(ended.size(), kCount);
  for (uint64_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(ended[i]->client->id, i + 1);
    EXPECT_EQ(ElementOf(*ended[i]), elements[i]);
  }
}

// Goal: who comes between a write and the writer's call of Serve does not take what is for those
// who came before, in whatever order it names its keys.
// Method: one thread plays all roles, so that the interleaving is fixed.
TEST_F(KeyWaitersTest, NobodyComesInBetween) {
  const auto inbox = MakeInbox();
  ASSERT_FALSE(waiters_.Begin(Make(inbox, 1, {"key"}), executor()));
  Batch batch;
  Write(batch, "key", {"a", "b"});
  const auto second = Make(inbox, 2, {"other", "key"});
  EXPECT_TRUE(waiters_.Begin(second, executor()));
  EXPECT_EQ(ElementOf(*second), "b");
  EXPECT_FALSE(waiters_.Begin(Make(inbox, 3, {"key", "other"}), executor()));
  waiters_.Serve(*engine_, batch, executor());
  const auto ended = inbox->Take();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0]->client->id, 1u);
  EXPECT_EQ(ElementOf(*ended[0]), "a");
  EXPECT_EQ(waiters_.size(), 1u);
}

// Goal: a client that CLIENT KILL has marked gets nothing more.
TEST_F(KeyWaitersTest, KilledClientsArePassedOver) {
  const auto inbox = MakeInbox();
  const auto killed = Make(inbox, 1, {"key"});
  ASSERT_FALSE(waiters_.Begin(killed, executor()));
  ASSERT_FALSE(waiters_.Begin(Make(inbox, 2, {"key"}), executor()));
  const_cast<ClientInfo&>(*killed->client).ends = true;
  Push("key", {"a", "b"});
  const auto ended = inbox->Take();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0]->client->id, 2u);
  EXPECT_TRUE(waiters_.Leave(*killed, State::kTimedOut));
  EXPECT_FALSE(waiters_.Leave(*killed, State::kTimedOut));
  EXPECT_EQ(waiters_.size(), 0u);
}

// Goal: who has been served cannot be unblocked, and the other way round.
TEST_F(KeyWaitersTest, AWaiterEndsOnce) {
  const auto inbox = MakeInbox();
  const auto waiter = Make(inbox, 7, {"a", "b", "a"});
  EXPECT_EQ(waiter->keys().size(), 2u);
  ASSERT_FALSE(waiters_.Begin(waiter, executor()));
  Push("b", {"x"});
  EXPECT_FALSE(waiters_.Unblock(7, State::kUnblocked));
  EXPECT_FALSE(waiters_.Leave(*waiter, State::kTimedOut));
  EXPECT_EQ(waiter->state, State::kPopped);
  const auto other = Make(inbox, 8, {"a"});
  ASSERT_FALSE(waiters_.Begin(other, executor()));
  EXPECT_TRUE(waiters_.Unblock(8, State::kUnblocked));
  Push("a", {"stays"});
  EXPECT_EQ(other->state, State::kUnblocked);
  const auto last = Make(inbox, 9, {"a"});
  ASSERT_TRUE(waiters_.Begin(last, executor()));
  EXPECT_EQ(ElementOf(*last), "stays");
}

// ---- Threads

// What became of the waiters of one thread.
struct History {
  struct Served {
    uint64_t number;
    std::vector<std::string> keys;
    std::string element;
  };
  std::vector<Served> served;
  uint64_t pushed = 0;

  void Note(const KeyWaiter& waiter) {
    if (waiter.state != State::kPopped) return;
    served.push_back({.number = waiter.number,
                      .keys = {waiter.keys().begin(), waiter.keys().end()},
                      .element = ElementOf(waiter)});
  }
};

// What the threads of the next test do: each is a worker with clients of its own.
class KeyWaitersThreads : public KeyWaitersTest {
 protected:
  static constexpr uint64_t kThreads = 6;
  static constexpr uint64_t kSteps = 1500;
  static constexpr uint64_t kClients = 5;

  static std::string KeyOf(uint64_t thread) { return "key" + std::to_string(thread); }
  static std::string ElementNumber(uint64_t number, uint64_t thread) {
    return std::to_string(number * kThreads + thread);
  }

  void Work(uint64_t thread) {
    Worker worker{.rng = std::mt19937_64(seed_ + thread), .inbox = MakeInbox(), .waiting = {}};
    History& history = histories_[thread];
    for (uint64_t step = 0; step < kSteps; ++step) {
      Step(worker, history, thread);
      Take(worker, history);
    }
    // Now nobody pushes any more: who is not served has no element at its keys.
    all_have_pushed_.arrive_and_wait();
    Take(worker, history);
    for (const auto& [client, waiter] : worker.waiting) {
      for (const std::string_view key : waiter->keys()) EXPECT_EQ(LengthOf(key), 0) << key;
    }
    all_have_looked_.arrive_and_wait();
    for (auto& [client, waiter] : worker.waiting) waiters_.Leave(*waiter, State::kTimedOut);
    Take(worker, history);
  }

  const unsigned seed_ = std::random_device{}();
  std::vector<History> histories_{kThreads};
  std::barrier<> all_have_pushed_{kThreads};
  std::barrier<> all_have_looked_{kThreads};

 private:
  struct Worker {
    std::mt19937_64 rng;
    std::shared_ptr<WaiterInbox> inbox;
    std::map<uint64_t, std::shared_ptr<KeyWaiter>> waiting;  // by client
  };

  static void Take(Worker& worker, History& history) {
    for (const auto& waiter : worker.inbox->Take()) {
      history.Note(*waiter);
      worker.waiting.erase(waiter->client->id);
    }
  }

  // Elements are numbers that rise in the order of the list, since one thread pushes to a key.
  void PushSome(Worker& worker, History& history, uint64_t thread) {
    std::vector<std::string> elements;
    for (uint64_t i = 1 + worker.rng() % 3; i > 0; --i) {
      elements.push_back(ElementNumber(history.pushed++, thread));
    }
    Push(KeyOf(thread), elements);
  }

  void WaitForSome(Worker& worker, History& history, uint64_t client) {
    std::vector<std::string> keys = {KeyOf(worker.rng() % kThreads)};
    if (worker.rng() % 2 == 0) keys.push_back(KeyOf(worker.rng() % kThreads));
    const auto waiter = Make(worker.inbox, client, keys);
    if (waiters_.Begin(waiter, executor())) {
      history.Note(*waiter);
    } else {
      worker.waiting.emplace(client, waiter);
    }
  }

  void Step(Worker& worker, History& history, uint64_t thread) {
    const uint64_t client = thread * kClients + worker.rng() % kClients + 1;
    const auto at = worker.waiting.find(client);
    const uint64_t kind = worker.rng() % 16;
    if (kind < 5) {
      PushSome(worker, history, thread);
    } else if (kind == 5 && at != worker.waiting.end()) {
      if (waiters_.Leave(*at->second, State::kTimedOut)) worker.waiting.erase(at);
    } else if (kind == 6) {
      waiters_.Unblock(worker.rng() % (kThreads * kClients) + 1, State::kUnblocked);
    } else if (at == worker.waiting.end()) {
      WaitForSome(worker, history, client);
    }
  }
};

// Goal: every element goes to exactly one waiter, none waits beside an element, and who waits for
// one key alone is served in the order of arrival.
// Method: more threads than cores push and wait at random, also for several keys; some waiters
// leave or are unblocked. What is left at the end is popped, too.
TEST_F(KeyWaitersThreads, EachElementGoesToOneInOrder) {
  SCOPED_TRACE(testing::Message() << "seed " << seed_);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) threads.emplace_back([this, i] { Work(i); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(waiters_.size(), 0u);
  std::multiset<std::string> found;
  std::map<std::string, std::map<uint64_t, int64_t>> by_key;  // of waiters of one key: by number
  for (const History& history : histories_) {
    for (const auto& served : history.served) {
      found.insert(served.element);
      if (served.keys.size() == 1) {
        by_key[served.keys[0]][served.number] = ParseInt64(served.element).value_or(-1);
      }
    }
  }
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    const auto rest = Make(MakeInbox(), 1, {KeyOf(thread)});
    for (; waiters_.Begin(rest, executor()); rest->state = State::kNew) {
      found.insert(ElementOf(*rest));
    }
    waiters_.Leave(*rest, State::kTimedOut);
    for (uint64_t i = 0; i < histories_[thread].pushed; ++i) {
      EXPECT_EQ(found.count(ElementNumber(i, thread)), 1u);
    }
    EXPECT_TRUE(std::ranges::is_sorted(std::views::values(by_key[KeyOf(thread)])));
  }
  EXPECT_GT(found.size(), kThreads * 100);  // otherwise the threads have not met
}

}  // namespace
}  // namespace skep
