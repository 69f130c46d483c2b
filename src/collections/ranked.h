// ranked.h: functions of large collections that go by ranks, ranges and chance.
//
//   zset-rank, zset-rank-from-end     a count of what lies before
//   zset-range, zset-count            the segments that the range needs
//   hash-draw, set-draw, zset-draw    each member drawn is found by its rank
//   hash-scan, set-scan, zset-scan    large_scan.h
//
// All are read in a view (view.h).
//
// Calls that only read and arrive together are answered from one view, which reads each node of
// counts once. The members that several calls draw are read together (Expect).
//
// Cost: of a rank, a node of each level of counts and the segments of one of its ranges (counts.h);
// of a range, its segments, too. Of members that are drawn, that for each, but at most that of the
// whole collection.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collections/access.h"
#include "collections/counts.h"
#include "collections/large_call.h"
#include "collections/view.h"
#include "types/collection.h"
#include "types/sorted_set.h"

namespace skep::collections {

// Ranks [begin, end) from the lowest score.
struct Ranks {
  uint64_t begin = 0;
  uint64_t end = 0;
};
// The ranks that a request by rank is about in a sorted set of so many members; sorted_set.cc has
// the same rule for a collection in one value. Nothing: a bound is no number.
std::optional<Ranks> RanksOf(uint64_t members, const types::RangeRequest& request,
                             std::string_view low, std::string_view high);

class Ranked {
 public:
  Ranked(Access& access, std::string_view key, uint8_t kind, const types::LargeRecord& record)
      : access_(access), key_(key), kind_(kind), record_(record) {}

  // Whether it is one of the functions above.
  static bool Has(const Function& function);
  // Whether it is one of those that draw members.
  static bool Draws(const Function& function);
  // Whether a read of the whole collection is the cheaper way for a DrawRequest.
  static bool DrawsMost(const types::LargeRecord& record, std::string_view operand);
  // As LargeCall::Apply.
  std::optional<Answer> Apply(const Function& function, std::string_view operand);
  // Reads what calls that follow in the view will look at, in their order, if that is known of
  // their functions: the ranks that they ask for, and what they draw. False: the view is gone.
  bool Expect(View& view, Counts& counts, std::span<const FunctionCall> calls);
  // As Apply, in a view of its record, whose ranks are counted by `counts`. A call that asks for a
  // rank was expected.
  std::optional<Answer> ApplyTo(View& view, Counts& counts, const Function& function,
                                std::string_view operand);
  // Appends the entries of a sorted set with these ranks, all of which there are. False: the view
  // is gone; or they are far too long (Access), if that is asked for.
  bool AppendEntries(View& view, Counts& counts, const Ranks& ranks, std::string* to,
                     bool* is_too_long = nullptr);

 private:
  // A call that draws more is not drawn for ahead.
  static constexpr uint64_t kDrawnAheadMax = 16;
  // What is drawn ahead takes about so many bytes at most, or is of one call.
  static constexpr uint64_t kDrawnBytesMax = 64 * 1024;
  // What was drawn for a call.
  struct Drawn {
    const char* operand;
    size_t begin, end;  // of pieces_
  };

  bool ExpectRanks(View& view, Counts& counts, std::span<const FunctionCall> calls);
  bool ExpectDraws(View& view, Counts& counts, std::span<const FunctionCall> calls);
  bool DrawFor(View& view, Counts& counts, std::span<const std::string_view> operands);
  std::optional<Answer> Rank(View& view, std::string_view operand, bool from_end);
  std::optional<Answer> Range(View& view, const Function& function, std::string_view operand);
  std::optional<Answer> ByRank(View& view, const Function& function, types::RangeRequest request,
                               std::string_view first, std::string_view last);
  std::optional<Answer> Count(const types::RangeRequest& request, std::string_view low,
                              std::string_view high);
  // Runs the function on the entries of a range, as one collection in the small form; empty: there
  // are none.
  Answer Finish(const Function& function, std::string_view operand, std::string_view slice);
  std::optional<Answer> Draw(View& view, const Function& function, std::string_view operand);
  std::optional<double> EndScore(View& view, bool is_highest);
  std::optional<Answer> Failed() const;

  Access& access_;
  const std::string_view key_;
  const uint8_t kind_;
  const types::LargeRecord record_;
  Counts* counts_ = nullptr;                    // of the view of the call
  std::map<std::string_view, uint64_t> ranks_;  // of members that calls which were expected name
  std::vector<std::string_view> pieces_;        // that were drawn
  std::vector<Drawn> drawn_;                    // in the order of their calls
  size_t next_drawn_ = 0;                       // of drawn_
};

}  // namespace skep::collections
