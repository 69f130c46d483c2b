// list_calls.h: calls that change one large list (joint_calls.h): LPUSH, RPOP, LSET, LREM, LTRIM,
// LMOVE onto itself.
//
//   +-----------+------------------------------------------+-----------+
//   | left end  | between: segments that no call has read, | right end |
//   |           | or that calls have changed where they lie|           |
//   +-----------+------------------------------------------+-----------+
//
// A push puts its elements in front of those that there are, or behind them; a pop sees as many
// elements of its end as it may take. LTRIM drops elements at both ends. LSET, LINSERT and LREM go
// from an end to the elements that they are about, and change the segments that have these. A
// segment belongs to the end that has read it first; an end that needs one of the other end takes
// all of them.
//
// Safety. Every write requires the record as it was and stores another one (large_list.h). Segments
// between the ends are read in a view with that record, so at the instant of the write they are as
// they were. Segments of the ends are read one by one in the newest state, in which the record of
// another write may be there before its segments are: so each is a condition beside the record, of
// the write by its stamp, and of calls that change nothing by its bytes.
//
// Balance. A segment that was changed where it lies may become empty, and may grow. A segment of
// more than kGrowthMax times the bytes at which segments are cut, or a list of more than kSparsity
// times the segments that its bytes need, has the list written anew as a whole. Before that happens
// again, bytes in proportion were inserted at one place, or removed from all of the list.
//
// Cost: of a push or a pop, its elements; all calls together read and write the segments at the
// ends that they reach once. Of LSET, what it takes to find the element (list_counts.h), unless a
// call before it was about an end; of LINSERT and LREM, a scan of the segments up to their elements
// from an end; and a write of those that change. Of LTRIM, a read of the segments that it deletes.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collections/joint_calls.h"
#include "collections/large_list.h"
#include "collections/view.h"
#include "types/collection.h"

namespace skep::collections {

class ListCalls final : public JointCalls {
 public:
  static constexpr size_t kGrowthMax = 8;
  static constexpr uint64_t kSparsity = 4;

  ListCalls(Access& access, std::string_view key, const types::LargeRecord& record)
      : JointCalls(access),
        key_(key),
        record_(record),
        change_(access, key, record),
        members_(record.members) {}

  // Whether it is a function that may change a list.
  static bool Has(const Function& function);
  // As JointCalls::IsLong. A walk to an element copies one segment at a time, so it may be longer.
  static bool IsLong(const Access& access, const types::LargeRecord& record,
                     const FunctionCall& call);

  void Expect(std::span<const FunctionCall>) override {}
  bool Make(const FunctionCall& call, Answer* answer) override;
  void RequireRecord() override {}  // every write does
  uint64_t members() const override { return members_; }
  bool has_changes() override;
  bool AddTo(Batch& batch) override;
  Answer Done(const Batch& batch) override { return change_.Done(batch); }
  bool IsNewest() override;
  bool RequireRead(Batch& batch) override;

 private:
  // Elements that lie one behind the other, as calls see and leave them.
  struct Stretch {
    std::string body = {};
    uint64_t elements = 0;
    size_t read_bytes = 0;  // of the body as it was read
    bool is_changed = false;
  };
  struct End {
    bool is_left;
    std::vector<std::string> old = {};  // the segments that were read, the outermost one first
    Stretch now = {};
  };
  // A segment that was changed where it lies.
  struct Middle {
    std::string old;
    Stretch now;
  };
  // Visits the elements of one stretch. False: it wants no more.
  using VisitStretch = std::function<bool(Stretch& stretch)>;

  bool Reach(End& end, uint64_t elements);
  bool Push(End& end, const FunctionCall& call, Answer* answer);
  bool Pop(End& end, const FunctionCall& call, Answer* answer);
  bool Rotate(const FunctionCall& call, Answer* answer);
  bool Take(End& end, uint64_t elements, std::string_view* taken);
  bool Set(const FunctionCall& call, Answer* answer);
  bool SetInCounted(const FunctionCall& call, uint64_t at, bool* is_done, Answer* answer);
  bool Insert(const FunctionCall& call, Answer* answer);
  bool Remove(const FunctionCall& call, Answer* answer);
  bool Trim(const FunctionCall& call, Answer* answer);
  bool Drop(End& end, uint64_t elements);
  bool WalkMiddle(bool from_left, const VisitStretch& visit);
  bool VisitMiddle(View& view, uint64_t from, bool from_left, const VisitStretch& visit);
  bool Walk(bool from_left, const VisitStretch& visit);
  FunctionEffect Edit(Stretch& stretch, const Function& function, std::string_view operand);
  bool Balance();
  void RequireEnd(Batch& batch, const End& end) const;
  void AnswerError(const FunctionCall& call, std::string_view operand, Answer* answer);
  static Stretch StretchOf(const Segment& segment);

  const std::string_view key_;
  const types::LargeRecord record_;
  ListChange change_;
  End left_ = {.is_left = true};
  End right_ = {.is_left = false};
  std::map<uint64_t, Middle> middle_;  // by number
  uint64_t members_;                   // of the list, by the calls up to now
  types::Texts texts_;                 // of the push that is made
};

}  // namespace skep::collections
