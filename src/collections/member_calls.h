// member_calls.h: functions about members of one large collection, called one after the other and
// written at once.
//
// A function that names members (HSET, SADD, ZSCORE) sees a collection of those of them that there
// are. Several calls in a row read the segments of all their members in one batch; each call sees
// what the calls before it have made of its members; and what has become of the members in the end
// is one Change (change.h). So calls that arrive together, as in a pipeline, take effect at one
// instant, in their order, and cost one read and one write of each segment.
//
// Calls that change nothing are answered from one state. One segment is read at one instant. Of
// several the record says that they are of the newest state: either the record at the version at
// which they were read is the one that was the newest beforehand, or the newest one afterwards is.
//
// A collection that has lost all members ends (types/large_record.h), so calls that would give such
// a one new members are left to the caller.
//
// Cost: of a call, a walk through its members' segments; of all calls, the change.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collections/large_call.h"

namespace skep::collections {

class MemberCalls {
 public:
  MemberCalls(Access& access, std::string_view key, uint8_t kind, const types::LargeRecord& record)
      : access_(access), key_(key), kind_(kind), record_(record) {}

  // Whether it is a function that names members.
  static bool Has(const Function& function);
  // Makes as many of the calls as can be made together, at least one, and appends the answer of
  // each. False: the collection has changed meanwhile, and nothing was done.
  bool Run(std::span<const FunctionCall> calls, std::vector<Answer>* answers);

 private:
  // A member that calls name.
  struct Member {
    std::string_view name;
    std::optional<Piece> before;  // of the small form
    std::optional<Piece> now;
  };

  void Name(std::span<const FunctionCall> calls);
  bool Read();
  void RunOne(const FunctionCall& call, std::span<const std::string_view> names, Answer* answer);
  std::optional<Answer> Write();
  std::optional<Piece> SmallPiece(const Piece& piece);
  Member* Find(std::string_view name);

  Access& access_;
  const std::string_view key_;
  const uint8_t kind_;
  const types::LargeRecord record_;
  std::vector<Member> members_;          // ascending
  std::vector<std::string_view> names_;  // of each call, one behind the other
  std::vector<size_t> name_ends_;        // of each call, in names_
  std::vector<Member*> own_;             // of the call that is made
  Pieces seen_;                          // what they were
  std::optional<Change> change_;
  bool is_newest_ = false;  // what was read is of the newest state
  int64_t added_ = 0;       // members, by the calls up to now
  int64_t fewest_ = 0;      // the least that added_ has been
};

}  // namespace skep::collections
