// large_call.h: the functions of collections (types/function_table.h) on a large one.
//
// A function sees a collection in one value. So a call reads as many pieces as the function may
// look at, gives them to it as if they were all, and writes what it has changed:
//
//   by members   the members that the operand names: HSET, SADD, ZSCORE (member_calls.h)
//   by an end    the members with the lowest or highest scores: ZPOPMIN (sorted_set_calls.h)
//   by a range   the members of a range: ZREMRANGEBYRANK (sorted_set_calls.h)
//   by chance    the members that are drawn: SPOP (set_calls.h)
//   of a list    the segments that it changes, and those on the way there: LPUSH, RPOP, LSET
//                (list_calls.h); LRANGE: those of the range (large_list.h)
//   by ranks     HRANDFIELD, ZRANGE, ZRANK (ranked.h)
//   all          every piece, at one version (view.h)
//
// Calls of the first four kinds, and those that change lists, are made together (joint_calls.h),
// and those that only read ranks or ranges; the others are a LargeCall each.
// A function that changes nothing is answered from a view, which is of one version. A function that
// changes something is a Change (change.h), or for a list a ListChange (large_list.h).
//
// Cost: of the segments that are read, and of those that are written.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collections/access.h"
#include "collections/change.h"
#include "skep/batch.h"

namespace skep::collections {

struct FunctionCall;  // joint_calls.h

class LargeCall {
 public:
  static constexpr size_t kTogetherBytesMax = 64 * 1024;
  static constexpr size_t kExpectedCalls = 16;
  // For how many draws members are read ahead: more share the nodes that they count by.
  static constexpr size_t kExpectedDraws = 64;

  // `record`: of the collection under the key, as it was read with `access`.
  LargeCall(Access& access, std::string_view key, uint8_t kind, const types::LargeRecord& record)
      : access_(access), key_(key), kind_(kind), record_(record) {}

  // Runs the function. Nothing: the collection has changed meanwhile, so that the call has to be
  // made again, with its new record.
  std::optional<Answer> Apply(const Function& function, std::string_view operand);
  // Whether it is a function that only reads what Ranked or LargeList reads of a collection.
  static bool ReadsView(const Function& function);
  // Answers such calls in one view, at least the first, until they have read kTogetherBytesMax, but
  // for what is read ahead for kExpectedCalls, or kExpectedDraws, or one is too long.
  // False: as Apply.
  bool ReadTogether(std::span<const FunctionCall> calls, std::vector<Answer>* answers);
  // The collection in its small form; nothing as above. If `seen` is given it becomes the record of
  // that state.
  std::optional<Answer> Whole(types::LargeRecord* seen = nullptr);

  // The ways in which Apply does it, for those who know which one is right.
  //   All    gives the function the whole collection
  //   Write  commits what the function has made of these pieces, all of which are there now
  //   Erase  erases the collection, if it is as the record says; the answer is the effect's
  std::optional<Answer> All(const Function& function, std::string_view operand);
  std::optional<Answer> Write(Change& change, const Pieces& before, const FunctionEffect& effect);
  std::optional<Answer> Erase(const FunctionEffect& effect);
  static Answer AnswerOf(const FunctionEffect& effect);
  // The answer of a call that would read too much (Access::IsTooLong).
  static Answer TooLong();

 private:
  static std::optional<Answer> Refused(Status status);

  Access& access_;
  const std::string_view key_;
  const uint8_t kind_;
  const types::LargeRecord record_;
};

// The value of a collection in the small form with these pieces. `has_deadlines`: fields of a hash
// have deadlines.
std::string SmallForm(uint64_t members, std::string_view body, bool has_deadlines = false);
std::string_view SmallForm(const Pieces& pieces, Scratch& scratch, bool has_deadlines = false);
// The pieces of a collection in the small form, ascending, those of a list in its order; nothing if
// the bytes are none.
std::optional<Pieces> PiecesOf(uint8_t kind, std::string_view value);
// The pieces by member of a sorted set's entries, ascending.
Pieces ByMember(const Pieces& entries, Scratch& scratch);
// Gives a batch the settings of another one.
void CopySettings(const Batch& from, Batch& to);
// Runs a function on a value in memory, however large.
FunctionEffect RunFunction(const Function& function, std::optional<std::string_view> value,
                           std::string_view operand, uint64_t now_ms, Scratch& scratch);

}  // namespace skep::collections
