// counts.h: how many members lie before a place of a large collection, and where the n-th one is.
//
// The main part of a hash, a set or a sorted set (MainPart) is divided into ranges of places. An
// entry of a node (types/large_counts.h) counts the members of one range, a node has the entries of
// neighbouring ranges. The nodes of the lowest level are the items of part 'c'. If these are many
// there are upper levels, parts '1', '2' and so on: an entry there counts the members of one node
// of the level below, and has its separator. The record says how many upper levels there are
// (types/large_record.h). So a rank is found by a read of one node of each level, of all nodes of
// the highest one, and of the segments of one range.
//
//   level 1       node: entries for nodes  ------------------+ ...
//                   |                                        |
//   level 0 ('c') node: entries for ranges      node: entries for ranges     ...
//                   |          |         |
//   main part     segments   segments  segments ...
//
// Bounds. An entry of more than kEntryMax members is divided if it has several segments, and one of
// less than an eighth of that is joined with its neighbour in the node. A node of more than
// kNodeEntriesMax entries or kNodeBytesMax bytes is split, and one of less than an eighth of the
// entries is joined with the next. A level of more than kTopNodesMax nodes gets another one above
// it. Levels stay when members go.
//
// Cost for writers. A write that adds or removes members adds to the counts of their entries, in
// its atomic batch, with one function at the data for each node, which copies the node. Writers of
// one node do not make each other try again. That function checks that the places are of the node,
// and the function of the record checks that it has as many levels as the writer knows. So nodes
// whose keys are known from hints (segment_hints.h) are not read.
//
// A writer that has made an entry too large or too small mends it and the nodes above, each step in
// an atomic batch that requires what it depends on. Each step is tried once; if it fails, the next
// writer tries again.
//   divide an entry   requires the segments of the half that stays, and that the entry begins where
//                     it did: so the count of that half is right at that instant, and what the
//                     entry has besides is the other half
//   split, join nodes requires the nodes, and changes the entries above by functions; at the
//                     highest level it requires that there is no level above
//   add a level       requires the record and all nodes of the level below
//
// Thread safety: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/compare_bytes.h"
#include "collections/access.h"
#include "collections/change.h"
#include "collections/view.h"
#include "types/large_counts.h"
#include "types/score.h"

namespace skep::collections {

inline constexpr uint64_t kEntryMax = 256;
inline constexpr size_t kNodeEntriesMax = 64;
inline constexpr size_t kNodeBytesMax = 8 * 1024;
inline constexpr size_t kTopNodesMax = 8;

// Mends the entries that have the places, which ascend, and the nodes above, if their sizes call
// for that. Returns how many items there are more now. Cost: of a read of each entry's node, and of
// what changes.
int64_t MendCounts(Access& access, std::string_view key, uint8_t kind, uint64_t id,
                   std::span<const std::string_view> places);

// The nodes of a collection that is made: `entries` are those of the lowest level, ascending, the
// separator of the first one empty. Calls put(key, value) for each node; returns how many upper
// levels there are.
using PutItem = std::function<void(std::string_view key, std::string_view value)>;
uint64_t MakeCounts(uint64_t id, std::vector<types::CountEntry> entries, const PutItem& put);

// Ranks in a view. A node is read once. What several ranks need is read together, the nodes of one
// level and the segments in a batch each (View::ForEachOf).
class Counts {
 public:
  // `view` must outlive the object.
  Counts(View& view, uint8_t kind) : view_(view), kind_(kind) {}

  // A range of places, and the ranks of its members.
  struct RankRange {
    std::string_view from;                  // lives as long as the object
    std::optional<std::string_view> until;  // likewise; nothing: the end
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  // The range of the entry that has the n-th member. Nothing: there is none, or the view is gone.
  std::optional<RankRange> FindRank(uint64_t rank);
  // For each key, the number of members whose sort key (pieces.h) is below it. Nothing: the view is
  // gone.
  std::optional<std::vector<uint64_t>> CountBelow(std::span<const std::string_view> keys);
  // Calls visit(index, piece, segment) for the members with these ranks, which ascend and may be
  // equal, in any order.
  // False: the view is gone, or there are fewer members.
  using VisitPiece = std::function<void(size_t index, const Piece& piece, const Item& segment)>;
  bool Visit(std::span<const uint64_t> ranks, const VisitPiece& visit);

 private:
  struct Node {
    std::string separator;
    std::string bytes;
    types::CountNode node;
    uint64_t total = 0;  // of its entries
    std::string_view SeparatorAt(size_t entry) const {
      return entry == 0 ? std::string_view(separator) : node.entries[entry].separator;
    }
  };
  using NodeOfLevel = std::pair<uint64_t, std::string_view>;

  // Takes a node over that was read; null: its bytes are none.
  const Node* Keep(std::string_view separator, const Segment& item);
  bool ReadTop();
  // Reads those nodes of a level that have the separators and were not read before. False: the view
  // is gone.
  bool ReadChildren(uint64_t level, std::vector<std::string_view> separators);
  // Goes down from the highest level to the entries of the lowest one that `choose` takes for each
  // of `targets` targets. Nothing: it takes none for one of them, or the view is gone.
  using Choose = std::function<std::optional<size_t>(size_t target, const Node&, uint64_t before)>;
  std::optional<std::vector<RankRange>> Descend(size_t targets, const Choose& choose);
  std::optional<std::vector<RankRange>> FindRanks(std::span<const uint64_t> ranks);

  View& view_;
  const uint8_t kind_;
  std::vector<const Node*> top_;
  std::map<NodeOfLevel, const Node*> children_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

// Tells the places whose sort keys (pieces.h) are below one, which must outlive the object.
class Below {
 public:
  Below(Form form, std::string_view key);
  bool operator()(const Place& place) const {
    if (has_score_) {
      const uint64_t score = types::NumberOfScore(place.score);
      if (score != score_) return score < score_;
    }
    return CompareBytes(place.member, member_) < 0;
  }

 private:
  const bool has_score_;
  uint64_t score_ = 0;
  std::string_view member_;
};
// The pieces of a segment that lie from `lo` up to `fence`: segments are joined across the borders
// of ranges. Nothing if its body has no pieces of this form.
std::optional<uint64_t> PiecesWithin(Form form, std::string_view separator, const Segment& segment,
                                     std::string_view lo, std::optional<std::string_view> fence);

}  // namespace skep::collections
