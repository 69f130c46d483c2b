// access.h: reads of the items of one large collection.
//
// Points read the newest state, so a call sees every write that was done before it. The scan that
// leads to a segment may read an older one: its answer is a hint. Find begins at the hint and goes
// on by what the segments themselves say: to the next one while the wanted place is not below the
// fence, to the one before if the hint is gone. Segments split to the right and are merged into the
// one to their left, so both ways end.
//
// A Lookup reads the segments of many places in one batch, all at one version, which may be an
// older one, and the record at that version. Where hints (segment_hints.h) tell the key of an item
// it is read by its key, else by a scan. A record that is the newest one says that the segments
// are, too. A change requires what it has read to be as it was read anyway, so it needs no newest
// state to begin with. A Lookup of members (AddMember) brings their pieces only, where hints tell
// the segments: a function finds each where it lies (types/large_find.h).
//
// Members that were looked up. Let R be the record of the key as it was in the newest state at some
// moment of a call, and S the state that the Lookup has read.
//   (L1) A record with the id of R in S says that the segments of S with that id are the key's
//        collection in S.
//   (L2) `writes` of an id grows with every write of a member, whatever key has it then, and is
//        written with the member at one instant. So if it is as in R, the members in S are those of
//        the key at the moment of R. If it is more, S is later than that moment, and S is a state
//        that the key had during the call. Either way the pieces of S are a right answer.
//   (L3) A function tells whether its segment has the place of the member in S (C1 of layout.h). So
//        a wrong hint is noticed, and a segment that was divided or joined meanwhile is no matter.
// A key that was deleted, renamed, overwritten or restored has another id, or none: (L1) fails. If
// `writes` is less than in R, S may be from before the call.
//
// Thread safety: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collections/layout.h"
#include "collections/pieces.h"
#include "collections/segment_hints.h"
#include "engine/engine.h"
#include "types/large_record.h"

namespace skep::collections {

class Access {
 public:
  // Reads the newest state, or that of a snapshot. The engine must outlive the object, and so must
  // the hints, if there are any.
  Access(Engine& engine, uint64_t now_ms, size_t segment_bytes, SnapshotRef at = {},
         SegmentHints* hints = nullptr)
      : engine_(engine), now_ms_(now_ms), segment_bytes_(segment_bytes), at_(at), hints_(hints) {}

  // The value of the key; nothing if it is absent or of another type.
  std::optional<std::string> Get(std::string_view key, uint8_t type);
  // The record of the key's large collection; nothing if it has none of this kind.
  std::optional<types::LargeRecord> Record(std::string_view key, uint8_t kind);
  // The deadline of the key of a collection, 0 if it has none, in the state that was read last: by
  // Record, by a Lookup or by a View; behind a write, in the state that it has found.
  uint64_t deadline_ms() const { return deadline_ms_; }
  void set_deadline_ms(uint64_t deadline_ms) { deadline_ms_ = deadline_ms; }
  // The type of the key's value; kPlainType if it is absent.
  uint8_t TypeOf(std::string_view key);
  bool IsPresent(std::string_view key);
  // The key of the segment of the part that has the place; nothing if the id has no such part any
  // more. *bytes becomes the segment's bytes.
  std::optional<std::string> FindSegment(uint64_t id, Part part, std::string_view place,
                                         std::string* bytes);
  // A batch whose requests and answers live until Forget.
  Batch& KeptBatch(Batch::Kind kind) { return kept_.emplace_back(kind); }
  // Bytes that live until Forget.
  Scratch& scratch() { return scratch_; }
  void Forget() {
    kept_.clear();
    scratch_.Clear();
  }
  // Executes a batch and returns it with its outcomes; keeps the ticket.
  Batch& Execute(Batch& batch);

  Engine& engine() const { return engine_; }
  // Where segments begin; null: nobody keeps that.
  SegmentHints* hints() const { return hints_; }
  uint64_t now_ms() const { return now_ms_; }
  // The bytes of pieces from which a segment is cut.
  size_t segment_bytes() const { return segment_bytes_; }
  // The bytes that were read, compared and written since the last call.
  size_t TakeWork() { return std::exchange(work_, 0); }
  size_t work() const { return work_; }
  void CountWork(size_t bytes) { work_ += bytes; }
  // The highest version that was read or written.
  Version ticket() const { return ticket_; }
  // The error of a read that was refused; kOk if none was.
  Status status() const { return status_; }
  void set_status(Status status) { status_ = status; }
  SnapshotRef snapshot() const { return at_; }
  // As Batch::portion_bytes_max().
  size_t portion_bytes_max() const { return portion_bytes_max_; }
  void set_portion_bytes_max(size_t bytes) { portion_bytes_max_ = bytes; }
  // Whether so many of the collection's pieces have more bytes than that, by their mean.
  bool IsTooLong(const types::LargeRecord& record, uint64_t pieces) const {
    const uint64_t each = record.bytes / std::max<uint64_t>(record.members, 1) + 1;
    return pieces > 1 && pieces > portion_bytes_max_ / each;
  }
  // Whether a write of so many members would copy more bytes than that: a segment for each.
  bool IsLongWrite(uint64_t members) const { return members > portion_bytes_max_ / segment_bytes_; }
  // Whether a read that has so many bytes is longer than its mean has told: it is given up.
  bool IsFarTooLong(size_t bytes) const { return bytes / 2 > portion_bytes_max_; }
  // Whether calls read the newest state only. It is wanted once a call has met an older one.
  bool wants_newest() const { return wants_newest_; }
  void WantNewest() { wants_newest_ = true; }
  // Notes that a write was refused because of a hint that is corrected now; Take returns it once.
  void NoteWrongHint() { met_wrong_hint_ = true; }
  bool TakeWrongHint() { return std::exchange(met_wrong_hint_, false); }
  void NoteTicket(Version version) { ticket_ = std::max(ticket_, version); }

