// puts_in_place.h: calls that put members into one large hash or set, written without being read.
//
// HSET, HSETNX and SADD store members, and answer how many are new. The other calls about members
// (member_calls.h) read the segments first, make their edits, and write on the condition that the
// segments are as they were read. Puts need no such read: one atomic batch has
//
//   for each member  large-segment-put  finds the member in its segment, stores it if it is new or
//                                       different, and tells which (types/large_put.h)
//   for each node    large-counts-tally adds to the counts (counts.h) what the puts have told
//   the record       ...-tally          likewise, if it has the id and levels that are known
//
// Safety. At the instant of the batch the record has the id, so the segments are the collection's.
// The segment of a member is known from hints (segment_hints.h): a segment whose key is not above
// the member's place, and which does not end before it, has the place (C1 of layout.h), and a put
// whose segment ends before it is refused, and with it the batch. The same holds for nodes of
// counts. So each put is of the right segment, whatever the hints say, and all of them, the counts
// and the record are one write. Puts of one member are in the order of the calls, and those of
// different members do not see each other: so each call answers what it would alone.
// A put that changes nothing writes nothing, and if no put changes anything the record is not
// written either.
//
// Long segments. A put may make a segment up to twice as long as segments are meant to be. Such
// segments are divided afterwards (MendSegments in change.h), and if that fails by the next put
// there. A put that would make it longer than that is refused.
//
// Progress. If a batch is refused nothing was written. It is tried once more, for what was wrong
// about the first hint that has failed is corrected; then the calls are made like all others.
//
// Cost: of a put, a search of the hints, and one descent to the segment, which is walked through
// and copied if it changes; of all puts, one write of each node of counts and of the record.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "collections/access.h"
#include "collections/joint_calls.h"
#include "collections/segment_hints.h"

namespace skep::collections {

class PutsInPlace {
 public:
  // Puts that are made together at most, and into one segment: where more go there the calls are
  // made as others are, which write a segment once.
  static constexpr size_t kPutsMax = 1024;
  static constexpr size_t kPutsOfSegmentMax = 16;
  // A batch that was refused may have corrected a hint.
  static constexpr int kTriesMax = 2;

  PutsInPlace(Access& access, std::string_view key, uint8_t kind, const types::LargeRecord& record)
      : access_(access), key_(key), kind_(kind), record_(record) {}

  // Makes the calls, if all are puts, and appends the answer of each. False: nothing was done.
  bool Run(std::span<const FunctionCall> calls, std::vector<Answer>* answers);

 private:
  struct Member {
    std::string_view name;
    std::string_view piece;  // as it lies in a segment
    uint32_t call;
    bool only_new;  // what is there already is left as it is
  };
  // Neighbours among the puts whose members are counted by one node.
  struct NodeRun {
    std::string_view key;  // of the node
    uint32_t first, end;   // puts
  };

  bool ReadMembers(std::span<const FunctionCall> calls);
  enum class Found : uint8_t {
    kAll,
    kUnknown,  // the hints lack a part
    kCrowded,  // more than kPutsOfSegmentMax puts are of one segment
  };

  bool FindKeys();
  Found FindKeysIn(SegmentHints::Reading& hints);
  Found FindSegments(SegmentHints::Reading& hints);
  Found FindNodes(SegmentHints::Reading& hints, uint64_t level);
  void AddPuts();
  void AddCounts();
  void AddRecord();
  const Member& MemberOf(uint32_t slot) const;
  bool Execute();
  int64_t Mend() const;
  int64_t DivideLong();

  Access& access_;
  const std::string_view key_;
  const uint8_t kind_;
  const types::LargeRecord record_;
  std::vector<Member> members_;               // ascending; those of one name in the order of calls
  std::vector<std::string_view> keys_;        // of their segments
  std::vector<std::vector<NodeRun>> levels_;  // of counts, the lowest one first
  bool is_stale_ = false;              // the batch was refused because of what is out of date
  Batch batch_{Batch::Kind::kAtomic};  // the puts first
};

}  // namespace skep::collections
