// key_events.h: messages that tell what becomes of keys (Redis's notify-keyspace-events).
//
//   a batch that was executed ----> Tell ------------+
//                                                    +--> Subscriptions::Publish
//   a key that has expired          PublishExpired --+    (subscriptions.h)
//          |                              ^
//          +--> ExpiryObserver --> queue -+
//
// An event has a name, a class, a key and the number of its keyspace. It is sent to the channel
// __keyspace@N__:KEY with the name as the message, and to __keyevent@N__:NAME with the key.
//
// What a batch tells
//   Events are read off the requests of a batch and their outcomes: so whatever executes a batch
//   tells them, commands, transactions, clients that waited, the packed protocol. A function is
//   told under the name that Redis has for its command; the commands by which a request is told
//   otherwise (SUNIONSTORE deletes and stores, and is told as one) come with the batch. A request
//   that has changed nothing tells nothing, but for those that Redis tells nevertheless. Ranges
//   (KDELRANGE, KEXPIRE, FLUSHALL) tell nothing.
//
// Order. The events of a batch are in the order of its requests, and those of a connection's
//   batches in the order of its commands: they are published by the thread that has executed the
//   batch, before it executes another one, and before it pops for clients that wait. Two workers
//   that write one key at the same time may publish in the other order than they have written; as
//   for all messages, what a message tells of is seen by whoever gets it, since it waits for the
//   ticket of its batch.
//
// Keys that have expired
//   An engine tells them while it holds locks (expiry_observer.h), in pieces of a thousand keys,
//   and to publish one takes a match of each pattern. So the observer only puts the key into a
//   queue, and workers publish from there: at the end of each turn (PublishExpired), and before a
//   batch is told (Tell), so that a key whose place the batch took has expired first.
//   Bound: the queue has kQueuedKeysMax keys and kQueuedBytesMax bytes at most. What does not fit
//   is lost and counted.
//   Locks: publishing_ is held while a piece of the queue is published, with queue_mutex_ or that
//   of the subscriptions inside; queue_mutex_ for one push or one pop, with nothing inside. So an
//   observer that holds locks of an engine waits for a push or a pop alone.
//   Order: keys are published in the order of the queue, as one thread at a time publishes.
//   `queued_` counts a key until it is published, so a batch that finds 0 has nothing to wait for
//   (acquire; PublishExpired counts with release). A batch publishes one piece, so that beyond
//   kPublishedMax keys or kPublishNs `expired` may come after what the batch tells.
//   Progress: a piece ends after kPublishedMax keys, or with the first one after kPublishNs. A turn
//   whose piece another thread publishes does not wait; a batch waits for at most a piece.
//   Evidence: key_events_test.cc.
//
// Cost. While the option is empty one load for each batch; while nobody has subscribed to anything
//   two. Else a copy of the key and a look at the subscriptions for each event and channel.
//
// Thread safety: any thread may call any method.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/expiry_observer.h"
#include "server/event_classes.h"
#include "server/planned_command.h"
#include "server/subscriptions.h"
#include "skep/batch.h"

namespace skep {

class KeyEvents {
 public:
  static constexpr size_t kQueuedKeysMax = 65'536;
  static constexpr size_t kQueuedBytesMax = size_t{16} << 20;  // QueuedBytesOf each key
  static constexpr size_t kPublishedMax = 1024;                // keys of a piece
  static constexpr uint64_t kPublishNs = 1'000'000;

  // Both references must outlive this object.
  KeyEvents(Subscriptions& subscriptions, Clock& clock, uint32_t keyspaces);
  ~KeyEvents();

  // What is told from now on. `bytes_max`: as in Subscriptions::Publish.
  void Configure(uint32_t classes, uint64_t bytes_max);
  // Whether an event may be sent to anybody.
  bool wanted() const {
    return classes_.load(std::memory_order_relaxed) != 0 && subscriptions_.SubscriberCount() > 0;
  }

  // Asks the batch, which is to be executed, to note what Tell needs to know.
  static void Prepare(Batch& batch);
  // Tells what the batch has done. `commands`: those that have planned it, in the order of their
  // slots; none: not known.
  void Tell(uint32_t keyspace, const Batch& batch, std::span<const PlannedCommand> commands,
            ReleaseGate& gate, Version ticket);

  // Tells `expired`, of keys of this keyspace: puts them into the queue.
  ExpiryObserver* ExpiryOf(uint32_t keyspace);
  // Whether the queue has keys that are not published yet. Cost: a load.
  bool has_expired() const { return queued_.load(std::memory_order_acquire) != 0; }
  // Publishes a piece of the queue, unless another thread does. Cost: a load if there is none, else
  // at most kPublishedMax keys, and no further one after kPublishNs.
  void PublishExpired();
  // The keys that did not fit into the queue, or that there was no memory for.
  uint64_t lost_expired() const { return lost_.load(std::memory_order_relaxed); }
  static size_t QueuedBytesOf(std::string_view key) { return sizeof(ExpiredKey) + key.size(); }

 private:
  class Expiry;
  class Telling;
  struct ExpiredKey {
    uint32_t keyspace;
    std::string key;
  };

  void Queue(uint32_t keyspace, std::string_view key) noexcept;
  std::optional<ExpiredKey> TakeExpired();
  void PublishPiece() SKEP_REQUIRES(publishing_);
  void Publish(uint32_t keyspace, EventClass event_class, std::string_view event,
               std::string_view key, ReleaseGate* gate, Version ticket);

  Subscriptions& subscriptions_;
  Clock& clock_;
  // Relaxed: a batch that is executed while the option changes is told by either.
  std::atomic<uint32_t> classes_{0};
  std::atomic<uint64_t> bytes_max_{0};
  std::vector<std::unique_ptr<Expiry>> expiry_;  // by keyspace

  Mutex publishing_;
  Mutex queue_mutex_;
  std::deque<ExpiredKey> queue_ SKEP_GUARDED_BY(queue_mutex_);
  size_t queue_bytes_ SKEP_GUARDED_BY(queue_mutex_) = 0;
  std::atomic<size_t> queued_{0};
  std::atomic<uint64_t> lost_{0};
};

}  // namespace skep
