// hello.h: what two endpoints tell each other first.
//
//   offset  size  field
//        0     8  magic             "SKEPRMA1"
//        8     4  fabric            FabricKind
//       12     4  region_count      at most kRegionsMax
//       16     8  message_bytes_max
//       24     8  unsent_bytes_max
//       32    16  each region: bytes 8, access 1 (Access), (zero) 7
//                 own: what else this kind of fabric has to tell, to the end       little-endian
//
// The one that connects speaks first; the other one answers with its own hello, or refuses. A limit
// of the peer's is told so that nothing is sent that it would disconnect for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rma/fabric.h"
#include "rma/word_copy.h"

namespace skep::rma {

enum class FabricKind : uint32_t { kMem = 1, kTcp = 2, kOfi = 3 };

struct RegionExtent {
  uint64_t bytes = 0;
  Access access = Access::kRead;
};

//   kInvalidArgument  more than kRegionsMax, one without memory, or one that peers may write and
//                     this process may not
Status CheckRegions(std::span<const Region> regions);

// Whether the regions have the bytes, in whole words, and let them be read or written.
inline bool Allow(std::span<const RegionExtent> regions, const Operation& operation) {
  if (operation.region >= regions.size()) return false;
  const RegionExtent& region = regions[operation.region];
  const bool is_write = operation.kind == Operation::Kind::kWrite;
  if (is_write && region.access != Access::kReadWrite) return false;
  if (operation.bytes == 0 || (operation.bytes | operation.offset) % kWordBytes != 0) return false;
  return operation.bytes <= region.bytes && operation.offset <= region.bytes - operation.bytes;
}

struct Hello {
  FabricKind fabric = FabricKind::kMem;
  uint64_t message_bytes_max = 0;
  uint64_t unsent_bytes_max = 0;
  std::vector<RegionExtent> regions;
  std::string own;
};

inline constexpr size_t kHelloOwnBytesMax = 4096;
inline constexpr size_t kHelloBytesMax = 32 + 16 * kRegionsMax + kHelloOwnBytesMax;

std::string EncodeHello(const Hello& hello);
// Nothing if it is none.
std::optional<Hello> DecodeHello(std::string_view bytes);

}  // namespace skep::rma
