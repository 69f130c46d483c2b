// leaf_directory.h: where the leaves are, in one flat table beside the tree: a hint.
//
// A way down the tree reads, of each inner node, a row of the page table, a search line, heads and
// a link, one after the other. The directory has a word of 8 bytes of each leaf's lower fence,
// in one sorted array, and the leaf's link. Sixteen words are two lines, which are compared side by
// side:
//
//   top      w  w  w ...                              first words of 16 groups below
//   ...      w  w  w ... | w  w  w ... | ...
//   groups   16 words, 16 links | 16 words, 16 links | ...      256 bytes each
//
// A search reads two lines of each level above the groups and three of a group. Of 400,000 leaves
// the levels above take 210 KB, which a core's own cache keeps, and the groups 6.4 MB. Memory: 16
// bytes a leaf, and less than one for the levels above.
//
// Words (fence_words.h) rise with the keys. A key whose word equals that of a fence is not told
//   from it, and has no link here. All other keys have the link of the leaf that had them when its
//   fence was read.
//
// Guesses. With the link a reader gets the key's share of the way from its leaf's word to the next
//   one, and the shape that an earlier reader has seen in the leaf: how many sorted items it has,
//   and their size. From these it guesses which items of the leaf to ask for together with the
//   leaf's first lines, so that one miss is waited for and not two. 20 bits of a link's word, which
//   no LID needs, keep the shape; readers write it, relaxed, when the leaf has another one.
//
// Safety. A directory is out of date at once, so nothing about a link is believed but that it may
//   name a node: the reader checks row, level, mark and fences (Reader::Surmise), as it does with a
//   hint of a stranger. So a directory that is stale, torn between two states of the tree, or wrong
//   costs a way down from the root and never an answer.
//
// Roles and progress: directory_keeper.h. Only shapes change once readers have the directory; a
// reader that meets another one's store sees one shape or the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/huge_pages.h"
#include "btree/fence_words.h"
#include "btree/leaf_shape.h"
#include "btree/link.h"

namespace skep::btree {

class LeafDirectory {
 public:
  // Where a key is, as far as the directory knows.
  struct Guess {
    Link link = {};        // of the leaf; none: the directory cannot tell
    LeafShape shape = {};  // of the leaf; none: no reader has seen it yet
    uint32_t share = 0;    // how far the key's word is on the way to the next leaf's (LeafShape)
    std::atomic<uint64_t>* entry = nullptr;

    // Keeps the shape that the leaf has.
    void Keep(LeafShape seen) const {
      if (seen.IsNear(shape)) return;
      entry->store(link.bits | uint64_t{seen.bits} << kLidBits, std::memory_order_relaxed);
    }
  };
  static constexpr uint32_t kLidBits = 48 - LeafShape::kBits;

  static constexpr uint32_t kGroup = 16;

  // Makes a directory without leaves that has room for so many (> 0). Null: the system has no
  // memory.
  static std::unique_ptr<LeafDirectory> Make(size_t leaves_max, FenceWords words);

  // Filling, by one thread, in the order of the keys.
  //
  // Adds a leaf; `lower` is its lower fence. False: there is no more room.
  bool Add(std::string_view lower, Link leaf);
  // Called once all leaves are added, at least one.
  void Finish();

  // Thread-safe. Wait-free.
  Guess Find(std::string_view key) const { return GuessAt(Locate(key)); }

  // Find in two steps, so that the searches for many keys wait for memory side by side: the first
  // one reads the levels above the groups and asks for the lines of the key's group, and the second
  // one reads these. LinkAt is GuessAt without what is not needed for the link.
  struct Place {
    uint64_t word = 0;   // the key's
    uint64_t above = 0;  // the first word of the next group
    uint64_t group = 0;
  };
  Place Locate(std::string_view key) const;
  Guess GuessAt(const Place& place) const;
  Link LinkAt(const Place& place) const;

  size_t leaves() const { return leaves_; }
  // The number of leaves whose word equals that of the leaf before, so that most of their keys may
  // have to go down from the root.
  size_t alike() const { return alike_; }
  // The bytes that it takes from the system.
  size_t bytes() const { return bytes_; }
  // The bytes of a directory with room for so many leaves.
  static size_t BytesOf(size_t leaves_max);

 private:
  struct Group {
    uint64_t words[kGroup];
    std::atomic<uint64_t> links[kGroup];
  };
  static_assert(sizeof(Group) == 256);
  static constexpr uint32_t kLevelsMax = 12;  // of 16 ^ 13 leaves, more than there are LIDs

  LeafDirectory(PageRegion memory, size_t bytes, size_t leaves_max, FenceWords words);

  Group* groups() const { return reinterpret_cast<Group*>(memory_.begin()); }

  PageRegion memory_;
  const size_t bytes_;
  const size_t leaves_max_;
  const FenceWords words_;
  size_t leaves_ = 0;
  size_t alike_ = 0;
  uint32_t levels_ = 0;                     // above the groups
  const uint64_t* level_[kLevelsMax] = {};  // words, the lowest level first
};

}  // namespace skep::btree
