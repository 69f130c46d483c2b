// sorted_set_calls.h: calls about members, and pops, of one large sorted set (joint_calls.h): ZADD,
// ZSCORE, ZPOPMIN.
//
// A pop takes out the members with the lowest scores, or the highest, as a call that names them
// would (member_calls.h). Which ones these are is read in the segments of scores, from that end
// inwards. But of members that calls have named before, the calls know more than the segments.
//
// Safety. The segments that pops have read reach from the end to the last member that was popped,
// without a gap, and are conditions of the write (change.h). A member that came into this range
// since would have changed one of them.
//
// Cost: of a pop, the segments of its members in both parts; calls that are made together read each
// segment once. After a call that adds members a pop also looks at all members that calls have
// named.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collections/joint_calls.h"
#include "collections/member_calls.h"

namespace skep::collections {

class SortedSetCalls final : public JointCalls {
 public:
  SortedSetCalls(Access& access, std::string_view key, const types::LargeRecord& record)
      : JointCalls(access), record_(record), members_(access, key, types::kSortedSet, record) {}

  // Whether it is a function that takes members off an end.
  static bool IsPop(const Function& function);

  bool ReadEach(std::span<const FunctionCall> calls, std::vector<Answer>* answers) override {
    return members_.ReadEach(calls, answers);
  }
  void Expect(std::span<const FunctionCall> calls) override;
  bool Make(const FunctionCall& call, Answer* answer) override;
  void RequireRecord() override { members_.RequireRecord(); }
  uint64_t members() const override { return members_.members(); }
  bool has_changes() override { return members_.has_changes(); }
  bool AddTo(Batch& batch) override { return members_.AddTo(batch); }
  Answer Done(const Batch& batch) override { return members_.Done(batch); }
  bool IsNewest() override { return members_.IsNewest(); }

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
  void ReadAhead(bool is_highest, uint64_t entries, std::vector<std::string_view>* names);

  const types::LargeRecord record_;
  MemberCalls members_;
  End lowest_ = {.is_highest = false};
  End highest_ = {.is_highest = true};
  bool adds_ = false;  // a call may have added members, or changed scores
};

}  // namespace skep::collections
