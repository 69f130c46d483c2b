// list_counts.h: how many elements lie before a segment of a large list.
//
//   first ......|  block  |  block  | ... |  block  |......... last      segments, by their numbers
//    before     |  blocks_begin        blocks_end   |   behind
//               +--------- counted ----------------+
//
// A block is kSegmentsOfBlock segments whose numbers begin with a multiple of that. The record
// (types/large_record.h) says which blocks are counted, how many elements they have, and how many
// are before them. An item of part 'b' has the counts of kBlocksOfNode blocks, 4 bytes each in the
// order of the numbers, beginning with a multiple of that; counts of other blocks in it mean
// nothing.
//
// Writers. Every write of a list requires the record and replaces it, so it can change the counts
// with it: those of counted blocks in which it changes segments, by a function (large-blocks-add in
// types/large_counts.h), so that what frees memory needs none. Most pushes and pops change segments
// that are not counted. A pop that leaves less than a counted block gives it up.
// A node of counts that a write has read is a condition of it, too: reads that follow each other
// may be of states of which the later one is the older.
// When an end has kLagBlocks blocks or more that are not counted, they are, by an atomic batch that
// requires the record; if that fails, the next writer tries again. Their segments are read at an
// instant at which the list has that record. So each segment is read once
// more for its count, and an index is found by a read of the counts from the nearer end of the
// counted blocks, an item for kBlocksOfNode of them, and of a block.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "collections/access.h"
#include "collections/view.h"

namespace skep::collections {

inline constexpr uint64_t kSegmentsOfBlock = 8;
inline constexpr uint64_t kBlocksOfNode = 512;
inline constexpr uint64_t kLagBlocks = 8;

// The counts that a write of a list changes.
class ListCounts {
 public:
  explicit ListCounts(Access& access) : access_(access) {}

  // A segment's elements after the write, less those before.
  struct Delta {
    uint64_t segment;
    int64_t elements;
  };
  // Changes what the record `after` says of counted blocks, whose ends and members are right, as
  // `deltas` ask for that.
  void Follow(const types::LargeRecord& before, std::span<const Delta> deltas,
              types::LargeRecord* after);
  // Counts all blocks of a list that is made, whose segments have so many elements.
  void Make(std::span<const uint64_t> elements, types::LargeRecord* record);
  // Adds what is stored and deleted of the counts; returns how many items there are more then.
  int64_t AddTo(Batch& batch, uint64_t id) const;

 private:
  friend int64_t MendListCounts(Access& access, std::string_view key, uint64_t id);

  struct Node {
    std::optional<std::string> read;  // nothing: it was absent
    std::string counts;
    bool is_changed = false;
  };
  Node& NodeOf(uint64_t id, uint64_t block);
  uint64_t CountOf(uint64_t id, uint64_t block);
  void Store(uint64_t id, uint64_t block, uint64_t elements);
  void DropNodes(const types::LargeRecord& before, const types::LargeRecord& after);

  Access& access_;
  std::map<uint64_t, Node> nodes_;             // by number
  std::map<uint64_t, std::string> additions_;  // operands of large-blocks-add, likewise
  std::set<uint64_t> gone_;  // numbers of nodes that have no counted block any more
};

// Whether an end of the list has enough blocks that are not counted.
bool NeedsListCounts(const types::LargeRecord& record);
// Counts the blocks that are not, if they are enough. Returns how many items there are more now.
// Cost: of a read of their segments.
int64_t MendListCounts(Access& access, std::string_view key, uint64_t id);

// A segment of a list, and the index of its first element.
struct ListPlace {
  uint64_t segment;
  uint64_t begin;
};
// The first segment of the counted block that has the element with this index. Nothing: it is in
// none, or the view is gone.
std::optional<ListPlace> FindInCounted(View& view, uint64_t index);

}  // namespace skep::collections
