// output_limits.h: how many bytes of replies a client may leave unread, as Redis writes it:
//
//   client-output-buffer-limit normal 1073741824 0 0 slave 268435456 67108864 60 pubsub ...
//
// The words are a class of clients, a hard limit, a soft limit, and for how many seconds the soft
// one may be exceeded; 0: no limit. A client that has subscribed to messages is of the class
// pubsub, every other one of the class normal. The class of replicas is kept as it was set, for
// tools that set all three.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "skep/status.h"

namespace skep {

struct OutputLimit {
  uint64_t hard_bytes = 0;
  uint64_t soft_bytes = 0;
  uint32_t soft_seconds = 0;

  friend bool operator==(const OutputLimit&, const OutputLimit&) = default;
};

struct OutputLimits {
  OutputLimit normal = {.hard_bytes = uint64_t{1} << 30};
  OutputLimit replica = {
      .hard_bytes = uint64_t{256} << 20, .soft_bytes = uint64_t{64} << 20, .soft_seconds = 60};
  OutputLimit pubsub = {
      .hard_bytes = uint64_t{32} << 20, .soft_bytes = uint64_t{8} << 20, .soft_seconds = 60};

  friend bool operator==(const OutputLimits&, const OutputLimits&) = default;
};

// Sets the classes that `text` names, or the hard limit of `normal` if it is one number of bytes.
//   kInvalidArgument  `what` is Redis's text for it; nothing is changed
Status SetOutputLimits(std::string_view text, OutputLimits& limits);

// The limits of all classes, in the form that SetOutputLimits reads.
std::string TextOf(const OutputLimits& limits);

}  // namespace skep
