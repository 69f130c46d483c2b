// end_calls.h: functions about the ends of one large list, called one after the other and written
// at once.
//
// A push sees an empty list, and what it makes is put in front of, or behind, the elements that
// there are; a pop sees as many elements of its end as it may take. So a call costs its own
// elements, and all calls together a read and a write of the segments at the ends that they reach.
// A segment belongs to the end that has read it first; an end that needs one of the other end takes
// all of them.
//
// Every write requires the record as it was and stores another one (large_list.h), so the segments
// are as they were, too: calls that change nothing are answered if the record is still the same.
//
// A list that has lost all elements ends, so calls behind the one that takes the last are left to
// the caller.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collections/large_call.h"
#include "collections/large_list.h"

namespace skep::collections {

class EndCalls {
 public:
  EndCalls(Access& access, std::string_view key, const types::LargeRecord& record)
      : access_(access), key_(key), record_(record), members_(record.members) {}

  // Whether it is a push or a pop.
  static bool Has(const Function& function);
  // As MemberCalls::Run.
  bool Run(std::span<const FunctionCall> calls, std::vector<Answer>* answers);

 private:
  // What calls see and leave of one end.
  struct End {
    bool is_left;
    std::vector<std::string> old = {};  // the segments that were read, the outermost one first
    std::string body = {};              // the elements there are now, in the order of the list
    uint64_t elements = 0;
    bool is_changed = false;
  };

  bool Reach(End& end, uint64_t elements);
  bool RunOne(const FunctionCall& call, Answer* answer);
  bool Push(End& end, const Function& push, std::string_view operand, Answer* answer);
  bool Pop(End& end, const FunctionCall& call, Answer* answer);
  std::optional<Answer> Write();

  Access& access_;
  const std::string_view key_;
  const types::LargeRecord record_;
  End left_ = {.is_left = true};
  End right_ = {.is_left = false};
  uint64_t members_;  // of the list, by the calls up to now
};

}  // namespace skep::collections
