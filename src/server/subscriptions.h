// subscriptions.h: who has subscribed to which channels, and the messages on their way to them.
//
//   PUBLISH, on any worker                       the subscriber's worker
//   Subscriptions::Publish --> MessageInbox  --> MessageDelivery (message_delivery.h) --> `out`
//
// A name is a channel, a pattern of channels (glob.h), or a shard channel, which is a channel of
// its own kind here, since a server has all shards. The commands of all clients (monitor.h) are
// one more channel, whose name is empty, and which does not count as a subscription.
//
// Order. One mutex guards the names; Publish puts a message into the inboxes of all subscribers
// while it holds it. So
//   - the messages of all channels have one order, and each subscriber gets those that are for it
//     in this order;
//   - a subscription gets exactly what is published between its beginning and its end, which its
//     confirmations tell; what has come by its end and is not encoded yet is dropped. Messages have
//     numbers, by which a worker knows those of an earlier subscription to the same name.
// What a publisher had read or written before is seen by whoever gets the message: the message
// carries the gates that the publisher's own replies wait for (session.h, Mark), and leaves no
// sooner than they do.
//
// Promises. A message reaches each subscriber at most once: it is lost if the connection ends, and
// the connection ends if its client leaves more unread than client-output-buffer-limit pubsub
// allows. It is not kept, logged or sent to other servers.
//
// Progress. The mutex is held for the look at the names, a match of each pattern and one push for
// each receiver, with the inbox's mutex inside; no thread waits for another one while it holds
// either. kNameBytesMax bounds a match. The bytes of the messages in an inbox are bounded for each
// subscriber by the limit that the publisher hands over: beyond it a subscriber gets nothing more,
// and its worker ends it.
//
// Cost. Publish: O(log(channels)), a match with each pattern, and O(1) for each receiver; without
// any subscriber one load. Messages are shared, not copied, until they are encoded.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/network.h"
#include "server/session.h"

namespace skep {

enum class ChannelKind : uint8_t { kChannel, kPattern, kShard, kCommands };
inline constexpr size_t kChannelKinds = 4;

// Limits of a name, as a match of a pattern may take the product of both lengths; and of the names
// of a connection, which all end in one turn.
inline constexpr size_t kNameBytesMax = 4096;
inline constexpr size_t kSubscriptionsMax = 131'072;

// What one PUBLISH sends.
struct Message {
  std::string channel;
  std::string payload;
  ChannelKind kind = ChannelKind::kChannel;             // of the channel
  uint64_t number = 0;                                  // set by Publish: rises
  std::vector<std::pair<ReleaseGate*, Version>> gates;  // it leaves when they have released these

  size_t bytes() const;
};

struct Subscriber;

// A message for one subscriber. The delivery that tells a worker to end the connection has none.
struct Delivery {
  std::shared_ptr<const Message> message;
  std::shared_ptr<const std::string> pattern;  // that the channel matched, or null
  std::shared_ptr<Subscriber> to = nullptr;
};

// The messages for the subscribers of one worker. Thread-safe.
class MessageInbox {
 public:
  explicit MessageInbox(std::shared_ptr<Poller> poller) : poller_(std::move(poller)) {}
  // Wakes the worker if the inbox was empty.
  void Put(Delivery delivery);
  // All that was put since the last call, in order.
  std::vector<Delivery> Take();

 private:
  const std::shared_ptr<Poller> poller_;
  std::atomic<bool> has_any_{false};  // relaxed: a hint; Put wakes the worker after it has set it
  Mutex mutex_;
  std::vector<Delivery> deliveries_ SKEP_GUARDED_BY(mutex_);
};

// A connection that has subscribed at least once. All but `waiting_bytes` and `overflows` belongs
// to its worker; Subscriptions changes `names` in that worker's calls.
struct Subscriber {
  // And the number of the last message that was published before the subscription.
  using Names = std::map<std::string, uint64_t, std::less<>>;

  Subscriber(Session& its, std::shared_ptr<MessageInbox> its_inbox)
      : session(&its), id(its.info->id), inbox(std::move(its_inbox)) {}

  // Without that to the commands of all clients.
  size_t count() const;
  size_t count(ChannelKind kind) const { return names[static_cast<size_t>(kind)].size(); }
  bool has_any() const { return count() != 0; }
  bool monitors() const { return count(ChannelKind::kCommands) != 0; }
  // Whether the delivery is of a subscription that it has now.
  bool Wants(const Delivery& delivery) const;

  Session* session;  // null once the connection is closed
  const uint64_t id;
  const std::shared_ptr<MessageInbox> inbox;
  std::array<Names, kChannelKinds> names;
  size_t name_bytes = 0;      // memory of the names, here and in Subscriptions, about
  std::deque<Delivery> held;  // what cannot be encoded yet (message_delivery.h), without `to`
  // Bytes of the messages that are not encoded yet; relaxed, because it is only a sum.
  std::atomic<uint64_t> waiting_bytes{0};
  std::atomic<bool> overflows{false};  // relaxed: a message was dropped, and so its worker ends it
};

inline bool IsSubscribed(const Session& session) {
  return session.subscriber != nullptr && session.subscriber->has_any();
}
// Whether the session gets the commands of all clients.
inline bool Monitors(const Session& session) {
  return session.subscriber != nullptr && session.subscriber->monitors();
}

// Thread-safe.
class Subscriptions {
 public:
  // Return false if there is nothing to do: the name is subscribed already, or is not.
  bool Subscribe(const std::shared_ptr<Subscriber>& who, ChannelKind kind, std::string_view name);
  bool Unsubscribe(Subscriber& who, ChannelKind kind, std::string_view name);
  // Ends all subscriptions of this one, which has no session from then on.
  void Leave(Subscriber& who);

  // Sends the message to all that have subscribed to its channel, or to a pattern that matches it,
  // unless more than `bytes_max` bytes wait for a subscriber (0: no limit). Returns how many times
  // it was sent, dropped ones too, as Redis counts: once for each pattern.
  size_t Publish(Message message, uint64_t bytes_max);

  // The names of this kind that have subscribers and match the pattern.
  std::vector<std::string> Names(ChannelKind kind, std::string_view pattern) const;
  size_t CountOf(ChannelKind kind, std::string_view name) const;
  size_t NameCount(ChannelKind kind) const;
  // The connections that have subscriptions.
  size_t SubscriberCount() const { return subscribers_.load(std::memory_order_relaxed); }
  // Those that get the commands of all clients.
  size_t MonitorCount() const { return monitors_.load(std::memory_order_relaxed); }

 private:
  // By the client's number, so that the order of deliveries does not depend on addresses.
  using Receivers = std::map<uint64_t, std::shared_ptr<Subscriber>>;
  struct Entry {
    std::shared_ptr<const std::string> name;
    Receivers receivers;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  size_t Send(const Entry& entry, const std::shared_ptr<const Message>& message, bool is_pattern,
              uint64_t bytes_max) SKEP_REQUIRES(mutex_);

  std::atomic<size_t> subscribers_{0};
  std::atomic<size_t> monitors_{0};
  mutable Mutex mutex_;
  uint64_t published_ SKEP_GUARDED_BY(mutex_) = 0;
  std::array<Entries, kChannelKinds> entries_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep
