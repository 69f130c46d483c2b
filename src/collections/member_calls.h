// member_calls.h: calls about members of one large collection (joint_calls.h): HSET, SADD, ZSCORE.
//
// A function that names members sees a collection of those of them that there are. What has become
// of the members that calls have named is one Change (change.h).
//
// Calls that only read, of one member each, are answered one by one (ReadEach). Other calls that
// change nothing are answered from one state. One segment is read at one instant. Of
// several the record says that they are of the newest state: either the record at the version at
// which they were read is the one that was the newest beforehand, or the newest one afterwards is.
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

#include "collections/joint_calls.h"

namespace skep::collections {

class MemberCalls final : public JointCalls {
 public:
  MemberCalls(Access& access, std::string_view key, uint8_t kind, const types::LargeRecord& record)
      : JointCalls(access),
        key_(key),
        kind_(kind),
        record_(record),
        change_(access, key, kind, record) {}

  // Whether it is a function that names members.
  static bool Names(const Function& function);

  bool ReadEach(std::span<const FunctionCall> calls, std::vector<Answer>* answers) override;
  void Expect(std::span<const FunctionCall> calls) override;
  bool Make(const FunctionCall& call, Answer* answer) override;
  void RequireRecord() override { change_.RequireRecord(); }
  uint64_t members() const override { return record_.members + static_cast<uint64_t>(added_); }
  bool has_changes() override;
  bool AddTo(Batch& batch) override;
  Answer Done(const Batch& batch) override { return change_.Done(batch); }
  bool IsNewest() override;

  // A member that calls name.
  struct Member {
    std::string_view name;
    std::optional<Piece> before;  // of the small form
    std::optional<Piece> now;
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
  // The segments that calls have read of a part, which are conditions of the write.
  Segments& SegmentsOf(Part part) { return change_.Of(part); }

 private:
  bool Read(std::span<const std::string_view> names);
  void LookUp(std::span<const std::string_view> names);
  Piece SmallPiece(const Piece& piece);
  bool FindOwn();
  FunctionEffect RunOnSeen(const FunctionCall& call);

  const std::string_view key_;
  const uint8_t kind_;
  const types::LargeRecord record_;
  Change change_;
  std::vector<Member> members_;            // ascending
  std::vector<std::string_view> names_;    // of the call that is made
  std::vector<Member*> own_;               // likewise
  std::vector<std::string_view> missing_;  // those of them that were not read yet
  Pieces seen_;                            // what they were
  bool is_of_record_ = false;  // all was read at one version, of which record_ is the record
  int64_t added_ = 0;          // members, by the calls up to now
  int64_t fewest_ = 0;         // the least that added_ has been
};

}  // namespace skep::collections
