#include "server/client_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/mutex.h"

namespace skep {

ClientClass ClassOf(const ClientInfo& client) {
  return client.is_subscribed() ? ClientClass::kPubSub : ClientClass::kNormal;
}

std::shared_ptr<ClientInfo> ClientRegistry::Add(std::string peer, std::string local,
                                                uint64_t now_ms) {
  auto client = std::make_shared<ClientInfo>();
  client->peer = std::move(peer);
  client->local = std::move(local);
  client->connected_ms = now_ms;
  client->last_active_ms = now_ms;
  const MutexLock lock(mutex_);
  client->id = ++last_id_;
  clients_.emplace(client->id, client);
  return client;
}

void ClientRegistry::Remove(const ClientInfo& client) {
  const MutexLock lock(mutex_);
  clients_.erase(client.id);
}

size_t ClientRegistry::size() const {
  const MutexLock lock(mutex_);
  return clients_.size();
}

size_t ClientRegistry::EndMatching(const ClientFilter& filter, const ClientInfo& self,
                                   bool* ends_self) {
  *ends_self = false;
  size_t count = 0;
  const MutexLock lock(mutex_);
  for (const auto& [id, client] : clients_) {
    if (filter.id != 0 && id != filter.id) continue;
    if (filter.of_class && ClassOf(*client) != *filter.of_class) continue;
    if (filter.peer && client->peer != *filter.peer) continue;
    if (filter.local && client->local != *filter.local) continue;
    if (client.get() == &self) {
      if (filter.skips_self) continue;
      *ends_self = true;
    } else if (client->ends.exchange(true, std::memory_order_relaxed)) {
      continue;
    }
    ++count;
  }
  if (count > 0) ended_version_.fetch_add(1, std::memory_order_release);
  return count;
}

size_t ClientRegistry::EndLargest(uint64_t bytes_max) {
  struct Candidate {
    uint64_t bytes;
    ClientInfo* client;
  };
  std::vector<Candidate> candidates;
  uint64_t all = 0;
  const MutexLock lock(mutex_);
  for (const auto& [id, client] : clients_) {
    if (client->ends.load(std::memory_order_relaxed)) continue;
    if (client->is_kept.load(std::memory_order_relaxed)) continue;
    const uint64_t bytes = client->memory_bytes.load(std::memory_order_relaxed);
    all += bytes;
    candidates.push_back({.bytes = bytes, .client = client.get()});
  }
  std::ranges::sort(candidates, std::greater(), &Candidate::bytes);
  size_t count = 0;
  for (; all > bytes_max && count < candidates.size() && candidates[count].bytes > 0; ++count) {
    all -= candidates[count].bytes;
    candidates[count].client->ends.store(true, std::memory_order_relaxed);
  }
  if (count > 0) ended_version_.fetch_add(1, std::memory_order_release);
  evicted_.fetch_add(count, std::memory_order_relaxed);
  return count;
}

void ClientRegistry::SetName(ClientInfo& client, std::string_view name) {
  const MutexLock lock(mutex_);
  client.name = name;
}

std::string ClientRegistry::Name(const ClientInfo& client) const {
  const MutexLock lock(mutex_);
  return client.name;
}

void ClientRegistry::SetLibrary(ClientInfo& client, std::string_view attribute,
                                std::string_view value) {
  const MutexLock lock(mutex_);
  (attribute == "lib-ver" ? client.library_version : client.library_name) = value;
}

std::string ClientRegistry::Describe(const ClientInfo& client, uint64_t now_ms) const {
  const MutexLock lock(mutex_);
  return Line(client, now_ms);
}

std::string ClientRegistry::Describe(uint64_t id, uint64_t now_ms) const {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(id);
  if (found == clients_.end() || found->second->ends.load(std::memory_order_relaxed)) return {};
  return Line(*found->second, now_ms);
}

std::string ClientRegistry::DescribeAll(uint64_t now_ms,
                                        std::optional<ClientClass> of_class) const {
  const MutexLock lock(mutex_);
  std::string all;
  for (const auto& [id, client] : clients_) {
    if (of_class && ClassOf(*client) != *of_class) continue;
    if (!client->ends.load(std::memory_order_relaxed)) all += Line(*client, now_ms);
  }
  return all;
}

std::string ClientRegistry::Line(const ClientInfo& client, uint64_t now_ms) {
  const auto load = [](const auto& field) { return field.load(std::memory_order_relaxed); };
  // Each worker has its own "now", which may be before the other's times.
  const auto seconds_since = [&](uint64_t ms) { return (now_ms - std::min(now_ms, ms)) / 1000; };
  const uint64_t input = load(client.input_bytes);
  const uint64_t output = load(client.output_bytes);
  const int64_t queued = load(client.queued);
  std::string flags;
  if (client.is_subscribed()) flags += 'P';
  if (queued >= 0) flags += 'x';
  if (load(client.waits)) flags += 'b';
  if (load(client.is_kept)) flags += 'e';
  if (flags.empty()) flags += 'N';
  // Redis's fields in Redis's order, since clients parse them. Fields without a meaning here are
  // constant.
  return fmt::format(
      "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} "
      "multi={} watch={} qbuf={} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 "
      "omem={} "
      "tot-mem={} events=r cmd={} user=default redir=-1 resp={} lib-name={} lib-ver={}\n",
      client.id, client.peer, client.local, client.name, seconds_since(client.connected_ms),
      seconds_since(load(client.last_active_ms)), flags, load(client.keyspace),
      load(client.channels), load(client.patterns), load(client.shard_channels), queued,
      load(client.watched), input, output, load(client.memory_bytes), load(client.last_command),
      load(client.protocol), client.library_name, client.library_version);
}

}  // namespace skep
