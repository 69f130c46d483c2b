// word_table.h: a set of equally long rows of 32-bit words, each known by a small number.
//
// The checker keeps states and visited configurations in such tables: a state is then one number,
// cheap to copy, and two states are equal if and only if their numbers are (rows are compared
// whole; the hash only finds the candidate).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace skep::linearizability {

// Rows are numbered 0, 1, ... in the order they first came. Thread safety: one owner.
class WordTable {
 public:
  struct Interned {
    uint32_t id;
    bool fresh;  // whether the row is new
  };

  explicit WordTable(size_t row_words) : row_words_(row_words), slots_(kSlotsMin, kEmpty) {}

  // `row` must have row_words() words.
  Interned Intern(std::span<const uint32_t> row) {
    if (2 * (count_ + 1) > slots_.size()) Grow();
    uint32_t& slot = SlotOf(row);
    if (slot != kEmpty) return {.id = slot, .fresh = false};
    slot = count_++;
    words_.insert(words_.end(), row.begin(), row.end());
    return {.id = slot, .fresh = true};
  }

  // Returns the row of a number. Valid until the next Intern().
  std::span<const uint32_t> row(uint32_t id) const {
    return std::span(words_).subspan(id * row_words_, row_words_);
  }
  size_t row_words() const { return row_words_; }
  uint32_t count() const { return count_; }

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;
  static constexpr size_t kSlotsMin = 64;  // a power of two, as every later size

  static uint64_t HashOf(std::span<const uint32_t> row) {
    uint64_t hash = 0x9e3779b97f4a7c15;
    for (const uint32_t word : row) {
      hash = (hash ^ word) * 0xff51afd7ed558ccd;
      hash ^= hash >> 32;
    }
    return hash;
  }

  // Returns the slot of the row, or the empty slot where it belongs.
  uint32_t& SlotOf(std::span<const uint32_t> wanted) {
    size_t at = HashOf(wanted) & (slots_.size() - 1);
    while (slots_[at] != kEmpty && !std::ranges::equal(row(slots_[at]), wanted)) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at];
  }

  void Grow() {
    slots_.assign(2 * slots_.size(), kEmpty);
    for (uint32_t id = 0; id < count_; ++id) SlotOf(row(id)) = id;
  }

  size_t row_words_;
  uint32_t count_ = 0;
  std::vector<uint32_t> words_;
  std::vector<uint32_t> slots_;  // open addressing, at most half full
};

}  // namespace skep::linearizability
