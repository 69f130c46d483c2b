#include "netindex/xdp/hot_map.h"

#include <array>
#include <cstring>

#include "base/check.h"

namespace skep::xdp {
namespace {

constexpr uint64_t kOneGeneration = uint64_t{1} << 32;

// Sequentially consistent, as all that writers, fillers and the hook agree by.
std::atomic_ref<uint64_t> Shared(uint64_t& field) { return std::atomic_ref<uint64_t>(field); }
void Store(uint64_t& field, uint64_t to) { Shared(field).store(to, std::memory_order_relaxed); }
uint64_t Load(uint64_t& field) { return Shared(field).load(std::memory_order_relaxed); }

bool FitsMap(std::string_view key) { return !key.empty() && key.size() <= XDP_KEY_BYTES_MAX; }

// XdpHash of a key that KeyOf takes, without the copy with its zeros: every write pays for this.
uint64_t HashOf(uint64_t seed, uint32_t keyspace, std::string_view key) {
  const auto bytes = static_cast<uint32_t>(key.size());
  uint64_t hash = XdpHashBegin(seed, keyspace, bytes);
  const char* at = key.data();
  for (const char* const end = at + bytes / 8 * 8; at != end; at += 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    hash = XdpHashWord(hash, word);
  }
  if (bytes % 8 != 0) {
    uint64_t rest = 0;
    for (uint32_t i = 0; i < bytes % 8; ++i) {
      rest |= uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
    }
    hash = XdpHashWord(hash, rest);
  }
  return hash | 1;
}

void WriteBody(XdpBody& body, const HotMap::Claim& claim, uint64_t sizes, std::string_view value) {
  std::array<uint64_t, XDP_VALUE_WORDS> padded{};
  if (!value.empty()) std::memcpy(padded.data(), value.data(), value.size());
  Store(body.epoch, claim.epoch);
  Store(body.sizes, sizes);
  for (uint32_t i = 0; i < XDP_KEY_WORDS; ++i) Store(body.key[i], claim.key.words[i]);
  for (uint32_t i = 0; i < XDP_VALUE_WORDS; ++i) Store(body.value[i], padded[i]);
}

}  // namespace

std::optional<XdpKey> KeyOf(uint32_t keyspace, std::string_view key) {
  if (!FitsMap(key)) return std::nullopt;
  XdpKey padded{};
  std::memcpy(padded.words, key.data(), key.size());
  padded.bytes = static_cast<uint32_t>(key.size());
  padded.keyspace = keyspace;
  return padded;
}

HotMap::HotMap(XdpMap& map, uint64_t instance, uint64_t seed) : map_(map), seed_(seed) {
  Store(map_.header.instance, instance);
  Store(map_.header.seed, seed);
}

void HotMap::TurnOn(uint64_t served) {
  Store(map_.header.served, served);
  Shared(map_.header.on).store(1);
}

void HotMap::WillWrite(uint32_t keyspace, std::string_view key) noexcept {
  if (!FitsMap(key)) return;
  const uint64_t hash = HashOf(seed_, keyspace, key);
  const Tags& tags = TagsOf(hash);
  for (uint32_t way = 0; way < XDP_WAYS; ++way) {
    if (tags[way].load() != TagOf(hash) || Shared(SetOf(hash).hash[way]).load() != hash) continue;
    Shared(SetOf(hash).word[way]).fetch_add(kOneGeneration);
    invalidations_.fetch_add(1, std::memory_order_relaxed);
  }
}

void HotMap::WillWriteRange() noexcept { Shared(map_.header.epoch).fetch_add(1); }

bool HotMap::CountMiss(const XdpKey& key) {
  const uint64_t hash = XdpHash(seed_, &key);
  XdpSet& set = SetOf(hash);
  const bool is_hot = misses_.Add(hash) >= kHotMisses;
  for (uint32_t way = 0; way < XDP_WAYS; ++way) {
    if (Load(set.hash[way]) == hash) return !IsCurrent(set, way);
  }
  return is_hot;
}

bool HotMap::IsCurrent(XdpSet& set, uint32_t way) const {
  return XdpIsValid(Load(set.word[way])) && Load(set.body[way].epoch) == Load(map_.header.epoch);
}

std::optional<uint32_t> HotMap::ChooseWay(XdpSet& set, uint64_t hash) {
  for (uint32_t way = 0; way < XDP_WAYS; ++way) {
    if (Load(set.hash[way]) == hash) return way;
  }
  for (uint32_t way = 0; way < XDP_WAYS; ++way) {
    if (Load(set.hash[way]) == 0 || Load(set.used[way]) == 0) return way;
  }
  return std::nullopt;
}

std::optional<HotMap::Claim> HotMap::BeginFill(const XdpKey& key) {
  const uint64_t hash = XdpHash(seed_, &key);
  XdpSet& set = SetOf(hash);
  const MutexLock lock(mutex_);
  const std::optional<uint32_t> way = ChooseWay(set, hash);
  if (!way) return std::nullopt;
  Claim claim{.set = &set, .way = *way, .key = key};
  claim.epoch = Shared(map_.header.epoch).load();
  // The generation before the hash: (2) of xdp_map.h.
  claim.generation = XdpGeneration(Shared(set.word[*way]).fetch_add(kOneGeneration)) + 1;
  Shared(set.hash[*way]).store(hash);
  TagsOf(hash)[*way].store(TagOf(hash));
  // The entry counts as used until the next Age, so the next claim of this set takes the other one.
  Store(set.used[*way], 1);
  return claim;
}

bool HotMap::FinishFill(const Claim& claim, std::string_view value) {
  SKEP_CHECK(value.size() <= XDP_VALUE_BYTES_MAX);
  const auto bytes = static_cast<uint32_t>(value.size());
  const bool is_valid = Finish(claim, XdpSizes(claim.key.keyspace, claim.key.bytes, bytes), value);
  (is_valid ? fills_ : fills_in_vain_).fetch_add(1, std::memory_order_relaxed);
  return is_valid;
}

// No question has these sizes.
void HotMap::FinishWithoutValue(const Claim& claim) { Finish(claim, 0, {}); }

bool HotMap::Finish(const Claim& claim, uint64_t sizes, std::string_view value) {
  uint64_t& word = claim.set->word[claim.way];
  const MutexLock lock(mutex_);
  uint64_t found = Shared(word).load();
  if (XdpGeneration(found) != claim.generation || XdpIsValid(found)) return false;
  WriteBody(claim.set->body[claim.way], claim, sizes, value);
  return Shared(word).compare_exchange_strong(found, XdpValidWord(claim.generation));
}

void HotMap::Age() {
  misses_.Halve();
  for (XdpSet& set : map_.sets) {
    for (uint64_t& used : set.used) {
      if (Load(used) != 0) Store(used, 0);
    }
  }
}

HotMap::Statistics HotMap::statistics() const {
  Statistics all{.fills = fills_.load(std::memory_order_relaxed),
                 .fills_in_vain = fills_in_vain_.load(std::memory_order_relaxed),
                 .invalidations = invalidations_.load(std::memory_order_relaxed),
                 .epoch = Load(map_.header.epoch)};
  for (XdpCounters& counters : map_.counters) {
    all.hits += Load(counters.hits);
    all.misses += Load(counters.misses);
  }
  return all;
}

}  // namespace skep::xdp
