#include "server/message_delivery.h"

#include <algorithm>
#include <utility>

#include "server/connections.h"
#include "wire/resp_writer.h"

namespace skep {
namespace {

// Nothing can follow what the session has been sent.
bool IsGone(const Session* session) {
  return session == nullptr || session->closed || session->closing;
}

bool MustWait(const Session& session) { return session.task != nullptr || session.blocked; }

}  // namespace

const std::shared_ptr<Subscriber>& MessageDelivery::Join(Session& session) {
  if (session.subscriber == nullptr) {
    session.subscriber = std::make_shared<Subscriber>(session, inbox_);
  }
  return session.subscriber;
}

void MessageDelivery::Note(const Session& session) {
  const Subscriber& who = *session.subscriber;
  const auto count = [&](ChannelKind kind) { return static_cast<uint32_t>(who.count(kind)); };
  session.info->channels.store(count(ChannelKind::kChannel), std::memory_order_relaxed);
  session.info->patterns.store(count(ChannelKind::kPattern), std::memory_order_relaxed);
  session.info->shard_channels.store(count(ChannelKind::kShard), std::memory_order_relaxed);
}

void MessageDelivery::Leave(Session& session) {
  if (session.subscriber == nullptr) return;
  subscriptions_.Leave(*session.subscriber);
  Note(session);
  session.subscriber = nullptr;
}

void MessageDelivery::Deliver() {
  DeliverHeld();
  for (Delivery& delivery : inbox_->Take()) {
    const std::shared_ptr<Subscriber> who = std::move(delivery.to);
    Session* const session = who->session;
    if (IsGone(session)) continue;
    if (delivery.message == nullptr) {
      connections_.CloseForOutput(*session);
    } else if (MustWait(*session) || !who->held.empty()) {
      if (who->held.empty()) holding_.push_back(who);
      who->held.push_back(std::move(delivery));
    } else {
      Encode(*session, delivery);
      connections_.Queue(*session);
    }
  }
}

void MessageDelivery::DeliverHeld() {
  std::erase_if(holding_, [&](const std::shared_ptr<Subscriber>& who) {
    Session* const session = who->session;
    if (IsGone(session)) {
      who->held.clear();
      return true;
    }
    if (MustWait(*session)) return false;
    for (const Delivery& delivery : std::exchange(who->held, {})) {
      Encode(*session, delivery);
    }
    connections_.Queue(*session);
    return true;
  });
}

void MessageDelivery::Encode(Session& session, const Delivery& delivery) {
  const Message& message = *delivery.message;
  Subscriber& who = *session.subscriber;
  who.waiting_bytes.fetch_sub(message.bytes(), std::memory_order_relaxed);
  if (!who.Wants(delivery)) return;
  for (const auto& [gate, ticket] : message.gates) gates_.MarkAs(session, *gate, ticket);
  RespWriter reply(session.out, session.protocol);
  if (message.kind == ChannelKind::kCommands) return reply.SimpleString(message.payload);
  if (delivery.pattern != nullptr) {
    reply.Push(4);
    reply.Bulk("pmessage");
    reply.Bulk(*delivery.pattern);
  } else {
    reply.Push(3);
    reply.Bulk(message.kind == ChannelKind::kShard ? "smessage" : "message");
  }
  reply.Bulk(message.channel);
  reply.Bulk(message.payload);
}

}  // namespace skep
