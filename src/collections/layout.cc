#include "collections/layout.h"

#include <bit>

#include "base/varint.h"

namespace skep::collections {
namespace {

constexpr size_t kNumberBytes = 8;
constexpr size_t kSeparatorAt = kHiddenFrom.size() + kNumberBytes + 1;

}  // namespace

std::string OrderedNumber(uint64_t number) {
  std::string bytes(kNumberBytes, '\0');
  for (size_t i = kNumberBytes; i-- > 0; number >>= 8) bytes[i] = static_cast<char>(number);
  return bytes;
}

uint64_t NumberOf(std::string_view ordered) {
  uint64_t number = 0;
  for (const char byte : ordered.substr(0, kNumberBytes)) {
    number = number << 8 | static_cast<uint8_t>(byte);
  }
  return number;
}

// A positive score has its sign bit set, a negative one all bits inverted. Minus zero is zero.
std::string OrderedScore(double score) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  const auto bits = std::bit_cast<uint64_t>(score + 0.0);
  return OrderedNumber((bits & kSign) != 0 ? ~bits : bits | kSign);
}

std::string KeysOf(uint64_t id) { return std::string(kHiddenFrom) + OrderedNumber(id); }

std::string SegmentKey(uint64_t id, Part part, std::string_view separator) {
  std::string key = KeysOf(id);
  key += static_cast<char>(part);
  key += separator;
  return key;
}

std::string_view SeparatorOf(std::string_view key) { return key.substr(kSeparatorAt); }

uint64_t IdOf(std::string_view key) {
  if (!key.starts_with(kHiddenFrom) || key.size() < kSeparatorAt) return 0;
  return NumberOf(key.substr(kHiddenFrom.size()));
}

std::optional<Segment> ReadSegment(std::string_view bytes) {
  Segment segment;
  uint64_t fence_bytes = 0;
  if (!TakeVarint(bytes, &fence_bytes)) return std::nullopt;
  if (fence_bytes > 0) {
    if (fence_bytes - 1 > bytes.size()) return std::nullopt;
    segment.fence = bytes.substr(0, fence_bytes - 1);
    bytes.remove_prefix(fence_bytes - 1);
  }
  if (!TakeVarint(bytes, &segment.pieces)) return std::nullopt;
  segment.body = bytes;
  return segment;
}

std::string WriteSegment(const Segment& segment) {
  std::string bytes;
  bytes.reserve(2 * kVarintBytesMax + segment.body.size() +
                (segment.fence ? segment.fence->size() : 0));
  AppendVarint(bytes, segment.fence ? segment.fence->size() + 1 : 0);
  if (segment.fence) bytes += *segment.fence;
  AppendVarint(bytes, segment.pieces);
  bytes += segment.body;
  return bytes;
}

}  // namespace skep::collections
