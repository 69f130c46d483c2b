// pieces.h: the pieces in which several threads take the work of one batch (HeteroKV, section
// III-D: the master hands leaves to slaves).
//
//   groups   a 40 | b 900 | c 30 | d 500 | e 3000 (only reads)
//   pieces   e 600  e 600  e 600  e 600  e 600   b 940, with a   d 530, with c
//
// Neighbouring groups are one piece as long as it is small. A large group of reads is divided into
// several pieces under one lock of its leaf. Those come first; then the largest pieces: the last
// ones to be taken are small, so that no thread is long alone at the end.
//
// Owner: the thread that brought the batch. Other threads may read it, and count down `left`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "hashleaf/dispatcher.h"

namespace skep::hashleaf {

template <typename K>
class Pieces {
 public:
  // A large group of reads, whose leaf is locked for all threads that do pieces of it.
  struct Hot {
    const Group<K>* group = nullptr;
    std::atomic<uint32_t> left{0};  // pieces not done yet; the last one drops the lock
  };
  struct Piece {
    uint32_t begin, end;  // of groups; of a hot group: of units
    uint32_t units;
    Hot* hot;  // null: the piece is of whole groups
  };

  // A piece takes groups until it has this many operations.
  static constexpr uint32_t kUnits = 512;

  // lock_to_read(group) is called for large groups: it returns true if the group only reads and its
  // leaf is locked for that now. All memory is allocated before the first call, so that no leaf
  // stays locked when an allocation fails.
  template <typename LockToRead>
  Pieces(std::span<const Group<K>> groups, LockToRead lock_to_read);

  // Returns the pieces in the order in which they are to be taken.
  std::span<const Piece> all() const { return pieces_; }
  std::span<Hot> hot_groups() { return std::span(hot_).first(hot_count_); }

 private:
  void AddHot(const Group<K>& group);
  void AddGroup(uint32_t g, uint32_t units);

  std::vector<Hot> hot_;  // room for every large group; never resized, since pieces point into it
  size_t hot_count_ = 0;
  std::vector<Piece> pieces_;
};

template <typename K>
template <typename LockToRead>
Pieces<K>::Pieces(std::span<const Group<K>> groups, LockToRead lock_to_read)
    : hot_(static_cast<size_t>(std::ranges::count_if(
          groups, [](const Group<K>& group) { return group.end - group.begin >= 2 * kUnits; }))) {
  size_t pieces_max = groups.size();
  for (const Group<K>& group : groups) pieces_max += (group.end - group.begin) / kUnits;
  pieces_.reserve(pieces_max);
  for (uint32_t g = 0; g < groups.size(); ++g) {
    const uint32_t units = groups[g].end - groups[g].begin;
    units >= 2 * kUnits&& lock_to_read(groups[g]) ? AddHot(groups[g]) : AddGroup(g, units);
  }
  std::ranges::stable_sort(pieces_, std::greater<>(), [](const Piece& piece) {
    return std::pair(piece.hot != nullptr, piece.units);
  });
}

template <typename K>
void Pieces<K>::AddHot(const Group<K>& group) {
  const uint32_t units = group.end - group.begin;
  const uint32_t parts = units / kUnits;
  Hot& hot = hot_[hot_count_++];
  hot.group = &group;
  hot.left.store(parts, std::memory_order_relaxed);
  const auto at = [&](uint32_t part) {
    return group.begin + static_cast<uint32_t>(uint64_t{units} * part / parts);
  };
  for (uint32_t part = 0; part < parts; ++part) {
    const uint32_t begin = at(part);
    const uint32_t end = at(part + 1);
    pieces_.push_back({.begin = begin, .end = end, .units = end - begin, .hot = &hot});
  }
}

template <typename K>
void Pieces<K>::AddGroup(uint32_t g, uint32_t units) {
  const bool goes_on = !pieces_.empty() && pieces_.back().hot == nullptr &&
                       pieces_.back().end == g && pieces_.back().units < kUnits;
  if (!goes_on) pieces_.push_back({.begin = g, .end = g, .units = 0, .hot = nullptr});
  pieces_.back().end = g + 1;
  pieces_.back().units += units;
}

}  // namespace skep::hashleaf
