// message_delivery.h: the subscribed connections of one worker, and how messages (subscriptions.h)
// get among their replies.
//
//   Join     makes a session a subscriber
//   Deliver  when no reply is half made: encodes the messages that have come, each behind the gates
//            that it waits for. Called at the end of each turn, and when input of a subscriber was
//            read: so what was published before a client sent a command comes before its reply
//   Leave    the session is closed, or starts anew: its subscriptions end, and nothing is delivered
//
// A session whose task makes a reply piece by piece gets its messages when that is complete. One
// whose command waits until all its replies may leave gets them then: each could make it wait on.
//
// Invariants. True between calls.
//   D1  Deliveries are encoded in the order in which they were put; what cannot be encoded yet
//       waits in Subscriber::held, in order, and so does what comes behind it.
//   D2  Subscriber::waiting_bytes is the sum of those in the inbox and in `held`.
//   D3  holding_ has every subscriber of this worker whose `held` is not empty.
//
// Progress: a call delivers what was in the inbox when it looked, so a publisher on another worker
// cannot keep it, and looks at each subscriber that holds something, not at what it holds.
//
// Callers: the commands of messages; command_dispatch.h; the worker.
// Thread safety: the owning worker only.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "server/reply_gates.h"
#include "server/session.h"
#include "server/subscriptions.h"

namespace skep {

class Connections;

class MessageDelivery {
 public:
  // All arguments must outlive this object.
  MessageDelivery(Subscriptions& subscriptions, ReplyGates& gates, Connections& connections,
                  std::shared_ptr<Poller> poller)
      : subscriptions_(subscriptions),
        gates_(gates),
        connections_(connections),
        inbox_(std::make_shared<MessageInbox>(std::move(poller))) {}

  // The inbox holds subscribers, which hold it.
  ~MessageDelivery() { inbox_->Take(); }
  MessageDelivery(const MessageDelivery&) = delete;
  MessageDelivery& operator=(const MessageDelivery&) = delete;

  // The session's subscriber, made at the first call.
  const std::shared_ptr<Subscriber>& Join(Session& session);
  // Called after each change of the session's subscriptions: what CLIENT LIST shows.
  static void Note(const Session& session);
  void Leave(Session& session);

  // Queues the sessions that have something to send, and closes those that left too much unread.
  void Deliver();

 private:
  void DeliverHeld();
  void Encode(Session& session, const Delivery& delivery);

  Subscriptions& subscriptions_;
  ReplyGates& gates_;
  Connections& connections_;
  const std::shared_ptr<MessageInbox> inbox_;
  std::vector<std::shared_ptr<Subscriber>> holding_;
};

}  // namespace skep
