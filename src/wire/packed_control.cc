#include "wire/packed_control.h"

#include "base/varint.h"
#include "wire/pen.h"

namespace skep::packed {
namespace {

// Bits, from the lowest on.
constexpr bool EngineTraits::* kTraits[] = {
    &EngineTraits::ordered,       &EngineTraits::atomic, &EngineTraits::snapshots,
    &EngineTraits::functions,     &EngineTraits::walks,  &EngineTraits::multi_version,
    &EngineTraits::whole_batches,
};
constexpr uint8_t kAllTraits = 127;

constexpr uint64_t EngineStatistics::* kStatistics[] = {
    &EngineStatistics::items,           &EngineStatistics::deadlines,
    &EngineStatistics::expired_keys,    &EngineStatistics::bytes,
    &EngineStatistics::old_versions,    &EngineStatistics::snapshots,
    &EngineStatistics::oldest_snapshot, &EngineStatistics::version,
};

}  // namespace

void AppendTraits(std::string& to, const EngineTraits& traits) {
  uint8_t bits = 0;
  uint8_t bit = 1;
  for (const auto trait : kTraits) {
    if (traits.*trait) bits |= bit;
    bit = static_cast<uint8_t>(bit << 1);
  }
  to.push_back(static_cast<char>(bits));
  AppendVarint(to, traits.key_bytes_max);
  AppendVarint(to, traits.value_bytes_max);
  to.append(traits.name);
}

bool ReadTraits(std::string_view payload, EngineTraits* traits) {
  uint8_t bits = 0;
  if (!TakeByte(payload, &bits) || bits > kAllTraits) return false;
  for (const auto trait : kTraits) {
    traits->*trait = (bits & 1) != 0;
    bits = static_cast<uint8_t>(bits >> 1);
  }
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;
  if (!TakeVarint(payload, &key_bytes) || !TakeVarint(payload, &value_bytes)) return false;
  traits->key_bytes_max = key_bytes;
  traits->value_bytes_max = value_bytes;
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
