// client_registry.h: the connected clients of all workers, for CLIENT LIST and INFO, and which of
// them are to be ended.
//
// Any thread may mark a client to be ended; the worker that serves it ends it in its next turn. A
// marked client is not listed any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace skep {

// The fields of one connection that others may see. The owning worker stores, any thread loads.
// Relaxed: each field is a number of its own; nothing else is read because of it.
struct ClientInfo {
  uint64_t id = 0;
  std::string peer;
  std::string local;
  uint64_t connected_ms = 0;                // all times are of the monotonic clock
  std::atomic<uint64_t> last_active_ms{0};  // when bytes came or went
  std::atomic<const char*> last_command{"NULL"};
  std::atomic<uint32_t> keyspace{0};
  std::atomic<int> protocol{2};
  std::atomic<uint64_t> input_bytes{0};   // received and not yet executed
  std::atomic<uint64_t> output_bytes{0};  // replies not yet sent
  std::atomic<int64_t> queued{-1};        // commands since MULTI; -1: no MULTI
  std::atomic<uint64_t> watched{0};       // number of keys
  std::atomic<uint64_t> memory_bytes{0};  // buffers, transaction and task together
  std::atomic<bool> is_kept{false};       // CLIENT NO-EVICT
  std::atomic<bool> waits{false};         // a command waits for a key
  std::atomic<uint32_t> channels{0};      // subscriptions, of each kind (subscriptions.h)
  std::atomic<uint32_t> patterns{0};
  std::atomic<uint32_t> shard_channels{0};
  // The client's worker is to end it. Set under the registry's mutex; relaxed, because the thread
  // that sets it wakes the worker.
  std::atomic<bool> ends{false};

  bool is_subscribed() const {
    return (channels.load(std::memory_order_relaxed) | patterns.load(std::memory_order_relaxed) |
            shard_channels.load(std::memory_order_relaxed)) != 0;
  }

  // Guarded by the registry's mutex.
  std::string name;
  std::string library_name;
  std::string library_version;
};

// The classes of clients: those that have subscribed, the others, and Redis's other classes, of
// which no client here is.
enum class ClientClass : uint8_t { kNormal, kPubSub, kOther };
ClientClass ClassOf(const ClientInfo& client);

// Which clients CLIENT KILL ends: those for which all conditions hold.
struct ClientFilter {
  std::optional<std::string_view> peer, local;
  uint64_t id = 0;  // 0: any
  std::optional<ClientClass> of_class;
  bool skips_self = true;  // not the client that asks
};

// Thread-safe.
class ClientRegistry {
 public:
  static constexpr size_t kNameBytesMax = 256;

  // Ids rise from 1.
  std::shared_ptr<ClientInfo> Add(std::string peer, std::string local, uint64_t now_ms);
  void Remove(const ClientInfo& client);
  size_t size() const;

  // Marks the clients that match, but not `self`, and returns how many match, `self` included.
  // *ends_self says whether it matches.
  size_t EndMatching(const ClientFilter& filter, const ClientInfo& self, bool* ends_self);
  // Marks clients, the one with the most memory first, until the unmarked ones have at most
  // `bytes_max` together. Returns how many were marked. Kept clients (CLIENT NO-EVICT) are not
  // marked, and their memory does not count.
  size_t EndLargest(uint64_t bytes_max);

  // Changes whenever clients were marked.
  uint64_t ended_version() const { return ended_version_.load(std::memory_order_acquire); }
  // How many clients EndLargest has marked so far.
  uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }

  // Adds to, and takes from, the memory of all clients and their tasks.
  void Charge(uint64_t more, uint64_t less) {
    bytes_.fetch_add(more - less, std::memory_order_relaxed);
  }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  void SetName(ClientInfo& client, std::string_view name);
  std::string Name(const ClientInfo& client) const;
  void SetLibrary(ClientInfo& client, std::string_view attribute, std::string_view value);

  // Lines as CLIENT LIST and CLIENT INFO have them.
  std::string Describe(const ClientInfo& client, uint64_t now_ms) const;
  // Empty if there is no such client.
  std::string Describe(uint64_t id, uint64_t now_ms) const;
  std::string DescribeAll(uint64_t now_ms,
                          std::optional<ClientClass> of_class = std::nullopt) const;

 private:
  static std::string Line(const ClientInfo& client, uint64_t now_ms);

  std::atomic<uint64_t> ended_version_{0};
  // Relaxed, both: sums because of which nothing else is read.
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> evicted_{0};
  mutable Mutex mutex_;
  uint64_t last_id_ SKEP_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::shared_ptr<ClientInfo>> clients_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep
