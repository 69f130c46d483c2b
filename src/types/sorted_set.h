// sorted_set.h: a sorted set in one value.
//
//   +------------------+----------+----------+----
//   | varint, members  | entry    | entry    | ...
//   +------------------+----------+----------+----
//
//   entry      +-------------------+---------------+
//              | score, double, 8  | member, text  |     text.h; numbers are little-endian
//              +-------------------+---------------+
//
// Entries ascend by score, and by member, in the order of unsigned bytes, where scores are equal.
// Each member is there once. A score is any double but one that is no number, and minus zero.
//
// The functions, their operands, and what they return beside the answer of an error:
//
//   name                operand               integer              returned
//   zset-add            AddRule 1 byte,       how many are new,    kAddOne: the score, or nothing
//                       entry, ...            or changed
//   zset-remove         member text, ...      how many there were
//   zset-score          member text, ...                           for each 1 and the score, or 0
//   zset-length                               how many members
//   zset-rank           member text           the rank; -1: none
//   zset-rank-from-end  member text           likewise, 0 is the last one
//   zset-range          RangeRequest, 2 texts how many entries     entry, ...
//   zset-count          RangeRequest, 2 texts how many entries
//   zset-cut            RangeRequest, 2 texts how many are gone    entry, ...
//   zset-pop-lowest     count, a decimal      how many are gone    entry, ...
//   zset-pop-highest    likewise              likewise             entry, ..., the last one first
//   zset-draw           DrawRequest                                entry, ...
//   zset-scan           from, count                                the next member, or none;
//                                                                  member, score as text, ...
//
// Cost: a look at each entry; to store, a copy of the set. zset-add of more than kFewMembers
// members looks each up in a table and sorts once.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "skep/scratch.h"
#include "skep/status.h"

namespace skep::types {

inline constexpr size_t kFewMembers = 8;

struct Entry {
  double score;
  std::string_view member;
};

// The order of the entries of a sorted set.
inline bool IsBelow(const Entry& a, const Entry& b) {
  return a.score != b.score ? a.score < b.score : a.member < b.member;
}

// Takes an entry from the front. False: the bytes do not begin with one.
bool TakeEntry(std::string_view& from, Entry* entry);
// Appends two texts: the member, and its score as replies have it.
void AppendMemberAndScore(const Entry& entry, std::string& to);
std::string_view WriteEntries(const std::vector<Entry>& entries, Scratch& scratch);

// What zset-add does with members, as bits.
enum AddRule : uint8_t {
  kAddNew = 1,       // only members that are not there
  kAddExisting = 2,  // only members that are
  kAddGreater = 4,   // an existing member only if its score rises
  kAddLess = 8,      // an existing member only if its score falls
  kAddChanged = 16,  // the integer counts those whose score has changed, too
  kAddOne = 32,      // the one score is added to the member's, which is 0 if there is none
};

// The rule and the entries of an operand of zset-add. False: it is malformed.
bool ReadAddition(std::string_view operand, uint8_t* rule, std::vector<Entry>* entries);
// What zset-add answers, beside what becomes of the members.
struct AddAnswer {
  Status status;
  int64_t integer = 0;
  bool has_changed = false;
  std::optional<double> last;  // the score that the last member gets; nothing: the rule prevents it
};
// The score that a member gets which has the score `now`, or is not there; nothing if it is left as
// it is.
std::optional<double> ScoreFor(uint8_t rule, const Entry* now, double score);
// Adds entries, for which ReadAddition has returned true, by the rule. `members` has Find, which
// returns the entry of a member or null, and Put, which gives a member its score: the entry that
// Find has returned of it, and the new one. An answer with an error has put nothing.
template <class Members>
AddAnswer AddByRule(uint8_t rule, const std::vector<Entry>& entries, Members& members) {
  int64_t added = 0;
  int64_t changed = 0;
  AddAnswer answer;
  for (const Entry& addition : entries) {
    const Entry* const now = members.Find(addition.member);
    answer.last = ScoreFor(rule, now, addition.score);
    if (!answer.last) continue;
    if (std::isnan(*answer.last)) {
      answer.status = {Code::kInvalidArgument, "resulting score is not a number (NaN)"};
      return answer;
    }
    if (now != nullptr && now->score == *answer.last) continue;
    ++(now == nullptr ? added : changed);
    members.Put(now, {*answer.last + 0.0, addition.member});  // minus zero becomes zero
  }
  answer.integer = added + ((rule & kAddChanged) != 0 ? changed : 0);
  answer.has_changed = added + changed > 0;
  return answer;
}

// What zset-range, zset-count and zset-cut are about.
struct RangeRequest {
  enum class By : uint8_t {
    kRank,   // the two texts are decimals, first and last; below 0: from the end
    kScore,  // bounds as ParseScoreBound takes them, the lower one first
    kMember  // "-", "+", "[member", "(member", the lower one first
  };
  int64_t offset = 0;  // entries of the range that are left out first; negative: all
  int64_t count = -1;  // of those behind, at most so many; negative: all
  By by = By::kRank;
  uint8_t reverse = 0;  // 1: from the last to the first, in which ranks count, too
  uint8_t unused[6] = {};
};
static_assert(std::has_unique_object_representations_v<RangeRequest>);

// A bound of a range of members. Nothing if the text is none.
struct MemberBound {
  enum class Kind : uint8_t { kLowest, kHighest, kClosed, kOpen };
  Kind kind;
  std::string_view member;
};
std::optional<MemberBound> ParseMemberBound(std::string_view text);

// The operand of zset-range and zset-cut.
std::string_view WriteRangeRequest(const RangeRequest& request, std::string_view low,
                                   std::string_view high, Scratch& scratch);

}  // namespace skep::types
