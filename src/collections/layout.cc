#include "collections/layout.h"

#include <atomic>
#include <random>

#include "types/score.h"
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

std::string OrderedScore(double score) { return OrderedNumber(types::NumberOfScore(score)); }

std::string KeysOf(uint64_t id) { return std::string(kHiddenFrom) + OrderedNumber(id); }

std::string SegmentKey(uint64_t id, Part part, std::string_view separator) {
  std::string key;
  key.reserve(kSeparatorAt + separator.size());
  key += kHiddenFrom;
  key += OrderedNumber(id);
  key += static_cast<char>(part);
  key += separator;
  return key;
}

std::string_view SeparatorOf(std::string_view key) { return key.substr(kSeparatorAt); }

Part PartOf(std::string_view key) { return static_cast<Part>(key[kSeparatorAt - 1]); }

uint64_t IdOf(std::string_view key) {
  if (!key.starts_with(kHiddenFrom) || key.size() < kSeparatorAt) return 0;
  return NumberOf(key.substr(kHiddenFrom.size()));
}

std::optional<Segment> ReadItem(Part part, std::string_view bytes) {
  if (part == Part::kBlocks) return Segment{.body = bytes};
  if (!IsCounts(part)) return types::ReadSegment(bytes);
  Segment node = {.body = bytes};
  if (!types::TakeMaybeText(bytes, &node.fence)) return std::nullopt;
  return node;
}

uint64_t NextStamp() {
  static std::atomic<uint64_t> last = [] {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
  }();
  return last.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace skep::collections
