// share_place.h: where a server shares its leaves: "mem:unix:/run/skep-leaves.sock" or
// "tcp:127.0.0.1:7400".
//
// Only the fabrics mem and tcp: leaf_reader.h needs memory that is coherent, and words that are
// whole, and libfabric promises neither for every provider (ofi/ofi_fabric.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/network.h"

namespace skep::leaves {

struct SharePlace {
  std::string fabric;
  Address address;
};

// What a person is told who wrote another one.
inline constexpr const char* kSharePlaces = "leaves are shared at mem:unix:PATH or tcp:HOST:PORT";

inline std::optional<SharePlace> ParseSharePlace(std::string_view text) {
  const bool is_mem = text.starts_with("mem:unix:/");
  const bool is_tcp = text.starts_with("tcp:") && text.rfind(':') > 4;
  if (!is_mem && !is_tcp) return std::nullopt;
  return SharePlace{.fabric = std::string(text.substr(0, 3)), .address = Address(text.substr(4))};
}

}  // namespace skep::leaves
