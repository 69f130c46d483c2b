// member_calls.h: calls about members of one large collection (joint_calls.h): HSET, SADD, ZSCORE.
//
// A function that names members sees a collection of those of them that there are. What has become
// of the members that calls have named is one Change (change.h).
//
// Calls that only read, of at most kReadsMax members together, are answered from the pieces of
// these members, which one Lookup finds at one version (ReadEach; access.h has the argument). Other
// calls that change nothing are answered from one state. One segment is read at one instant. Of
// several either the record at the version at which they were read is the one that was the newest
// beforehand; or they were read one by one, and they and the record are looked for at one version
// (IsOfOneVersion). That the record is still the newest says nothing of them: the leaves of
// a write are published one after the other. In an atomic batch each of them is a condition.
//
// Cost: of a call, a walk through its members' segments; of all calls, the change. ReadEach makes
// one batch for all its calls: a request for each member, and one for the record.
//
// Thread safety: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collections/joint_calls.h"

namespace skep::collections {

class MemberCalls : public JointCalls {
 public:
  // The members that ReadEach looks up one by one: many members are fewer segments.
  static constexpr size_t kReadsMax = 1024;

  MemberCalls(Access& access, std::string_view key, uint8_t kind, const types::LargeRecord& record)
      : JointCalls(access),
        key_(key),
        record_(record),
        kind_(kind),
        change_(access, key, kind, record) {}

  // Whether it is a function that names members.
  static bool Names(const Function& function);
  // Whether the operand of such a function may name many members: as JointCalls::IsLong.
  static bool NamesMany(const Access& access, const FunctionCall& call);

  bool ReadEach(std::span<const FunctionCall> calls, std::vector<Answer>* answers) override;
  bool PutEach(std::span<const FunctionCall> calls, std::vector<Answer>* answers) override;
  void Expect(std::span<const FunctionCall> calls) override;
  bool Make(const FunctionCall& call, Answer* answer) override;
  void RequireRecord() override { change_.RequireRecord(); }
  uint64_t members() const override { return record_.members + static_cast<uint64_t>(added_); }
  bool has_changes() override { return is_touched(); }
  bool AddTo(Batch& batch) override;
  Answer Done(const Batch& batch) override { return change_.Done(batch); }
  bool CorrectHints(const Batch& batch) override { return change_.CorrectHints(batch); }
  bool IsNewest() override;
  bool RequireRead(Batch& batch) override;

 protected:
  // A member that calls name.
  struct Member {
    std::string_view name;
    std::optional<Piece> before;  // of the small form
    std::optional<Piece> now;
    // Where its segment has it, or would (pieces.h); null: that was not read, but its entry was.
    const char* at = nullptr;
    bool is_changed() const {
      return before.has_value() != now.has_value() || (now && before->bytes != now->bytes);
    }
  };
  // The members that calls have named up to now, ascending.
  std::span<const Member> named() const { return members_; }
  // One of them; null if none has named it.
  Member* Find(std::string_view name);
  // Takes members out, as a call that names them would; they ascend, and their bytes outlive this
  // object. False: one is not there, or as for Make.
  bool Remove(std::span<const std::string_view> names);
  // Adds members of a sorted set by entries, of segments of scores that were read, which ascend by
  // member; their own segments are not read, if hints tell them.
  void Know(const Pieces& entries);
  // The members that a call names, ascending. False: as for Make.
  bool FindMembersOf(const FunctionCall& call);
  std::span<Member* const> found() const { return own_; }
  // Notes that a call has made so many members more of those that it names.
  void NoteAdded(int64_t members) {
    added_ += members;
    fewest_ = std::min(fewest_, added_);
  }
  // The piece of a member of a sorted set with this score.
  Piece EntryOf(double score, std::string_view member);
  // Whether there are hints that tell the segments of the members, and calls may go by them.
  bool HasHints() const;
  // The segments that calls have read of a part, which are conditions of the write.
  Segments& SegmentsOf(Part part) { return change_.Of(part); }

  const std::string_view key_;
  const types::LargeRecord record_;

 private:
  bool Read(std::span<const std::string_view> names);
  void LookUp(std::span<const std::string_view> names);
  Piece SmallPiece(const Piece& piece);
  std::string_view BytesInPart(const Member& member, const Piece& piece);
  bool FindOwn();
  FunctionEffect RunOnSeen(const FunctionCall& call);

  const uint8_t kind_;
  Change change_;
  std::vector<Member> members_;  // ascending
  // A call that was read ahead, and where its names are among expected_.
  struct ExpectedCall {
    const char* operand;
    size_t begin, end;
  };
  bool FindExpected(const FunctionCall& call);
  std::vector<ExpectedCall> expected_calls_;
  std::vector<uint32_t> expected_;         // indexes of members_, as it was after the read
  size_t expected_members_ = 0;            // how many members_ had then
  size_t next_expected_ = 0;               // of expected_calls_
  std::vector<std::string_view> names_;    // of the call that is made
  std::vector<Member*> own_;               // likewise
  std::vector<std::string_view> missing_;  // those of them that were not read yet
  Pieces seen_;                            // what they were
  bool is_of_record_ = false;  // all was read at one version, of which record_ is the record
  int64_t added_ = 0;          // members, by the calls up to now
  int64_t fewest_ = 0;         // the least that added_ has been
};

}  // namespace skep::collections
