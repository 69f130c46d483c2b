// end_calls.h: calls about the ends of one large list (joint_calls.h): LPUSH, RPOP, LMOVE onto
// itself.
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
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collections/joint_calls.h"
#include "collections/large_list.h"

namespace skep::collections {

class EndCalls final : public JointCalls {
 public:
  EndCalls(Access& access, std::string_view key, const types::LargeRecord& record)
      : JointCalls(access),
        key_(key),
        record_(record),
        change_(access, key, record),
        members_(record.members) {}

  // Whether it is a push, a pop, or both.
  static bool IsAboutEnds(const Function& function);

  void Expect(std::span<const FunctionCall>) override {}
  bool Make(const FunctionCall& call, Answer* answer) override;
  void RequireRecord() override {}  // every write does
  uint64_t members() const override { return members_; }
  bool has_changes() override { return left_.is_changed || right_.is_changed; }
  bool AddTo(Batch& batch) override;
  Answer Done(const Batch& batch) override { return change_.Done(batch); }
  bool IsNewest() override { return access_.Record(key_, types::kList) == record_; }

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
  bool Push(End& end, const Function& push, std::string_view operand, Answer* answer);
  bool Pop(End& end, const FunctionCall& call, Answer* answer);
  bool Rotate(const FunctionCall& call, Answer* answer);
  bool Take(End& end, uint64_t elements, std::string_view* taken);

  const std::string_view key_;
  const types::LargeRecord record_;
  ListChange change_;
  End left_ = {.is_left = true};
  End right_ = {.is_left = false};
  uint64_t members_;  // of the list, by the calls up to now
};

}  // namespace skep::collections
