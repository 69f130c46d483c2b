#include "pool/item.h"

#include <cstring>

#include "base/crc32c_step.h"
#include "skep/copy_bytes.h"

namespace skep::pool {
namespace {

std::string_view Chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t WordAt(std::span<const std::byte> bytes, size_t at) {
  uint64_t word;
  std::memcpy(&word, bytes.data() + at, sizeof(word));
  return word;
}

// Of all bytes of an item, with its header at the front. The order of the fields lets the header's
// be two words and a half.
uint32_t ChecksumOf(const ItemPlace& place, std::span<const std::byte> item) {
  constexpr size_t kBegin = offsetof(ItemHeader, gen);
  static_assert(offsetof(ItemHeader, version) - kBegin == 8 + 8 + 4);
  const uint64_t where = uint64_t{place.gen} << 40 | uint64_t{place.chunk} << 15 | place.unit;
  uint32_t crc = Crc32cWord(kCrc32cBegin, where);
  crc = Crc32cWord(crc, WordAt(item, kBegin));
  crc = Crc32cWord(crc, WordAt(item, kBegin + 8));
  crc = Crc32cHalf(crc, static_cast<uint32_t>(WordAt(item, kBegin + 16)));
  size_t at = sizeof(ItemHeader);
  for (; at + 8 <= item.size(); at += 8) crc = Crc32cWord(crc, WordAt(item, at));
  for (; at < item.size(); ++at) crc = Crc32cByte(crc, static_cast<uint8_t>(item[at]));
  return ~crc;
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
  const char* const key = reinterpret_cast<const char*>(bytes.data()) + sizeof(header);
  return ItemView{.key = {key, header.key_bytes},
                  .value = {key + header.key_bytes, header.value_bytes},
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
