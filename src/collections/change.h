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
// it was read, because it was read at an older version, or because a hint was wrong. Who calls it
// bounds how often, and has it read the newest state, without hints, when it tries again
// (collection_engine.h).
//
// A segment whose pieces exceed Access::segment_bytes() is cut into several. One of which less than
// a quarter is left takes over the one to its right, if both fit into one.
//
// Segments of a sorted set that were not read need not be, where hints tell their keys and the
// caller knows the pieces (exchanges.h). Nor need nodes of counts, whose functions check that the
// places are theirs (counts.h).
//
// Cost: a copy of each segment that is changed, and in a log the bytes that have changed.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collections/access.h"
#include "collections/exchanges.h"
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
  bool keeps = false;          // the call, one of several of a write, has changed nothing
  bool is_too_long = false;    // the call was not made: as Batch::portion_bytes_max() says
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
        exchanges_(access, record.id) {
    if (kind == types::kList) return;
    // In the order of the keys of their nodes.
    for (uint64_t level = 1; level <= record.first; ++level) AddLevel(level);
    AddLevel(0);
  }

  // The segments of a part, which are conditions of the change once they were read.
  Segments& Of(Part part) { return part == Part::kScores ? scores_ : members_; }
  // Makes `after` of the pieces `before`; both are pieces of the small form and ascend. False: the
  // collection has changed meanwhile.
  bool Edit(const Pieces& before, const Pieces& after);
  // Likewise, if the edits of the main part, and of a sorted set also those of the part of members,
  // are known; each ascend. `bytes`: how many more the pieces of the small form then have;
  // `deadlines`: how many more fields of a hash then have deadlines.
  bool EditParts(std::vector<skep::collections::Edit> edits,
                 std::vector<skep::collections::Edit> by_member, int64_t bytes, int64_t deadlines);
  // The change depends on more than the segments it has read: no member may have been written since
  // the record was read.
  void RequireRecord() { requires_record_ = true; }
  // Adds the conditions and the writes to an atomic batch; `fewest` is as in types::RecordChange.
  void AddTo(Batch& batch, int64_t fewest = 0);
  // The answer of the write, of a batch that was applied.
  Answer Done(const Batch& batch);
  // Both, with a batch of its own. Nothing: a condition has failed.
  std::optional<Answer> Commit();
  // Tells the hints what was wrong about them in a batch that was refused. Returns whether anything
  // was.
  bool CorrectHints(const Batch& batch) const;
  // Mends the segment of the part that has the place, if it was read: divides it if it is longer
  // than segments are meant to be, or joins it with the next ones that were read, too, as long as
  // little is left of it. False: as for Edit.
  bool Mend(Part part, std::string_view place);
  // Writes what calls of Mend have made, and nothing else: neither the members nor the record
  // change. *added: how many segments there are more; 0 if nothing was written.
  WriteResult CommitMended(int64_t* added);

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

  // A place of the main part where a member comes or goes.
  struct Counted {
    std::string_view place;
    int64_t members;  // 1 or -1
  };

  bool EditPart(Part part, const std::vector<skep::collections::Edit>& edits);
  std::vector<Counted> ListCounted(const std::vector<skep::collections::Edit>& edits);
  void HintNodes(std::span<const Counted> counted);
  bool CountEdits(std::span<const Counted> counted);
  std::optional<std::vector<Target>> Targets(Part part,
                                             const std::vector<skep::collections::Edit>& edits);
  const Segments& HighestLevel() const;
  void LookUpNodes(Lookup& lookup, Segments& nodes, std::span<const Counted> counted) const;
  void AddLevel(uint64_t level) { levels_.emplace_back(access_, record_.id, CountsPart(level)); }
  void LookUp(const std::vector<skep::collections::Edit>& edits,
              const std::vector<skep::collections::Edit>& by_member,
              std::span<const Counted> counted);
  bool IsSparse(const Target& target) const;
  // Adds what lies to the right if both fit into one segment.
  bool TakeOver(Part part, Target& target, const Target& right);
  bool TakeOverNeighbour(Part part, Target& target);
  bool Store(Part part, const Target& target);
  void TellHints() const;
  // How many new segments, and how many exchanges, a batch already has.
  struct Others {
    size_t added = 0;     // of added_
    size_t exchange = 0;  // of exchanges_
  };
  void AddOthers(Batch& batch, std::string_view key, Others* next);
  void AddSegments(Batch& batch);

  Access& access_;
  const std::string_view key_;
  const uint8_t kind_;
  const types::LargeRecord record_;
  Segments members_;
  Segments scores_;
  std::deque<Segments> levels_;  // of counts, the lowest one last
  Exchanges exchanges_;
  std::vector<Added> added_;
  std::vector<std::string> gone_;  // keys of segments that others take over
  // By levels as levels_, for each place that is counted the key of its node; empty: no hints tell.
  std::vector<std::vector<std::string_view>> nodes_;
  int64_t members_added_ = 0;
  int64_t bytes_added_ = 0;
  int64_t deadlines_added_ = 0;  // fields that have one
  // A Count is what the change tells one node of counts: how many members it adds at which places,
  // which ascend.
  struct Count {
    std::string_view node;                      // its key
    std::string operand = {};                   // of large-counts-add (types/large_counts.h)
    std::string_view last = {};                 // place
    std::vector<std::string_view> places = {};  // of the lowest level
    bool has_less = false;                      // members are removed
  };

  std::vector<Count> counts_;  // by levels as levels_, and ascending
  bool requires_record_ = false;
  uint32_t first_count_ = 0;  // the slots that the change has in the batch
  uint32_t record_slot_ = 0;
  int64_t segments_added_ = 0;
};

// Mends segments, as Change::Mend says, in a change of their own, which is tried a few times.
// Returns how many segments there are more; 0 also if others have written them each time.
int64_t MendSegments(Access& access, std::string_view key, uint8_t kind,
                     const types::LargeRecord& record, std::span<const ToMend> segments);
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
