#include "server/subscriptions.h"

#include <algorithm>

#include "server/glob.h"

namespace skep {
namespace {

// Memory of a subscription beside its name's bytes: nodes of three containers, about.
constexpr size_t kSubscriptionBytes = 240;

size_t BytesOf(std::string_view name) { return kSubscriptionBytes + 3 * name.size(); }

}  // namespace

size_t Message::bytes() const {
  return sizeof(Message) + sizeof(Delivery) + channel.size() + payload.size() +
         gates.size() * sizeof(gates[0]);
}

void MessageInbox::Put(Delivery delivery) {
  bool was_empty = false;
  {
    const MutexLock lock(mutex_);
    was_empty = deliveries_.empty();
    deliveries_.push_back(std::move(delivery));
    has_any_.store(true, std::memory_order_relaxed);
  }
  if (was_empty) poller_->Wake();
}

std::vector<Delivery> MessageInbox::Take() {
  std::vector<Delivery> taken;
  if (!has_any_.load(std::memory_order_relaxed)) return taken;
  const MutexLock lock(mutex_);
  taken.swap(deliveries_);
  has_any_.store(false, std::memory_order_relaxed);
  return taken;
}

size_t Subscriber::count() const {
  return count(ChannelKind::kChannel) + count(ChannelKind::kPattern) + count(ChannelKind::kShard);
}

bool Subscriber::Wants(const Delivery& delivery) const {
  const Message& message = *delivery.message;
  const auto kind = delivery.pattern != nullptr ? ChannelKind::kPattern : message.kind;
  const Names& some = names[static_cast<size_t>(kind)];
  const auto at = some.find(delivery.pattern != nullptr ? *delivery.pattern : message.channel);
  return at != some.end() && at->second < message.number;
}

bool Subscriptions::Subscribe(const std::shared_ptr<Subscriber>& who, ChannelKind kind,
                              std::string_view name) {
  const bool had_any = who->has_any();
  const auto [own, is_new] = who->names[static_cast<size_t>(kind)].emplace(name, 0);
  if (!is_new) return false;
  who->name_bytes += BytesOf(name);
  if (!had_any && who->has_any()) subscribers_.fetch_add(1, std::memory_order_relaxed);
  if (kind == ChannelKind::kCommands) monitors_.fetch_add(1, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  Entries& entries = entries_[static_cast<size_t>(kind)];
  auto at = entries.find(name);
  if (at == entries.end()) {
    at = entries.emplace(name, Entry{std::make_shared<const std::string>(name), {}}).first;
  }
  at->second.receivers.emplace(who->id, who);
  own->second = published_;
  return true;
}

bool Subscriptions::Unsubscribe(Subscriber& who, ChannelKind kind, std::string_view name) {
  Subscriber::Names& names = who.names[static_cast<size_t>(kind)];
  const auto own = names.find(name);
  if (own == names.end()) return false;
  {
    const MutexLock lock(mutex_);
    Entries& entries = entries_[static_cast<size_t>(kind)];
    const auto at = entries.find(name);
    at->second.receivers.erase(who.id);
    if (at->second.receivers.empty()) entries.erase(at);
  }
  const bool had_any = who.has_any();
  who.name_bytes -= BytesOf(name);
  names.erase(own);
  if (had_any && !who.has_any()) subscribers_.fetch_sub(1, std::memory_order_relaxed);
  if (kind == ChannelKind::kCommands) monitors_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void Subscriptions::Leave(Subscriber& who) {
  for (size_t kind = 0; kind < kChannelKinds; ++kind) {
    while (!who.names[kind].empty()) {
      const std::string name = who.names[kind].begin()->first;
      Unsubscribe(who, static_cast<ChannelKind>(kind), name);
    }
  }
  who.session = nullptr;
}

size_t Subscriptions::Send(const Entry& entry, const std::shared_ptr<const Message>& message,
                           bool is_pattern, uint64_t bytes_max) {
  const uint64_t bytes = message->bytes();
  for (const auto& [id, who] : entry.receivers) {
    if (who->overflows.load(std::memory_order_relaxed)) continue;
    const uint64_t waiting = who->waiting_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    const bool drops = bytes_max != 0 && waiting > bytes_max;
    if (drops) who->overflows.store(true, std::memory_order_relaxed);
    who->inbox->Put({.message = drops ? nullptr : message,
                     .pattern = is_pattern ? entry.name : nullptr,
                     .to = who});
  }
  return entry.receivers.size();
}

size_t Subscriptions::Publish(Message message, uint64_t bytes_max) {
  const ChannelKind kind = message.kind;
  if ((kind == ChannelKind::kCommands ? MonitorCount() : SubscriberCount()) == 0) return 0;
  size_t sent = 0;
  const MutexLock lock(mutex_);
  message.number = ++published_;
  const auto shared = std::make_shared<const Message>(std::move(message));
  const Entries& entries = entries_[static_cast<size_t>(kind)];
  if (const auto at = entries.find(shared->channel); at != entries.end()) {
    sent += Send(at->second, shared, false, bytes_max);
  }
  if (kind != ChannelKind::kChannel) return sent;
  for (const auto& [pattern, entry] : entries_[static_cast<size_t>(ChannelKind::kPattern)]) {
    if (GlobMatch(pattern, shared->channel)) sent += Send(entry, shared, true, bytes_max);
  }
  return sent;
}

std::vector<std::string> Subscriptions::Names(ChannelKind kind, std::string_view pattern) const {
  std::vector<std::string> names;
  const MutexLock lock(mutex_);
  for (const auto& [name, entry] : entries_[static_cast<size_t>(kind)]) {
    if (GlobMatch(pattern, name)) names.push_back(name);
  }
  return names;
}

size_t Subscriptions::CountOf(ChannelKind kind, std::string_view name) const {
  const MutexLock lock(mutex_);
  const Entries& entries = entries_[static_cast<size_t>(kind)];
  const auto at = entries.find(name);
  return at == entries.end() ? 0 : at->second.receivers.size();
}

size_t Subscriptions::NameCount(ChannelKind kind) const {
  const MutexLock lock(mutex_);
  return entries_[static_cast<size_t>(kind)].size();
}

}  // namespace skep
