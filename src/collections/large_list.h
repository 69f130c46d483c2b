// large_list.h: the functions of lists on a large one.
//
// A list's segments are numbered (layout.h), without gaps, and the record has the first and the
// last number. A command at an end reads as many segments there as it has to, and replaces them;
// the others it neither reads nor writes. All segments but those at the ends are full when they are
// made. A command that changes the middle replaces all of them.
//
// Every write requires the record as it was and stores another one, so writers of one list follow
// each other.
//
// Cost: a push or pop of one element is a copy of one segment; a range or an index costs the
// segments between it and the nearer end.
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

namespace skep::collections {

// The number of the first segment of a list that is made.
inline constexpr uint64_t kFirstSegment = uint64_t{1} << 62;

// Cuts elements into segments of at most so many bytes, if an element is not longer; they are in
// the order of the list. The last one may be partly filled, or with `from_right` the first.
std::vector<std::string> CutElements(const Pieces& pieces, size_t bytes_max, bool from_right);

class LargeList {
 public:
  LargeList(Access& access, std::string_view key, const types::LargeRecord& record)
      : access_(access), key_(key), record_(record) {}

  // As LargeCall::Apply.
  std::optional<Answer> Apply(const Function& function, std::string_view operand);

 private:
  enum class End : uint8_t { kLeft, kRight };

  std::optional<Answer> AtEnd(const Function& function, std::string_view operand, End end,
                              uint64_t elements);
  std::optional<Answer> OfRange(const Function& function, std::string_view operand);
  std::optional<Answer> All(const Function& function, std::string_view operand);
  std::optional<Answer> Replace(End end, const std::vector<std::string>& old,
                                const FunctionEffect& effect);

  Access& access_;
  const std::string_view key_;
  const types::LargeRecord record_;
};

}  // namespace skep::collections
