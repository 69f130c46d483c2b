// ranked.h: functions of large collections that go by ranks, ranges and chance.
//
//   zset-rank, zset-rank-from-end     a count of what lies before
//   zset-range, zset-cut, zset-count  the segments that the range needs
//   hash-draw, set-draw, zset-draw, set-pop
//                                     each member drawn is found by its rank
//   hash-scan, set-scan, zset-scan    large_scan.h
//
// All are read in a view (view.h). zset-cut and set-pop then are Changes (change.h): set-pop
// requires the members it has drawn, zset-cut that nothing was written since the view, for a member
// that comes into the range would belong to what is cut.
//
// Cost: of the blocks before (counts.h), and of the segments of the range.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collections/access.h"
#include "collections/large_call.h"
#include "collections/view.h"
#include "types/collection.h"
#include "types/sorted_set.h"

namespace skep::collections {

// The segments of a range, as one collection in the small form.
struct Slice {
  std::string value;   // empty: there are no pieces
  uint64_t begin = 0;  // the rank of the first piece, for a range of ranks
  uint64_t end = 0;    // behind the last one, likewise
};

class Ranked {
 public:
  Ranked(Access& access, std::string_view key, uint8_t kind, const types::LargeRecord& record)
      : access_(access), key_(key), kind_(kind), record_(record) {}

  // Whether it is one of the functions above.
  static bool Has(const Function& function);
  // As LargeCall::Apply.
  std::optional<Answer> Apply(const Function& function, std::string_view operand);

 private:
  std::optional<Answer> Rank(View& view, std::string_view operand, bool from_end);
  std::optional<Answer> Range(View& view, const Function& function, std::string_view operand);
  std::optional<Answer> ByRank(View& view, const Function& function, types::RangeRequest request,
                               std::string_view first, std::string_view last);
  std::optional<Answer> Count(View& view, const types::RangeRequest& request, std::string_view low,
                              std::string_view high);
  std::optional<Answer> Finish(View& view, const Function& function, std::string_view operand,
                               const Slice& slice);
  std::optional<Answer> Draw(View& view, const Function& function, std::string_view operand);
  std::optional<Answer> Pop(const Pieces& drawn, Answer answer);
  std::optional<Slice> SliceOfRanks(View& view, uint64_t begin, uint64_t end);
  std::optional<Pieces> PiecesOfMain(std::string_view value) const;
  std::optional<Answer> Failed() const;

  Access& access_;
  const std::string_view key_;
  const uint8_t kind_;
  const types::LargeRecord record_;
};

}  // namespace skep::collections
