#include "wire/packed_control.h"

#include <iterator>

#include "base/varint.h"
#include "wire/byte_writer.h"

namespace skep::packed {
namespace {

// The bits of the traits, from the lowest on.
constexpr bool EngineTraits::* kTraits[] = {
    &EngineTraits::ordered,       &EngineTraits::atomic, &EngineTraits::snapshots,
    &EngineTraits::functions,     &EngineTraits::walks,  &EngineTraits::multi_version,
    &EngineTraits::whole_batches, &EngineTraits::expiry, &EngineTraits::whole_ranges,
};
constexpr uint64_t kAllTraits = (uint64_t{1} << std::size(kTraits)) - 1;

constexpr uint64_t EngineStatistics::* kStatistics[] = {
    &EngineStatistics::items,           &EngineStatistics::deadlines,
    &EngineStatistics::expired_keys,    &EngineStatistics::bytes,
    &EngineStatistics::old_versions,    &EngineStatistics::snapshots,
    &EngineStatistics::oldest_snapshot, &EngineStatistics::version,
};

}  // namespace

void AppendTraits(std::string& to, const EngineTraits& traits) {
  uint64_t bits = 0;
  uint64_t bit = 1;
  for (const auto trait : kTraits) {
    if (traits.*trait) bits |= bit;
    bit <<= 1;
  }
  AppendVarint(to, bits);
  AppendVarint(to, traits.key_bytes_max);
  AppendVarint(to, traits.value_bytes_max);
  AppendVarint(to, traits.key_bytes_min);
  AppendVarint(to, traits.value_bytes_min);
  to.append(traits.name);
}

bool ReadTraits(std::string_view payload, EngineTraits* traits) {
  uint64_t bits = 0;
  if (!TakeVarint(payload, &bits) || bits > kAllTraits) return false;
  for (const auto trait : kTraits) {
    traits->*trait = (bits & 1) != 0;
    bits >>= 1;
  }
  for (const auto bytes : {&EngineTraits::key_bytes_max, &EngineTraits::value_bytes_max,
                           &EngineTraits::key_bytes_min, &EngineTraits::value_bytes_min}) {
    if (!TakeVarint(payload, &(traits->*bytes))) return false;
  }
  traits->name = payload;
  return true;
}

void AppendStatistics(std::string& to, const KeyspaceStatistics& statistics) {
  for (const auto number : kStatistics) AppendVarint(to, statistics.engine.*number);
  AppendVarint(to, statistics.released);
  for (const auto& [name, value] : statistics.details) {
    AppendBytes(to, name);
    AppendVarint(to, value);
  }
}

bool ReadStatistics(std::string_view payload, KeyspaceStatistics* statistics) {
  for (const auto number : kStatistics) {
    if (!TakeVarint(payload, &(statistics->engine.*number))) return false;
  }
  if (!TakeVarint(payload, &statistics->released)) return false;
  while (!payload.empty()) {
    std::string_view name;
    uint64_t value = 0;
    if (!TakeBytes(payload, &name) || !TakeVarint(payload, &value)) return false;
    statistics->details.emplace_back(name, value);
  }
  return true;
}

}  // namespace skep::packed
