#include "btree/fence_words.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "btree/heads/extract_bits.h"
#include "btree/heads/head_layout_bytes.h"

namespace skep::btree {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};

// The first 8 bytes alone are taken, as of binary keys, if so many of their bits differ.
constexpr int kNearlyAll = 60;

// The highest `bytes` bytes of a word, at most all.
uint64_t FirstBytes(size_t bytes) { return bytes >= 8 ? kAll : ~(kAll >> 8 * bytes); }

// The lowest `bits` bits of a word, which has no others, as its highest.
uint64_t AtTop(uint64_t word, int bits) { return bits == 0 ? 0 : word << (64 - bits); }

// How many of the bytes behind `from` a string of `size` bytes has.
size_t BytesBehind(size_t size, size_t from) { return size - std::min(size, from); }

}  // namespace

FenceWords::FenceWords(std::string prefix) : prefix_(std::move(prefix)) { parts_[0].mask = kAll; }

FenceWords::FenceWords(std::string prefix, std::span<const std::string> fences)
    : prefix_(std::move(prefix)) {
  std::string_view longest;
  for (const std::string& fence : fences) {
    if (fence.size() > longest.size()) longest = fence;
  }
  int room = 64;
  for (size_t i = 0; i < kParts && room > 0; ++i) {
    const size_t at = prefix_.size() + 8 * i;
    Part& part = parts_[i];
    part.base = heads::WordAt(longest, at);
    part.mask = ~FirstBytes(BytesBehind(longest.size(), at));
    for (const std::string& fence : fences) {
      part.mask |=
          (heads::WordAt(fence, at) ^ part.base) & FirstBytes(BytesBehind(fence.size(), at));
    }
    used_ = i + 1;
    if (i == 0 && std::popcount(part.mask) >= kNearlyAll) part.mask = kAll;
    uint64_t looked_at = kAll;
    while (std::popcount(part.mask) > room) {
      looked_at = kAll << (std::countr_zero(part.mask) + 1);
      part.mask &= looked_at;
    }
    part.outside = looked_at & ~part.mask;
    room -= std::popcount(part.mask);
  }
}

uint64_t FenceWords::Of(std::string_view key) const {
  if (!key.starts_with(prefix_)) return key < prefix_ ? kLowest : kHighest;
  if (parts_[0].mask == kAll) [[likely]]
    return heads::WordAt(key, prefix_.size());
  return OfParts(key);
}

uint64_t FenceWords::OfParts(std::string_view key) const {
  uint64_t word = 0;
  int bits = 0;
  for (size_t i = 0; i < used_; ++i) {
    const Part& part = parts_[i];
    uint64_t bytes = heads::WordAt(key, prefix_.size() + 8 * i);
    const uint64_t foreign = (bytes ^ part.base) & part.outside;
    bool is_above = false;
    if (foreign != 0) [[unlikely]] {
      const uint64_t from_there_on = kAll >> std::countl_zero(foreign);
      is_above = (bytes & foreign & ~(from_there_on >> 1)) != 0;
      bytes = is_above ? bytes | from_there_on : bytes & ~from_there_on;
    }
    const int added = std::popcount(part.mask);
    word = (added == 64 ? 0 : word << added) | ExtractBits(bytes, 0, part.mask).first;
    bits += added;
    if (foreign != 0) return AtTop(word, bits) | (is_above && bits < 64 ? kAll >> bits : 0);
  }
  return AtTop(word, bits);
}

}  // namespace skep::btree
