// sorted_set_calls.h: calls about members, and pops, of one large sorted set (joint_calls.h): ZADD,
// ZSCORE, ZPOPMIN.
//
// A zset-add gives the members that it names their scores by its rule, as it does in a small sorted
// set (types/sorted_set.h). It knows their old scores from their own segments, so those of scores
// are not read (exchanges.h).
//
// A pop takes out the members with the lowest scores, or the highest, as a call that names them
// would (member_calls.h). Which ones these are is read in the segments of scores, from that end
// inwards, so their own segments are not read. But of members that calls have named before, the
// calls know more than the segments.
//
// A cut (ZREMRANGEBYSCORE and its kin) takes out the members of a range. They are found in a view
// of the collection as its record was read, which becomes a condition of the write, for a member
// that comes into the range would belong to what is cut. All cuts that are made together have one
// view. After calls that have changed members a cut can be made by score and by rank: members that
// the calls have named are looked at apart, and ranks are counted in the view without the places
// where those were, and with those where they are. A cut of all members deletes the key.
//
// Safety. The segments that pops have read reach from the end to the last member that was popped,
// without a gap, and are conditions of the write (change.h). A member that came into this range
// since would have changed one of them. The same segments say what score each of these members has,
// and both parts have the same pairs (C4 of layout.h), so what a later call of the same group sees
// of such a member holds at the instant of the write, too.
//
// Cost: of a cut, the segments of its range, and of its members, and of one by rank a count
// (counts.h) for each place that a call before it has changed. Of a pop, the segments of its
// members in both parts; calls that are made together read each segment once. After a call that
// adds members a pop also looks at all members that calls have named.
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

#include "collections/counts.h"
#include "collections/member_calls.h"
#include "collections/ranked.h"
#include "collections/view.h"
#include "types/sorted_set.h"

namespace skep::collections {

class SortedSetCalls final : public MemberCalls {
 public:
  SortedSetCalls(Access& access, std::string_view key, const types::LargeRecord& record)
      : MemberCalls(access, key, types::kSortedSet, record) {}

  // Whether it is a function that takes members off an end, or a range of them out.
  static bool IsPop(const Function& function);
  static bool IsCut(const Function& function);
  // How many members a pop takes, or a cut by rank; 0 if it is another function.
  static uint64_t Taken(const types::LargeRecord& record, const FunctionCall& call);

  void Expect(std::span<const FunctionCall> calls) override;
  bool CanMake(const FunctionCall& call) override;
  bool Make(const FunctionCall& call, Answer* answer) override;
  uint64_t members() const override { return erases_ ? 0 : MemberCalls::members(); }
  bool has_changes() override { return erases_ || MemberCalls::has_changes(); }
  bool AddTo(Batch& batch) override;
  Answer Done(const Batch& batch) override;
  // What cuts have read is of the version of the record.
  bool IsNewest() override { return (view_ && named().empty()) || MemberCalls::IsNewest(); }

 private:
  // The entries at one end that no pop has taken.
  struct End {
    bool is_highest;
    const Loaded* segment = nullptr;  // the innermost one that was read; null: none
    Pieces left = {};                 // of it; the outermost one is the last
  };

  bool IsAtOtherEnd(const End& end) const;
  const Loaded* Previous(const Loaded& segment);
  bool Advance(End& end);
  bool Peek(End& end, std::optional<Piece>* next);
  bool Take(End& end, uint64_t entries, Pieces* taken);
  bool Pop(End& end, const FunctionCall& call, Answer* answer);
  // A place at which calls have changed what is there.
  struct Moved {
    Place place;
    bool is_there;           // now; else it was there in the view
    std::string_view bytes;  // of the entry
    uint64_t rank = 0;       // how many members of the view lie below
  };

  bool OpenView();
  bool FindMoved();
  bool CutRanks(const Ranks& ranks, std::string* entries);
  bool CutBounds(const FunctionCall& call, Answer* answer, std::string* entries);
  bool Cut(const FunctionCall& call, Answer* answer);
  bool Add(const FunctionCall& call, Answer* answer);
  void ReadAhead(bool is_highest, uint64_t entries, Pieces* ahead);

  End lowest_ = {.is_highest = false};
  End highest_ = {.is_highest = true};
  std::vector<types::Entry> additions_;  // of the call that is made
  bool adds_ = false;                    // a call may have added members, or changed scores
  std::optional<View> view_;
  std::optional<Counts> counts_;     // of view_
  std::map<Place, uint64_t> ranks_;  // how many members of view_ lie below these places
  std::vector<Moved> moved_;         // ascending
  bool are_moved_known_ = true;      // moved_ is what the calls have changed
  bool erases_ = false;              // a cut takes all members
  uint32_t erased_slot_ = 0;         // of the batch, if erases_
};

}  // namespace skep::collections
