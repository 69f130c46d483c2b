// change.h: a write of members of a large collection, as one atomic batch.
//
//   Edit      what becomes of which members; the segments they are in are read
//   Commit    in one atomic batch: each segment that was read is required to have the stamp it was
//             read with, those that have changed are edited where they lie
//             (types/large_segment.h), the record is changed (types/large_record.h)
//
// Safety. At the instant of the batch the record has the id, so the segments are the collection's,
// and every segment that the call has looked at is as it was: so the call, whatever it has computed
// from them, takes effect at that instant. Calls on different segments do not disturb each other;
// they meet in the record only, which a function changes where it lies.
// Progress. A commit fails only because somebody has written one of its segments, or the key, since
// it was read, or because it was read at an older version. Who calls it bounds how often, and has
// it read the newest state when it tries again (collection_engine.h).
//
// A segment whose pieces exceed Access::segment_bytes() is cut into several. One of which less than
// a quarter is left takes over the one to its right, if both fit into one.
//
// Cost: a copy of each segment that is changed, and in a log the bytes that have changed.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collections/access.h"
#include "collections/pieces.h"

namespace skep::collections {

// The order in which a part's pieces are kept.
Form FormOf(Part part, uint8_t kind);
// The part whose pieces are the collection in its small form.
constexpr Part MainPart(uint8_t kind) {
  if (kind == types::kList) return Part::kElements;
  return kind == types::kSortedSet ? Part::kScores : Part::kMembers;
}

// The answer of one call of a function on a large collection, or of a write of one.
struct Answer {
  Status status;
  int64_t integer = 0;
  std::string value;
  Version version = 0;         // of the write; 0: nothing was written
  int64_t segments_added = 0;  // fewer, if negative
  bool is_erased = false;      // the collection has no members any more
};

// How an atomic batch of conditions and writes has ended.
enum class WriteResult : uint8_t { kDone, kAgain, kRefused };

class Change {
 public:
  Change(Access& access, std::string_view key, uint8_t kind, const types::LargeRecord& record)
      : access_(access),
        key_(key),
        kind_(kind),
        record_(record),
        members_(access, record.id, Part::kMembers),
        scores_(access, record.id, Part::kScores),
        blocks_(access, record.id, Part::kCounts) {}

  // The segments of a part, which are conditions of the change once they were read.
  Segments& Of(Part part) { return part == Part::kScores ? scores_ : members_; }
  // Makes `after` of the pieces `before`; both are pieces of the small form and ascend. False: the
  // collection has changed meanwhile.
  bool Edit(const Pieces& before, const Pieces& after);
  // The change depends on more than the segments it has read: no member may have been written since
  // the record was read.
  void RequireRecord() { requires_record_ = true; }
  // Adds the conditions and the writes to an atomic batch; `fewest` is as in types::RecordChange.
  void AddTo(Batch& batch, int64_t fewest = 0);
  // The answer of the write, of a batch that was applied.
  Answer Done(const Batch& batch);
  // Both, with a batch of its own. Nothing: a condition has failed.
  std::optional<Answer> Commit();

 private:
  // A segment with its edits and with what it takes over of the segments to its right, as it is to
  // be.
  struct Target {
    Loaded* first;
    EditedBody edited;
    std::optional<std::string_view> fence;
    std::string body = {};   // if is_joined
    bool is_joined = false;  // with one to its right
    size_t bytes() const;    // of the body
    std::string Body() const;
  };
  // A segment that is new.
  struct Added {
    std::string key;
    std::string bytes;
  };

  bool EditPart(Part part, const std::vector<skep::collections::Edit>& edits);
  bool CountEdits(const std::vector<skep::collections::Edit>& edits);
  std::optional<std::vector<Target>> Targets(Part part,
                                             const std::vector<skep::collections::Edit>& edits);
  void LookUpBlocks(Lookup& lookup, const std::vector<std::string_view>& places);
  void LookUp(const std::vector<skep::collections::Edit>& edits,
              const std::vector<skep::collections::Edit>& by_member);
  bool IsSparse(const Target& target) const;
  // Adds what lies to the right if both fit into one segment.
  bool TakeOver(Part part, Target& target, const Target& right);
  bool TakeOverNeighbour(Part part, Target& target);
  bool Store(Part part, const Target& target);
  void AddNew(Batch& batch, std::string_view key, size_t* added) const;
  void AddSegments(Batch& batch, const Segments& segments, size_t* added) const;

  Access& access_;
  const std::string_view key_;
  const uint8_t kind_;
  const types::LargeRecord record_;
  Segments members_;
  Segments scores_;
  Segments blocks_;
  std::vector<Added> added_;
  int64_t members_added_ = 0;
  int64_t bytes_added_ = 0;
  struct Count {
    std::string_view block;  // its key
    int64_t delta = 0;
    std::string_view place;  // the highest one that is counted
  };
  std::vector<Count> counts_;  // ascending
  bool requires_record_ = false;
  uint32_t first_count_ = 0;  // the slots that the change has in the batch
  uint32_t record_slot_ = 0;
  int64_t segments_added_ = 0;
};

// The pieces as the value of a segment, with a stamp of its own.
std::string SegmentOf(const Pieces& pieces, size_t begin, size_t end,
                      std::optional<std::string_view> fence);
// What has become of slots of a batch that is not applied. kDone: they were not at fault. kAgain:
// one of their conditions has failed. Otherwise *status is that of the slot that was refused.
WriteResult ResultOf(const Batch& batch, uint32_t begin, uint32_t end, Status* status);
// Executes an atomic batch of conditions and writes, all of which is a change.
WriteResult ExecuteChange(Access& access, Batch& batch, Status* status);
// Executes such a batch; the answer is that of `done`, or has the status of what was refused.
// Nothing: a condition has failed.
template <class Done>
std::optional<Answer> AnswerOfWrite(Access& access, Batch& batch, Done done) {
  Answer answer;
  const WriteResult result = ExecuteChange(access, batch, &answer.status);
  if (result == WriteResult::kAgain) return std::nullopt;
  return result == WriteResult::kDone ? done() : answer;
}
// The function that changes records of this kind.
const Function* RecordFunction(uint8_t kind);

}  // namespace skep::collections
