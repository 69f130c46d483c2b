#include "collections/layout.h"

#include <atomic>
#include <bit>
#include <random>

#include "base/varint.h"
#include "types/text.h"

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

std::optional<Segment> ReadItem(Part part, std::string_view bytes) {
  if (part != Part::kCounts) return types::ReadSegment(bytes);
  Segment block;
  if (!types::TakeMaybeText(bytes, &block.fence) || !TakeVarint(bytes, &block.pieces)) {
    return std::nullopt;
  }
  return block;
}

std::string BlockOf(std::optional<std::string_view> fence, uint64_t count) {
  std::string bytes;
  AppendVarint(bytes, fence ? fence->size() + 1 : 0);
  if (fence) bytes += *fence;
  AppendVarint(bytes, count);
  return bytes;
}

uint64_t NextStamp() {
  static std::atomic<uint64_t> last = [] {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
  }();
  return last.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace skep::collections
