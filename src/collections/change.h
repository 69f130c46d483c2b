// change.h: a write of members of a large collection, as one atomic batch.
//
//   Edit      for each part, what becomes of which pieces; the segments are read
//   Commit    in one atomic batch: each segment that was read is required to be as it was read,
//             those that have changed are stored, the record is changed (types/large_record.h)
//
// Safety. At the instant of the batch the record has the id, so the segments are the collection's,
// and every segment that the call has looked at is as it was: so the call, whatever it has computed
// from them, takes effect at that instant. Calls on different segments do not disturb each other;
// they meet in the record only, which a function changes where it lies.
// Progress. A commit fails only because somebody has written one of its segments, or the key, since
// it was read. Who calls it bounds how often (large_call.h).
//
// A segment whose pieces exceed Access::segment_bytes() is cut into several. One of which less than
// a quarter is left takes over the one to its right, if both fit into one.
//
// Cost: a copy of each segment that is changed.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <map>
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

class Change {
 public:
  enum class Result : uint8_t { kDone, kAgain, kRefused };

  Change(Access& access, std::string_view key, uint8_t kind, const types::LargeRecord& record)
      : access_(access), key_(key), kind_(kind), record_(record) {}

  // The segments of a part, which are conditions of the change once they were read.
  Segments& Of(Part part);
  // Changes pieces of a part; edits ascend. False: the collection has changed meanwhile.
  bool EditPart(Part part, const std::vector<Edit>& edits);
  // Counts the members that edits of the main part add and remove (counts.h); `before` has those
  // that were there, ascending. False: the collection has changed meanwhile.
  bool CountEdits(const std::vector<Edit>& edits, const Pieces& before);
  // The change depends on more than the segments it has read: no member may have been written since
  // the record was read.
  void RequireRecord() { requires_record_ = true; }
  // Writes it all, and adds to the record's members and bytes. kRefused: status() says why.
  Result Commit(int64_t members, int64_t bytes);

  Status status() const { return status_; }
  // The version that the commit has drawn, if the commit is done.
  Version version() const { return version_; }
  // Whether the collection has no members any more, if it is done.
  bool has_erased() const { return has_erased_; }
  // How many segments there are more now, if it is done.
  int64_t segments_added() const { return segments_added_; }

 private:
  struct Write {
    std::string key;
    std::optional<std::string> bytes;  // nothing: it is deleted
  };

  // A segment with the segments to its right that it takes over, and the pieces that they become.
  struct Target {
    const Loaded* first;
    Pieces pieces;
    std::optional<std::string_view> fence;
    bool shrinks;
    bool appends;  // pieces came behind the last one of the part, as the next ones will
  };

  std::optional<std::vector<Target>> Targets(Part part, const std::vector<Edit>& edits);
  bool IsSparse(const Target& target) const;
  // Adds what lies to the right if both fit into one segment.
  bool TakeOver(Part part, Target& target, const Loaded& right, const Pieces& pieces,
                std::optional<std::string_view> fence);
  bool TakeOverNeighbour(Part part, Target& target);
  void Store(Part part, const Target& target);

  Access& access_;
  const std::string_view key_;
  const uint8_t kind_;
  const types::LargeRecord record_;
  std::map<Part, Segments> parts_;
  std::vector<Write> writes_;
  struct Count {
    int64_t delta = 0;
    std::string place;  // the highest one that is counted
  };
  std::map<std::string, Count> counts_;  // by the keys of the blocks
  bool requires_record_ = false;
  Status status_;
  Version version_ = 0;
  bool has_erased_ = false;
  int64_t segments_added_ = 0;
};

// The pieces as the value of a segment.
std::string SegmentOf(const Pieces& pieces, size_t begin, size_t end,
                      std::optional<std::string_view> fence);
// Executes an atomic batch of conditions and writes. kAgain: a condition has failed. Otherwise the
// status of what was refused is in *status.
Change::Result ExecuteChange(Access& access, Batch& batch, Status* status);
// The function that changes records of this kind.
const Function* RecordFunction(uint8_t kind);

}  // namespace skep::collections
