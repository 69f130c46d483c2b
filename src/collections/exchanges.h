// exchanges.h: edits of the segments of one large sorted set that nobody has read.
//
// A call about members knows of each member it changes what it was: it has read the member's
// segment in the part of members, or its entry in that of scores. So the segment in the other part
// need not be read to be written. An exchange (types/large_exchange.h) takes away the piece that is
// known to be there and adds the one that comes, in one atomic batch with whatever else the call
// writes and depends on (change.h).
//
// Safety. Which segment has a place is known from hints (segment_hints.h): one whose key is not
// above the place and which does not end before it has the place (C1 of layout.h). The exchange
// checks the end, and is refused if the pieces are not as the call knows, and with it the batch. So
// whatever the hints say, an exchange that is done is the right one.
//
// Progress. A batch that was refused has written nothing, and what was wrong about its hints is
// corrected. The caller tries again at most as often as it does with segments that it has read;
// what is left then is done alone and without hints.
//
// Long and sparse segments. An exchange may make a segment up to twice as long as segments are
// meant to be, or leave little of it, or nothing. Such segments are mended afterwards (MendSegments
// in change.h, which tries several times); what is still long is mended by the next exchange there.
//
// Cost: of a segment, a search of the hints for each edit, and one function at the data. Segments
// with more than kEditsMax edits are left to others, who read them: an append of many members to
// the last segment cuts it into several.
//
// Thread safety: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collections/access.h"
#include "collections/pieces.h"

namespace skep::collections {

// A segment that a write has made too long or too sparse.
struct ToMend {
  Part part;
  std::string_view key;
  std::string_view place;  // of a piece that was written
};

class Exchanges {
 public:
  // Edits of one segment that are made so.
  static constexpr size_t kEditsMax = 4;

  Exchanges(Access& access, uint64_t id) : access_(access), id_(id) {}

  // Takes over those edits of the part, which ascend, that are of segments which were not read and
  // of which hints tell; the others remain. Parts are taken in the order of their keys.
  void Take(Segments& read, Form form, std::vector<Edit>& edits);
  // Whether there is an exchange in the segment with this key.
  bool Has(std::string_view key) const;
  // Adds those of segments whose keys are below `key`, from the one numbered *next on.
  void AddBelow(Batch& batch, std::string_view key, size_t* next);
  // Tells the hints what was wrong in a batch that was refused. Returns whether anything was.
  bool Correct(const Batch& batch) const;
  // The segments that are to be mended, of a batch that was applied.
  std::vector<ToMend> LongOrSparse(const Batch& batch) const;

 private:
  struct OfSegment {
    Part part;
    std::string_view key;
    std::string_view operand;
    std::string_view last;  // place
    uint32_t slot = 0;      // of the batch
  };

  bool IsKnown(std::span<const Edit> edits) const;
  std::string_view OperandOf(Form form, std::span<const Edit> edits);

  Access& access_;
  const uint64_t id_;
  std::vector<OfSegment> segments_;  // ascending
  std::string edits_;                // of the operand that is made
};

}  // namespace skep::collections
