// Keys that have expired, on their way from an engine to who has subscribed: the queue, and what is
// published of it at once. tests/e2e/key_events_test.py has the events of whole servers.
#include "server/key_events.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "keyspace/factory.h"

namespace skep {
namespace {

// A clock that goes on by a step whenever it is read.
class SteppingClock final : public Clock {
 public:
  uint64_t MonotonicNs() override { return now_ns_ += step_ns; }
  uint64_t WallUs() override { return now_ns_ / 1'000; }

  uint64_t step_ns = 0;

 private:
  uint64_t now_ns_ = 1;
};

class ExpiredKeys : public testing::Test {
 protected:
  ExpiredKeys() {
    session_.info = std::make_shared<ClientInfo>();
    session_.info->id = 1;
    inbox_ = std::make_shared<MessageInbox>(SocketNetwork().NewPoller());
    who_ = std::make_shared<Subscriber>(session_, inbox_);
    subscriptions_.Subscribe(who_, ChannelKind::kPattern, "__keyevent@*");
    events_.Configure(kKeyeventChannels | kExpiredEvents | kStringEvents, 0);
  }
  // The channels and the keys that were published since the last call.
  std::vector<std::string> Told() {
    std::vector<std::string> told;
    for (const Delivery& delivery : inbox_->Take()) {
      told.push_back(delivery.message->channel + " " + delivery.message->payload);
    }
    return told;
  }
  void Expire(size_t keys, uint32_t keyspace = 0) {
    for (size_t i = 0; i < keys; ++i) events_.ExpiryOf(keyspace)->HasExpired(std::to_string(i));
  }

  SteppingClock clock_;
  Subscriptions subscriptions_;
  KeyEvents events_{subscriptions_, clock_, 2};
  Session session_;
  std::shared_ptr<MessageInbox> inbox_;
  std::shared_ptr<Subscriber> who_;
};

// Goal: an engine that tells of a key under its locks publishes nothing; a worker does later, in
// the order in which keys have expired.
TEST_F(ExpiredKeys, AreQueuedAndPublishedLater) {
  EXPECT_FALSE(events_.has_expired());
  Expire(2, 1);
  Expire(1);
  EXPECT_EQ(Told(), std::vector<std::string>());
  EXPECT_TRUE(events_.has_expired());
  events_.PublishExpired();
  EXPECT_EQ(Told(),
            (std::vector<std::string>{"__keyevent@1__:expired 0", "__keyevent@1__:expired 1",
                                      "__keyevent@0__:expired 0"}));
  EXPECT_FALSE(events_.has_expired());
  events_.PublishExpired();
  EXPECT_EQ(Told(), std::vector<std::string>());
}

// Goal: a piece has kPublishedMax keys at most, and none after kPublishNs but the first one.
TEST_F(ExpiredKeys, ArePublishedInPieces) {
  Expire(2 * KeyEvents::kPublishedMax + 5);
  events_.PublishExpired();
  EXPECT_EQ(Told().size(), KeyEvents::kPublishedMax);
  clock_.step_ns = KeyEvents::kPublishNs / 10;
  events_.PublishExpired();
  EXPECT_EQ(Told().size(), 10u);
  clock_.step_ns = KeyEvents::kPublishNs;
  events_.PublishExpired();
  EXPECT_EQ(Told().size(), 1u);
  clock_.step_ns = 0;
  size_t left = 0;
  while (events_.has_expired()) {
    events_.PublishExpired();
    left += Told().size();
  }
  EXPECT_EQ(left, KeyEvents::kPublishedMax + 5 - 11);
  EXPECT_EQ(events_.lost_expired(), 0u);
}

// Goal: the queue's keys and their bytes are bounded; what does not fit is lost and counted, and
// what is published makes room.
TEST_F(ExpiredKeys, BeyondTheBoundAreLost) {
  Expire(KeyEvents::kQueuedKeysMax);
  EXPECT_EQ(events_.lost_expired(), 0u);
  Expire(7);
  EXPECT_EQ(events_.lost_expired(), 7u);
  size_t told = 0;
  while (events_.has_expired()) {
    events_.PublishExpired();
    told += Told().size();
  }
  EXPECT_EQ(told, KeyEvents::kQueuedKeysMax);

  const std::string key(100'000, 'k');
  const size_t fit = KeyEvents::kQueuedBytesMax / KeyEvents::QueuedBytesOf(key);
  for (size_t i = 0; i < fit + 3; ++i) events_.ExpiryOf(0)->HasExpired(key);
  EXPECT_EQ(events_.lost_expired(), 10u);
  events_.PublishExpired();
  EXPECT_EQ(Told().size(), fit);
  events_.ExpiryOf(0)->HasExpired(key);
  EXPECT_EQ(events_.lost_expired(), 10u);
}

// Goal: the key whose place a batch took has expired before what the batch tells.
TEST_F(ExpiredKeys, AreToldBeforeTheBatchThatTookTheirPlace) {
  MemoryBudget budget(0);
  const std::unique_ptr<Engine> engine = FindEngine("btree")->make({.budget = &budget});
  ObserveExpiryOf(*engine, events_.ExpiryOf(0));
  for (const uint64_t now_ms : {1, 2000}) {
    Batch batch;
    batch.Add({.op = Op::kPut, .key = "a", .value = "1", .deadline_ms = now_ms + 1000});
    KeyEvents::Prepare(batch);
    batch.set_now_ms(now_ms);
    const Version ticket = engine->Execute(batch);
    events_.Tell(0, batch, {}, engine->gate(), ticket);
  }
  EXPECT_EQ(Told(), (std::vector<std::string>{"__keyevent@0__:set a", "__keyevent@0__:expired a",
                                              "__keyevent@0__:set a"}));
}

// Goal: keys of several threads are each published once, whoever publishes.
TEST_F(ExpiredKeys, OfThreadsArePublishedOnce) {
  constexpr size_t kThreads = 3;
  constexpr size_t kKeys = 3000;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (size_t i = 0; i < kKeys; ++i) {
        events_.ExpiryOf(t % 2)->HasExpired(fmt::format("{}.{}", t, i));
        if (i % 16 == 0) events_.PublishExpired();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (events_.has_expired()) events_.PublishExpired();
  std::vector<size_t> next(kThreads, 0);
  for (const Delivery& delivery : inbox_->Take()) {
    const std::string& key = delivery.message->payload;
    const size_t t = key[0] - '0';
    ASSERT_LT(t, kThreads);
    ASSERT_EQ(key, fmt::format("{}.{}", t, next[t]++));
  }
  for (const size_t keys : next) EXPECT_EQ(keys, kKeys);
}

}  // namespace
}  // namespace skep
