#include "ofi/introduction.h"

#include <cstring>

namespace skep::rma {
namespace {

struct Header {
  uint32_t name_bytes;
  uint32_t zero;
};
static_assert(sizeof(Header) == 8 && sizeof(RemoteRegion) == 16);

}  // namespace

std::string EncodeIntroduction(const Introduction& introduction) {
  const Header header = {.name_bytes = static_cast<uint32_t>(introduction.name.size()), .zero = 0};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(introduction.regions.data()),
               introduction.regions.size() * sizeof(RemoteRegion));
  return bytes.append(introduction.name);
}

std::optional<Introduction> DecodeIntroduction(std::string_view bytes, size_t regions) {
  Header header;
  const size_t fixed_bytes = sizeof(header) + regions * sizeof(RemoteRegion);
  if (bytes.size() < fixed_bytes) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.zero != 0 || header.name_bytes == 0 ||
      header.name_bytes > Introduction::kNameBytesMax ||
      bytes.size() != fixed_bytes + header.name_bytes) {
    return std::nullopt;
  }
  Introduction introduction = {.regions = std::vector<RemoteRegion>(regions),
                               .name = std::string(bytes.substr(fixed_bytes))};
  for (RemoteRegion& region : introduction.regions) {
    std::memcpy(&region, bytes.data() + sizeof(header), sizeof(region));
    bytes.remove_prefix(sizeof(region));
  }
  return introduction;
}

}  // namespace skep::rma
