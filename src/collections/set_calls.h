// set_calls.h: calls about members, and pops, of one large set (joint_calls.h): SADD, SISMEMBER,
// SPOP.
//
// A pop takes out members drawn at random, as a call that names them would (member_calls.h). Ranks
// are drawn in a view (counts.h), each once for all calls together, and what lies there is taken
// unless a call before has removed it. Of members that the calls have added, or added again after a
// pop has passed them, one is taken with the probability that they have among all.
//
// Safety. The segments of the members that were drawn are conditions of the write (change.h), so
// each of them is there. Each pop is fair to the members of the view, and of those that the calls
// before have added.
//
// Cost: of a pop, that of finding a rank for each member, which reads its segment, too; calls that
// are made together read each segment once.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "collections/counts.h"
#include "collections/member_calls.h"

namespace skep::collections {

class SetCalls final : public MemberCalls {
 public:
  SetCalls(Access& access, std::string_view key, const types::LargeRecord& record)
      : MemberCalls(access, key, types::kSet, record) {}

  // How many members a pop takes; 0 if it is another function.
  static uint64_t Taken(const types::LargeRecord& record, const FunctionCall& call);
  static bool IsPop(const Function& function);

  void Expect(std::span<const FunctionCall> calls) override;
  bool Make(const FunctionCall& call, Answer* answer) override;

 private:
  bool DrawAhead(Random& draws, uint64_t count);
  bool TakeNext(Random& draws, uint64_t wanted, std::string_view* name);
  bool Pop(const FunctionCall& call, Answer* answer);

  std::optional<View> view_;
  std::optional<Counts> counts_;        // of view_
  std::set<uint64_t> drawn_;            // ranks
  std::deque<std::string_view> ahead_;  // members that were drawn and not taken yet
  std::set<std::string_view> passed_;   // members that were drawn, and taken or found removed
  bool adds_ = false;                   // a call may have added members
};

}  // namespace skep::collections
