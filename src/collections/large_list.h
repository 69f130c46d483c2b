// large_list.h: the functions of lists on a large one.
//
// A list's segments are numbered (layout.h), without gaps, and the record has the first and the
// last number. A command at an end reads as many segments there as it has to, and replaces them;
// one that changes the middle edits segments where they lie (list_calls.h). The others it does not
// write. All segments but those at the ends are full when they are made.
//
// Every write requires the record as it was and stores another one, so writers of one list follow
// each other. Each segment that it replaces or deletes it requires to have the stamp it was read
// with.
//
// Cost: a push or pop of one element is a copy of one segment; a range or an index costs what it
// takes to find its first element (list_counts.h), or the segments between it and an end, and those
// of the range.
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
#include "collections/list_counts.h"
#include "collections/view.h"
#include "types/list.h"

namespace skep::collections {

// The number of the first segment of a list that is made.
inline constexpr uint64_t kFirstSegment = uint64_t{1} << 62;

// The key of a list's segment.
std::string ElementsKey(uint64_t id, uint64_t number);
// Takes a text that is a decimal from an operand; nothing: the operand does not begin with one.
std::optional<int64_t> TakeInteger(std::string_view& operand);
// Cuts elements, which lie one behind the other, into bodies of segments of at most so many bytes,
// if an element is not longer; they are in the order of the list. The last one may be partly
// filled, or with `from_right` the first.
struct ElementRun {
  std::string_view body;
  uint64_t elements;
};
std::vector<ElementRun> CutElements(const Pieces& pieces, size_t bytes_max, bool from_right);

// A write of segments of a list, as one atomic batch.
class ListChange {
 public:
  ListChange(Access& access, std::string_view key, const types::LargeRecord& record)
      : access_(access), key_(key), record_(record), after_(record), counts_(access) {}

  // Replaces the outermost segments of an end, as they were read, by segments of these elements.
  // Both must outlive the commit. False: they are no segments, or no elements.
  bool Replace(bool is_left, const std::vector<std::string>& old, std::string_view body);
  // Gives another segment, as it was read, these elements. Both must outlive the commit. False: it
  // is no segment.
  bool Edit(uint64_t number, std::string_view old, std::string_view body, uint64_t elements);
  // The list loses all elements, and nothing else is written.
  void Erase() { after_.members = 0; }
  // Adds the writes to an atomic batch, on the condition that the record is as it was.
  void AddTo(Batch& batch);
  // The answer of the write, of a batch that was applied.
  Answer Done(const Batch& batch) const;

 private:
  // What is stored or deleted of one segment.
  struct Write {
    uint64_t number;
    std::optional<Segment> old;     // that was read; nothing: it is new
    std::optional<ElementRun> run;  // nothing: it is deleted
  };
  void AddWrite(Batch& batch, const Write& write) const;

  Access& access_;
  const std::string_view key_;
  const types::LargeRecord record_;
  types::LargeRecord after_;
  ListCounts counts_;
  std::vector<Write> writes_;
  uint32_t record_slot_ = 0;
  int64_t segments_added_ = 0;
};

// list-range, list-index and list-find.
class LargeList {
 public:
  LargeList(Access& access, std::string_view key, const types::LargeRecord& record)
      : access_(access), key_(key), record_(record) {}

  // Whether it is one of them.
  static bool Has(const Function& function);
  // As LargeCall::Apply.
  std::optional<Answer> Apply(const Function& function, std::string_view operand);
  // Likewise, in a view.
  std::optional<Answer> ApplyTo(View& view, const Function& function, std::string_view operand);

 private:
  Answer Range(View& view, int64_t first, int64_t last);
  Answer Find(View& view, const types::FindRequest& request);

  Access& access_;
  const std::string_view key_;
  const types::LargeRecord record_;
};

}  // namespace skep::collections
