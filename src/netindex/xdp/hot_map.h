// hot_map.h: the server's side of the map of hot keys: its writers and fillers. xdp_map.h has the
// protocol and the argument.
//
//   an engine   HotWrites     tells of every write before it can be seen
//   a worker    CountMiss     a GET came that the hook did not answer; is it worth a fill?
//               BeginFill     then Engine::Watch, a GET, and the gate
//               FinishFill
//   now and then  Age         counts are halved, and what was not used makes room
//
// Which keys have an entry. A fill takes an entry of its set that is not valid, or was not used
// since the last Age; if there is none, the key stays with the server.
//
// Thread safety: any thread may call any method.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/mutex.h"
#include "engine/watches.h"
#include "netindex/xdp/count_min.h"
#include "netindex/xdp/xdp_map.h"

namespace skep::xdp {

// The key as the map has it; nullopt if it is empty or too long.
std::optional<XdpKey> KeyOf(uint32_t keyspace, std::string_view key);

class HotMap {
 public:
  // Misses, within about a second, that make a key hot.
  static constexpr uint32_t kHotMisses = 8;

  struct Claim {
    XdpSet* set = nullptr;
    uint32_t way = 0;
    uint32_t generation = 0;
    uint64_t epoch = 0;
    XdpKey key = {};
  };
  struct Statistics {
    uint64_t hits = 0, misses = 0;  // of the hook
    uint64_t fills = 0;
    uint64_t fills_in_vain = 0;  // a write came in between
    uint64_t invalidations = 0;
    uint64_t epoch = 0;
  };

  // `map` holds zeros, and must outlive this object.
  HotMap(XdpMap& map, uint64_t instance, uint64_t seed);

  // Lets the hook answer for the addresses of the program whose bits are set.
  void TurnOn(uint64_t served);

  // Called by a writer under the lock of the key. Cost: a hash, and a load from 64 KiB; an addition
  // if the key has an entry.
  void WillWrite(uint32_t keyspace, std::string_view key) noexcept;
  // Called by the writer of a range under its locks. Makes all entries invalid.
  void WillWriteRange() noexcept;

  // Whether the key of such a miss is to be filled: it is hot and has no entry, or has one that a
  // write has made invalid.
  bool CountMiss(const XdpKey& key);
  // Claims an entry, and makes it invalid; nullopt: both of the key's set are in use.
  std::optional<Claim> BeginFill(const XdpKey& key);
  // Makes the entry valid, with the value that a reader was told after BeginFill and the Watch
  // behind it, of at most XDP_VALUE_BYTES_MAX. False: a write or another claim came in between.
  bool FinishFill(const Claim& claim, std::string_view value);
  // Makes the entry valid as one that the hook does not answer, until the key is written: it is
  // absent, too long, or has a deadline.
  void FinishWithoutValue(const Claim& claim);
  // Once a second.
  void Age();

  Statistics statistics() const;

 private:
  // 16 bits of the hash of each way: what a writer looks at, so that it need not touch the map,
  // where few sets share a page, for a key that has no entry. BeginFill stores them behind the
  // hash: what (2) of xdp_map.h says of a hash holds of its tag.
  using Tags = std::array<std::atomic<uint16_t>, XDP_WAYS>;
  static uint16_t TagOf(uint64_t hash) { return static_cast<uint16_t>(hash >> 48); }

  XdpSet& SetOf(uint64_t hash) { return map_.sets[XdpSetOf(hash)]; }
  Tags& TagsOf(uint64_t hash) { return tags_[XdpSetOf(hash)]; }
  bool Finish(const Claim& claim, uint64_t sizes, std::string_view value);
  bool IsCurrent(XdpSet& set, uint32_t way) const;
  static std::optional<uint32_t> ChooseWay(XdpSet& set, uint64_t hash);

  XdpMap& map_;
  const uint64_t seed_;
  CountMin misses_;
  std::array<Tags, XDP_SETS> tags_{};
  std::atomic<uint64_t> fills_{0}, fills_in_vain_{0}, invalidations_{0};
  Mutex mutex_;  // held by BeginFill and FinishFill
};

// The writes of the engine of one keyspace.
class HotWrites final : public WriteObserver {
 public:
  // `map` must outlive this object.
  HotWrites(HotMap& map, uint32_t keyspace) : map_(map), keyspace_(keyspace) {}

  void WillWrite(std::string_view key) noexcept override { map_.WillWrite(keyspace_, key); }
  void WillWriteRange() noexcept override { map_.WillWriteRange(); }

 private:
  HotMap& map_;
  const uint32_t keyspace_;
};

}  // namespace skep::xdp
