// event_classes.h: which events of keys are told (key_events.h), by the letters of Redis's
// notify-keyspace-events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace skep {

// The classes of events, and the two kinds of channels, as bits.
enum EventClass : uint32_t {
  kKeyspaceChannels = 1,
  kKeyeventChannels = 2,
  kGenericEvents = 4,
  kStringEvents = 8,
  kListEvents = 16,
  kSetEvents = 32,
  kHashEvents = 64,
  kSortedSetEvents = 128,
  kExpiredEvents = 256,
  kEvictedEvents = 512,  // there are none: nothing is evicted
  kStreamEvents = 1024,  // there are none, nor of modules
  kModuleEvents = 2048,
  kMissEvents = 4096,
  kNewEvents = 8192,
};

// The letters of notify-keyspace-events. Nothing: one of them has no meaning.
std::optional<uint32_t> ParseEventClasses(std::string_view letters);
// As Redis writes them.
std::string TextOfEventClasses(uint32_t classes);

}  // namespace skep