 private:
  std::optional<std::string> Get(std::string_view key, uint8_t type, uint64_t* deadline_ms);
  std::optional<std::string> SegmentKeyNear(uint64_t id, Part part, std::string_view key,
                                            bool below);

  Engine& engine_;
  const uint64_t now_ms_;
  const size_t segment_bytes_;
  const SnapshotRef at_;
  SegmentHints* const hints_;
  Version ticket_ = 0;
  uint64_t deadline_ms_ = 0;
  Status status_;
  bool wants_newest_ = false;
  bool met_wrong_hint_ = false;
  size_t portion_bytes_max_ = SIZE_MAX;
  size_t work_ = 0;
  std::deque<Batch> kept_;
  Scratch scratch_;
};

// A segment, or a block, that a call has read. Views of bytes that the access keeps.
struct Loaded {
  std::string_view key;
  std::string_view bytes;
  Segment segment;
  std::string_view edit = {};  // the operand of large-segment-edit that a change has for it
};

// The items of one part that a call has read.
class Segments {
 public:
  Segments(Access& access, uint64_t id, Part part)
      : access_(access), id_(id), part_(part), prefix_(SegmentKey(id, part, {})) {}
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  // The item that has the place; null if the part is gone, its bytes are no segment, or they have
  // changed since an earlier call.
  Loaded* Find(std::string_view place);
  // Likewise, among those that were read already.
  Loaded* FindRead(std::string_view place);
  // The item that follows; null if it was not read.
  Loaded* FindNext(const Loaded& segment);
  // The item that has the place, which is the fence of another one.
  Loaded* FindAtFence(std::string_view fence);
  // Adds an item that was read; null as for Find.
  Loaded* Keep(std::string_view key, std::string_view bytes);
  // By their separators, ascending.
  const std::vector<Loaded*>& all() const { return by_separator_; }

  // Where the keys of the part's items begin.
  std::string_view prefix() const { return prefix_; }
  uint64_t id() const { return id_; }
  Part part() const { return part_; }

 private:
  bool Has(size_t item, std::string_view place) const;

  Access& access_;
  const uint64_t id_;
  const Part part_;
  const std::string prefix_;
  std::deque<Loaded> loaded_;
  std::vector<Loaded*> by_separator_;
  size_t last_found_ = 0;  // in by_separator_; may be out of date, or beyond the end
};

// Reads the items of many places at one version.
class Lookup {
 public:
  explicit Lookup(Access& access)
      : access_(access), batch_(access.KeptBatch(Batch::Kind::kAtomic)) {}

  bool IsEmpty() const { return wanted_.empty(); }
  // Asks for the item of the part that has the place, unless it was read.
  void Add(Segments& segments, std::string_view place);
  // Asks for a member of a collection of this kind, in the part of members: one slot. Its bytes
  // must outlive the object.
  void AddMember(Segments& segments, uint8_t kind, std::string_view member);
  // Asks for the items of the part from that of one place to that of another, in their order, but
  // for at most `limit` of them. None of the part was read before.
  void AddRange(Segments& segments, std::string_view from, std::string_view to, uint32_t limit);
  // Reads them. What is not found, or has changed since an earlier read, is left to Find. Returns
  // the record of the key at that version; nothing if it had none.
  std::optional<types::LargeRecord> Run(std::string_view key, uint8_t kind);
  // Likewise, but leaves what was found to FoundMember.
  std::optional<types::LargeRecord> Execute(std::string_view key, uint8_t kind);
  // Sets *piece to the piece of a member in its part, or to nothing if the member is not there.
  // `call` counts the calls of AddMember from 0. False: the segment of the member was not found.
  bool FoundMember(uint32_t call, uint8_t kind, std::optional<Piece>* piece) const;

 private:
  std::string_view KeyOf(const Segments& segments, std::string_view place, bool behind);
  void AddScan(Segments& segments, std::string_view place);
  std::optional<Request> Hinted(const Segments& segments, std::string_view place);
  void NoteHints();
  void CheckHint(uint32_t slot) const;
  bool FoundByFunction(uint32_t call, Form form, std::optional<Piece>* piece) const;

  struct Wanted {
    Segments* segments;
    std::string_view place;
  };

  Access& access_;
  Batch& batch_;
  std::vector<Wanted> wanted_;  // by slots
  // The hints of the collection, until the batch is executed.
  std::optional<SegmentHints::Reading> hints_;
  Part hinted_part_ = Part::kNames;  // the one that the hints have turned to
};

// Adds the condition that the key has this record of a collection of this kind.
void RequireRecord(Batch& batch, std::string_view key, uint8_t kind,
                   const types::LargeRecord& record);

}  // namespace skep::collections
