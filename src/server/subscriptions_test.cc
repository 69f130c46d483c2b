// Subscriptions by themselves, and the order that subscriptions.h promises, in threads.
#include "server/subscriptions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace skep {
namespace {

using enum ChannelKind;

class SubscriptionsTest : public testing::Test {
 protected:
  // A client with an inbox of its own.
  struct Client {
    explicit Client(uint64_t id) {
      session.info = std::make_shared<ClientInfo>();
      session.info->id = id;
      inbox = std::make_shared<MessageInbox>(SocketNetwork().NewPoller());
      who = std::make_shared<Subscriber>(session, inbox);
    }
    Session session;
    std::shared_ptr<MessageInbox> inbox;
    std::shared_ptr<Subscriber> who;

    std::vector<std::string> Payloads() {
      std::vector<std::string> payloads;
      for (const Delivery& delivery : inbox->Take()) {
        payloads.push_back(delivery.message == nullptr ? "(overflow)" : delivery.message->payload);
      }
      return payloads;
    }
  };
  static Message Of(std::string channel, std::string payload) {
    return {.channel = std::move(channel), .payload = std::move(payload), .gates = {}};
  }
  size_t Publish(std::string channel, std::string payload, uint64_t bytes_max = 0) {
    return subscriptions_.Publish(Of(std::move(channel), std::move(payload)), bytes_max);
  }

  Subscriptions subscriptions_;
  Client a_{1}, b_{2};
};

TEST_F(SubscriptionsTest, EachKindHasNamesOfItsOwn) {
  EXPECT_TRUE(subscriptions_.Subscribe(a_.who, kChannel, "x*"));
  EXPECT_FALSE(subscriptions_.Subscribe(a_.who, kChannel, "x*"));
  EXPECT_TRUE(subscriptions_.Subscribe(a_.who, kPattern, "x*"));
  EXPECT_TRUE(subscriptions_.Subscribe(b_.who, kShard, "x*"));
  EXPECT_EQ(subscriptions_.SubscriberCount(), 2u);
  EXPECT_EQ(Publish("x*", "both"), 2u);
  EXPECT_EQ(Publish("xy", "pattern"), 1u);
  EXPECT_EQ(a_.Payloads(), (std::vector<std::string>{"both", "both", "pattern"}));
  Message message = Of("x*", "shard");
  message.kind = ChannelKind::kShard;
  EXPECT_EQ(subscriptions_.Publish(message, 0), 1u);
  EXPECT_EQ(b_.Payloads(), std::vector<std::string>{"shard"});
  EXPECT_EQ(a_.Payloads(), std::vector<std::string>{});
}

TEST_F(SubscriptionsTest, NothingIsLeftOfWhoLeaves) {
  for (const ChannelKind kind : {kChannel, kPattern, kShard}) {
    for (int i = 0; i < 10; ++i) subscriptions_.Subscribe(a_.who, kind, std::to_string(i));
    subscriptions_.Subscribe(b_.who, kind, "3");
  }
  EXPECT_GT(a_.who->name_bytes, 0u);
  subscriptions_.Leave(*a_.who);
  EXPECT_EQ(a_.who->name_bytes, 0u);
  EXPECT_FALSE(a_.who->has_any());
  EXPECT_EQ(subscriptions_.SubscriberCount(), 1u);
  for (const ChannelKind kind : {kChannel, kPattern, kShard}) {
    EXPECT_EQ(subscriptions_.Names(kind, "*"), std::vector<std::string>{"3"});
    EXPECT_EQ(subscriptions_.CountOf(kind, "3"), 1u);
    EXPECT_EQ(subscriptions_.CountOf(kind, "4"), 0u);
  }
  EXPECT_FALSE(subscriptions_.Unsubscribe(*a_.who, kChannel, "3"));
}

TEST_F(SubscriptionsTest, AnEarlierSubscriptionsMessagesAreNotOfTheNextOne) {
  subscriptions_.Subscribe(a_.who, kChannel, "c");
  Publish("c", "before");
  subscriptions_.Unsubscribe(*a_.who, kChannel, "c");
  Publish("c", "between");
  subscriptions_.Subscribe(a_.who, kChannel, "c");
  Publish("c", "after");
  std::vector<std::string> wanted;
  for (const Delivery& delivery : a_.inbox->Take()) {
    if (a_.who->Wants(delivery)) wanted.push_back(delivery.message->payload);
  }
  EXPECT_EQ(wanted, std::vector<std::string>{"after"});
}

// Method: the bytes of what waits, at each message.
TEST_F(SubscriptionsTest, WhatWaitsForASubscriberIsBounded) {
  subscriptions_.Subscribe(a_.who, kChannel, "c");
  subscriptions_.Subscribe(b_.who, kChannel, "c");
  const uint64_t bytes = Of("c", std::string(100, 'x')).bytes();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Publish("c", std::string(100, 'x'), 5 * bytes), 2u);
    b_.Payloads();
    b_.who->waiting_bytes.store(0);  // as its worker counts what it encodes
  }
  EXPECT_TRUE(a_.who->overflows.load());
  EXPECT_FALSE(b_.who->overflows.load());
  std::vector<std::string> expected(5, std::string(100, 'x'));
  expected.push_back("(overflow)");
  EXPECT_EQ(a_.Payloads(), expected);
}

// Goal: a subscription gets all messages between its beginning and its end, in the one order.
// Method: publishers of one channel, so that numbers have no holes; subscribers that come and go.
TEST_F(SubscriptionsTest, SubscriptionsHaveNoHoles) {
  constexpr int kPublishers = 3;
  constexpr int kRounds = 50;
  std::atomic<bool> stops{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kPublishers; ++i) {
    threads.emplace_back([&] {
      while (!stops.load()) {
        Publish("c", "m");
        std::this_thread::yield();
      }
    });
  }
  std::vector<std::thread> subscribers;
  for (Client* const client : {&a_, &b_}) {
    subscribers.emplace_back([&, client] {
      for (int round = 0; round < kRounds; ++round) {
        const ChannelKind kind = round % 2 == 0 ? kChannel : kPattern;
        ASSERT_TRUE(subscriptions_.Subscribe(client->who, kind, "c"));
        uint64_t last = client->who->names[static_cast<size_t>(kind)].begin()->second;
        const auto take = [&] {
          size_t count = 0;
          for (const Delivery& delivery : client->inbox->Take()) {
            if (!client->who->Wants(delivery)) continue;
            ASSERT_EQ(delivery.message->number, last + 1);
            ++last;
            ++count;
          }
          if (count == 0) std::this_thread::yield();
        };
        while (last % 16 != 15) take();
        take();
        ASSERT_TRUE(subscriptions_.Unsubscribe(*client->who, kind, "c"));
      }
    });
  }
  for (std::thread& thread : subscribers) thread.join();
  stops.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(subscriptions_.SubscriberCount(), 0u);
}

}  // namespace
}  // namespace skep
