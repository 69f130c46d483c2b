#include "server/reply_memory.h"

#include <utility>

namespace skep {
namespace {

// Of an entry besides its reply's bytes.
constexpr size_t kEntryBytes = 128;

}  // namespace

ReplyMemory::Known ReplyMemory::Begin(uint64_t client, uint32_t id, Reply* reply) {
  std::lock_guard lock(mutex_);
  Client& known = Touch(client);
  const auto found = known.entries.find(id);
  if (found != known.entries.end()) {
    if (found->second.running) return Known::kRunning;
    *reply = found->second.reply;
    return Known::kKnown;
  }
  if (known.has_forgotten && id <= known.forgotten) return Known::kForgotten;
  known.entries.emplace(id, Entry{});
  bytes_ += kEntryBytes;
  if (known.entries.size() > kIdsMax) DropOldest(known);
  MakeRoom();
  return Known::kNew;
}

void ReplyMemory::Finish(uint64_t client, uint32_t id, std::string_view bytes, Version ticket) {
  std::lock_guard lock(mutex_);
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;  // it was the quietest of too many
  const auto entry = found->second.entries.find(id);
  if (entry == found->second.entries.end()) return;
  entry->second = {.running = false, .reply = {.bytes = std::string(bytes), .ticket = ticket}};
  bytes_ += bytes.size();
  MakeRoom();
}

void ReplyMemory::Abandon(uint64_t client, uint32_t id) {
  std::lock_guard lock(mutex_);
  const auto found = clients_.find(client);
  if (found != clients_.end() && found->second.entries.erase(id) > 0) bytes_ -= kEntryBytes;
}

size_t ReplyMemory::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

// The client, which is now the last one in order_.
ReplyMemory::Client& ReplyMemory::Touch(uint64_t client) {
  const auto [at, is_new] = clients_.try_emplace(client);
  if (is_new) {
    at->second.order = order_.insert(order_.end(), client);
  } else {
    order_.splice(order_.end(), order_, at->second.order);
  }
  return at->second;
}

void ReplyMemory::DropOldest(Client& client) {
  const auto oldest = client.entries.begin();
  client.forgotten = oldest->first;
  client.has_forgotten = true;
  bytes_ -= kEntryBytes + oldest->second.reply.bytes.size();
  client.entries.erase(oldest);
}

void ReplyMemory::MakeRoom() {
  while (bytes_ > kBytesMax || clients_.size() > kClientsMax) {
    const auto quietest = clients_.find(order_.front());
    if (!quietest->second.entries.empty() && clients_.size() <= kClientsMax) {
      DropOldest(quietest->second);
      // It is remembered what was forgotten, as long as there are not too many clients.
      if (quietest->second.entries.empty()) order_.splice(order_.end(), order_, order_.begin());
      continue;
    }
    while (!quietest->second.entries.empty()) DropOldest(quietest->second);
    order_.pop_front();
    clients_.erase(quietest);
  }
}

}  // namespace skep
