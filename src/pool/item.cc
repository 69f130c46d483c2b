#include "pool/item.h"

#include <cstring>

#include "base/crc32c.h"
#include "skep/copy_bytes.h"

namespace skep::pool {
namespace {

std::string_view Chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Of an item with this header at the front of `item`.
uint32_t ChecksumOf(const ItemPlace& place, std::span<const std::byte> item) {
  const uint64_t where = uint64_t{place.gen} << 40 | uint64_t{place.chunk} << 15 | place.unit;
  char seed[sizeof(where)];
  std::memcpy(seed, &where, sizeof(where));
  const std::string_view bytes = Chars(item);
  constexpr size_t kBegin = offsetof(ItemHeader, gen);
  constexpr size_t kEnd = offsetof(ItemHeader, version);
  const uint32_t crc = Crc32c(bytes.substr(kBegin, kEnd - kBegin), Crc32c({seed, sizeof(seed)}));
  return Crc32c(bytes.substr(sizeof(ItemHeader)), crc);
}

size_t BytesOf(const ItemHeader& header) {
  return sizeof(header) + header.key_bytes + header.value_bytes;
}

bool CanBe(const ItemHeader& header) {
  return header.key_bytes <= kKeyBytesMax && header.value_bytes <= kValueBytesMax;
}

}  // namespace

void WriteItem(const ItemPlace& place, uint32_t client, uint64_t sequence, std::string_view key,
               std::string_view value, std::span<std::byte> to) {
  ItemHeader header = {.crc = 0,
                       .gen = place.gen,
                       .zero = 0,
                       .key_bytes = static_cast<uint16_t>(key.size()),
                       .value_bytes = static_cast<uint32_t>(value.size()),
                       .client = client,
                       .sequence = sequence,
                       .version = 0};
  std::byte* const at = to.data();
  CopyBytes(at + sizeof(header), key.data(), key.size());
  CopyBytes(at + sizeof(header) + key.size(), value.data(), value.size());
  const size_t end = BytesOf(header);
  std::memset(at + end, 0, UnitsOf(key.size(), value.size()) * kUnitBytes - end);
  std::memcpy(at, &header, sizeof(header));
  header.crc = ChecksumOf(place, to.first(end));
  std::memcpy(at, &header.crc, sizeof(header.crc));
}

std::optional<ItemView> ReadItem(const ItemPlace& place, std::span<const std::byte> bytes) {
  ItemHeader header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.gen != place.gen || !CanBe(header) || BytesOf(header) > bytes.size() ||
      header.crc != ChecksumOf(place, bytes.first(BytesOf(header)))) {
    return std::nullopt;
  }
  const std::string_view all = Chars(bytes);
  return ItemView{.key = all.substr(sizeof(header), header.key_bytes),
                  .value = all.substr(sizeof(header) + header.key_bytes, header.value_bytes),
                  .client = header.client,
                  .sequence = header.sequence};
}

uint32_t UnitsToldBy(std::span<const std::byte> bytes) {
  ItemHeader header;
  if (bytes.size() < sizeof(header)) return 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return CanBe(header) ? UnitsOf(header.key_bytes, header.value_bytes) : 0;
}

std::string_view KeyToldBy(std::span<const std::byte> bytes) {
  if (UnitsToldBy(bytes) == 0) return {};
  ItemHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const std::string_view rest = Chars(bytes).substr(sizeof(header));
  return header.key_bytes <= rest.size() ? rest.substr(0, header.key_bytes) : std::string_view();
}

}  // namespace skep::pool
