#include "collections/ordered_names.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/compare_bytes.h"

namespace skep::collections {
namespace {

// The first eight bytes from `from` on, in the order of the strings; those that are missing are
// zeros.
inline uint64_t HeadOf(std::string_view bytes, size_t from) {
  constexpr size_t kBytes = sizeof(uint64_t);
  const size_t left = bytes.size() - from;
  uint64_t head = 0;
  if (left >= kBytes) [[likely]] {
    std::memcpy(&head, bytes.data() + from, kBytes);
    return __builtin_bswap64(head);
  }
  if (left == 0) return 0;
  if (bytes.size() >= kBytes) {
    std::memcpy(&head, bytes.data() + bytes.size() - kBytes, kBytes);
    return __builtin_bswap64(head) << (8 * (kBytes - left));
  }
  std::memcpy(&head, bytes.data() + from, left);
  return __builtin_bswap64(head);
}

// How many of the numbers, which ascend, are below `wanted`.
inline size_t CountBelow(std::span<const uint64_t> numbers, uint64_t wanted) {
  const uint64_t* begin = numbers.data();
  for (size_t left = numbers.size(); left > 0;) {
    const size_t half = (left + 1) / 2;
    begin += begin[half - 1] < wanted ? half : 0;
    left -= half;
  }
  return static_cast<size_t>(begin - numbers.data());
}

size_t CommonBytes(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

void OrderedNames::Reserve(size_t names) {
  heads_.reserve(names);
  names_.reserve(names);
}

size_t OrderedNames::FindFloor(std::string_view place) const {
  const size_t count = names_.size();
  if (count < 2) return 0;
  const std::string_view common = names_.back().substr(0, common_bytes_);
  const int order = CompareBytes(place.substr(0, common_bytes_), common);
  if (order != 0) return order < 0 ? 0 : count - 1;
  const uint64_t head = HeadOf(place, common_bytes_);
  size_t low = 1 + CountBelow(std::span(heads_).subspan(1), head);
  if (low == count || heads_[low] != head) return low - 1;
  const auto is_not_above = [&](std::string_view name) { return CompareBytes(name, place) <= 0; };
  const auto same = static_cast<size_t>(
      std::upper_bound(heads_.begin() + static_cast<ptrdiff_t>(low), heads_.end(), head) -
      heads_.begin());
  const auto equal = std::span(names_).subspan(low, same - low);
  low += static_cast<size_t>(std::ranges::partition_point(equal, is_not_above) - equal.begin());
  return low - 1;
}

// Makes the heads right, if only that of one name may be wrong as long as what all begin with
// stays.
void OrderedNames::Settle(size_t changed) {
  const size_t count = names_.size();
  // The names ascend, so what the second and the last one begin with, all between them begin with.
  const size_t common = count < 2 ? 0 : CommonBytes(names_[1], names_.back());
  const bool is_same = common == common_bytes_;
  common_bytes_ = common;
  const size_t begin = is_same ? changed : 1;
  const size_t end = is_same ? std::min(changed + 1, count) : count;
  for (size_t i = std::max<size_t>(begin, 1); i < end; ++i) heads_[i] = HeadOf(names_[i], common);
}

void OrderedNames::Insert(size_t at, std::string_view name) {
  names_.insert(names_.begin() + static_cast<ptrdiff_t>(at), name);
  heads_.insert(heads_.begin() + static_cast<ptrdiff_t>(at), 0);
  // A name that is put in front makes the old first name the second one.
  Settle(at == 0 ? 1 : at);
}

void OrderedNames::Erase(size_t at) {
  names_.erase(names_.begin() + static_cast<ptrdiff_t>(at));
  heads_.erase(heads_.begin() + static_cast<ptrdiff_t>(at));
  Settle(0);
}

void OrderedNames::MoveTail(size_t at, OrderedNames& to) {
  const auto begin = static_cast<ptrdiff_t>(at);
  to.names_.assign(names_.begin() + begin, names_.end());
  to.heads_.assign(heads_.begin() + begin, heads_.end());
  to.common_bytes_ = common_bytes_;
  to.Settle(0);
  names_.resize(at);
  heads_.resize(at);
  Settle(0);
}

}  // namespace skep::collections
