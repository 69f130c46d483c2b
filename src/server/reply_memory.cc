#include "server/reply_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"

namespace skep {
namespace {

constexpr uint64_t kBytesMax = uint64_t{64} << 20;
constexpr uint64_t kBytesMin = uint64_t{1} << 20;
constexpr uint64_t kLimitShare = 8;     // one part in so many of the budget's limit
constexpr uint64_t kClientsShare = 16;  // of bytes_max(), likewise: clients without a connection
// Bytes charged for a client and for an entry, with their nodes in the containers, besides the
// reply's bytes.
constexpr size_t kClientBytes = 256;
constexpr size_t kEntryBytes = 128;

size_t SlotOf(uint64_t client) {
  constexpr uint64_t kFraction = 0x9e3779b97f4a7c15;  // the golden ratio's
  return (client * kFraction) >> (64 - std::bit_width(ReplyMemory::kSlots - 1));
}

}  // namespace

ReplyMemory::~ReplyMemory() { budget_.Release(bytes_); }

// ---- Clients ----

void ReplyMemory::Enter(uint64_t client) {
  const Lock lock(*this);
  const auto at = Find(client);
  if (at->second.connections++ == 0) by_time_.erase(at->second.by_time);
}

void ReplyMemory::Leave(uint64_t client) {
  const Lock lock(*this);
  const auto at = clients_.find(client);
  SKEP_CHECK(at != clients_.end() && at->second.connections > 0);
  Client& left = at->second;
  if (--left.connections > 0) return;
  left.by_time = by_time_.insert(by_time_.end(), client);
  // Nothing needs to be remembered of a client that has marked nothing.
  if (left.first_new == ForgottenOf(client)) DropClient(at);
  MakeRoom();
}

uint64_t ReplyMemory::FirstNewId(uint64_t client) const {
  const MutexLock lock(mutex_);
  const auto at = clients_.find(client);
  return at == clients_.end() ? ForgottenOf(client) : at->second.first_new;
}

// Finds the client, or makes it.
ReplyMemory::Clients::iterator ReplyMemory::Find(uint64_t client) {
  constexpr size_t kNodes = 112;  // nodes of the map and the two lists, besides their contents
  static_assert(sizeof(Client) + kNodes <= kClientBytes);
  const auto [at, is_new] = clients_.try_emplace(client);
  if (!is_new) return at;
  Charge(kClientBytes);
  at->second.first = ForgottenOf(client);
  at->second.first_new = at->second.first;
  at->second.by_time = by_time_.insert(by_time_.end(), client);
  MakeRoom();  // this client is the least quiet
  return at;
}

// The client is active: it is not quiet now.
void ReplyMemory::Touch(Clients::iterator client) {
  Client& touched = client->second;
  if (touched.connections == 0) by_time_.splice(by_time_.end(), by_time_, touched.by_time);
  Order& order = by_class_[touched.size_class];
  if (touched.size_class > 0) order.splice(order.end(), order, touched.by_class);
}

// The first id that no forgotten client of the same slot has had.
uint64_t ReplyMemory::ForgottenOf(uint64_t client) const {
  return slots_.empty() ? 0 : slots_[SlotOf(client)];
}

// Forgets a client without a connection.
void ReplyMemory::DropClient(Clients::iterator client) {
  while (!client->second.entries.empty()) DropOldest(client);
  if (client->second.first_new > 0 && slots_.empty()) {
    slots_.resize(kSlots);
    Charge(kSlots * sizeof(uint64_t));
  }
  if (!slots_.empty()) {
    uint64_t& first = slots_[SlotOf(client->first)];
    first = std::max(first, client->second.first_new);
  }
  by_time_.erase(client->second.by_time);
  clients_.erase(client);
  Release(kClientBytes);
}

// ---- Messages ----

ReplyMemory::Known ReplyMemory::Begin(uint64_t client, const packed::Header& message, Reply* reply,
                                      uint64_t* first_new) {
  const uint32_t id = message.id;
  const Lock lock(*this);
  const auto at = Find(client);
  Touch(at);
  Client& known = at->second;
  const auto found = known.entries.find(id);
  const bool has_entry = found != known.entries.end();
  if (has_entry ? found->second.state == State::kForgotten : id < known.first) {
    *first_new = known.first_new;
    return Known::kForgotten;
  }
  if (has_entry) {
    const Entry& entry = found->second;
    if (entry.kind != message.kind || entry.keyspace != message.keyspace) return Known::kOther;
    if (entry.state == State::kRunning) return Known::kRunning;
    *reply = entry.reply;
    return Known::kKnown;
  }
  known.entries.emplace(id, Entry{.kind = message.kind, .keyspace = message.keyspace});
  known.first_new = std::max(known.first_new, uint64_t{id} + 1);
  SetBytes(at, known.bytes + kEntryBytes);
  if (known.entries.size() > kIdsMax) DropOldest(at);
  MakeRoom();
  return Known::kNew;
}

void ReplyMemory::Finish(uint64_t client, uint32_t id, std::string_view bytes, Version ticket) {
  // A reply of half of the limit would cost too many others. It is copied without the lock.
  const bool is_kept = bytes.size() <= bytes_max() / 2;
  auto copy = is_kept ? std::make_shared<const std::string>(bytes) : nullptr;
  const Lock lock(*this);
  const auto at = clients_.find(client);
  if (at == clients_.end()) return;  // the client was quiet for too long
  const auto entry = at->second.entries.find(id);
  if (entry == at->second.entries.end()) return;
  entry->second.state = is_kept ? State::kKnown : State::kForgotten;
  entry->second.reply = {.bytes = std::move(copy), .ticket = ticket};
  SetBytes(at, at->second.bytes + ReplyBytes(entry->second));
  MakeRoom();
}

void ReplyMemory::Abandon(uint64_t client, uint32_t id) {
  const Lock lock(*this);
  const auto at = clients_.find(client);
  if (at == clients_.end()) return;
  const auto entry = at->second.entries.find(id);
  if (entry != at->second.entries.end()) DropEntry(at, entry);
}

size_t ReplyMemory::ReplyBytes(const Entry& entry) {
  return entry.reply.bytes == nullptr ? 0 : entry.reply.bytes->capacity();
}

void ReplyMemory::DropEntry(Clients::iterator client, std::map<uint32_t, Entry>::iterator entry) {
  const size_t reply_bytes = ReplyBytes(entry->second);
  if (reply_bytes > 0) dropped_.push_back(std::move(entry->second.reply.bytes));
  client->second.entries.erase(entry);
  SetBytes(client, client->second.bytes - kEntryBytes - reply_bytes);
}

void ReplyMemory::DropOldest(Clients::iterator client) {
  const auto oldest = client->second.entries.begin();
  client->second.first = std::max(client->second.first, uint64_t{oldest->first} + 1);
  DropEntry(client, oldest);
}

// ---- Memory ----

size_t ReplyMemory::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

size_t ReplyMemory::bytes_max() const {
  const uint64_t limit = budget_.limit();
  return limit == 0 ? kBytesMax : std::clamp(limit / kLimitShare, kBytesMin, kBytesMax);
}

size_t ReplyMemory::clients_max() const { return bytes_max() / kClientsShare / kClientBytes; }

void ReplyMemory::Charge(size_t bytes) {
  bytes_ += bytes;
  budget_.Charge(bytes);
}

void ReplyMemory::Release(size_t bytes) {
  bytes_ -= bytes;
  budget_.Release(bytes);
}

// Sets the memory of the client's entries.
void ReplyMemory::SetBytes(Clients::iterator client, size_t bytes) {
  Client& changed = client->second;
  Charge(bytes);
  Release(changed.bytes);
  changed.bytes = bytes;
  const auto to = static_cast<uint32_t>(std::bit_width(bytes));
  const uint32_t from = std::exchange(changed.size_class, to);
  if (from == to) return;
  if (from == 0) {
    changed.by_class = by_class_[to].insert(by_class_[to].end(), client->first);
  } else if (to == 0) {
    by_class_[from].erase(changed.by_class);
  } else {
    by_class_[to].splice(by_class_[to].end(), by_class_[from], changed.by_class);
  }
}

// Returns false if no client has replies.
bool ReplyMemory::DropOfTheLargest() {
  for (size_t i = kClasses; i-- > 1;) {
    if (by_class_[i].empty()) continue;
    DropOldest(clients_.find(by_class_[i].front()));
    return true;
  }
  return false;
}

void ReplyMemory::MakeRoom() {
  while (by_time_.size() > clients_max()) DropClient(clients_.find(by_time_.front()));
  while (bytes_ > bytes_max() && DropOfTheLargest()) {
  }
}

}  // namespace skep
