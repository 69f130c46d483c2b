#include "rma/hello.h"

#include <algorithm>
#include <cstring>

namespace skep::rma {
namespace {

constexpr char kMagic[] = {'S', 'K', 'E', 'P', 'R', 'M', 'A', '1'};

struct HelloHeader {
  char magic[8];
  FabricKind fabric;
  uint32_t region_count;
  uint64_t message_bytes_max;
  uint64_t unsent_bytes_max;
};

struct EncodedRegion {
  uint64_t bytes;
  uint64_t access;  // the bytes above the first one are zero
};
static_assert(sizeof(HelloHeader) + kRegionsMax * sizeof(EncodedRegion) + kHelloOwnBytesMax ==
              kHelloBytesMax);

}  // namespace

Status CheckRegions(std::span<const Region> regions) {
  if (regions.size() > kRegionsMax) {
    return Status(Code::kInvalidArgument, "too many regions", kRegionsMax);
  }
  for (const Region& region : regions) {
    if (region.memory == nullptr) return Status(Code::kInvalidArgument, "a region has no memory");
    if (region.access == Access::kReadWrite && !region.memory->is_writable()) {
      return Status(Code::kInvalidArgument, "a region that peers may write is not writable");
    }
  }
  return {};
}

std::string EncodeHello(const Hello& hello) {
  HelloHeader header = {.magic = {},
                        .fabric = hello.fabric,
                        .region_count = static_cast<uint32_t>(hello.regions.size()),
                        .message_bytes_max = hello.message_bytes_max,
                        .unsent_bytes_max = hello.unsent_bytes_max};
  std::ranges::copy(kMagic, header.magic);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  for (const RegionExtent& region : hello.regions) {
    const EncodedRegion encoded = {region.bytes, static_cast<uint64_t>(region.access)};
    bytes.append(reinterpret_cast<const char*>(&encoded), sizeof(encoded));
  }
  return bytes.append(hello.own);
}

std::optional<Hello> DecodeHello(std::string_view bytes) {
  HelloHeader header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes.remove_prefix(sizeof(header));
  if (!std::ranges::equal(header.magic, kMagic) || header.region_count > kRegionsMax ||
      bytes.size() < header.region_count * sizeof(EncodedRegion)) {
    return std::nullopt;
  }
  Hello hello = {.fabric = header.fabric,
                 .message_bytes_max = header.message_bytes_max,
                 .unsent_bytes_max = header.unsent_bytes_max,
                 .regions = {},
                 .own = {}};
  for (uint32_t i = 0; i < header.region_count; ++i) {
    EncodedRegion region;
    std::memcpy(&region, bytes.data(), sizeof(region));
    bytes.remove_prefix(sizeof(region));
    if (region.access > static_cast<uint64_t>(Access::kReadWrite)) return std::nullopt;
    hello.regions.push_back({region.bytes, static_cast<Access>(region.access)});
  }
  hello.own = bytes;
  return hello;
}

}  // namespace skep::rma
