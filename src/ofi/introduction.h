// introduction.h: what an endpoint of ofi tells a peer of itself, in its hello (Hello::own).
//
//   offset  size  field
//        0     4  name_bytes   at most kNameBytesMax
//        4     4  (zero)
//        8    16  each region of the hello: base 8, key 8, as fi_read takes them
//                 name: what fi_getname tells                                       little-endian
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ofi/operation_queue.h"
#include "rma/hello.h"

namespace skep::rma {

struct Introduction {
  static constexpr size_t kNameBytesMax = 512;

  std::vector<RemoteRegion> regions;
  std::string name;
};

static_assert(8 + 16 * kRegionsMax + Introduction::kNameBytesMax <= kHelloOwnBytesMax);

std::string EncodeIntroduction(const Introduction& introduction);
// Nothing if it is none of so many regions.
std::optional<Introduction> DecodeIntroduction(std::string_view bytes, size_t regions);

}  // namespace skep::rma
