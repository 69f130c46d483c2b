// access.h: reads of the items of one large collection.
//
// Points read the newest state, so a call sees every write that was done before it. The scan that
// leads to a segment may read an older one: its answer is a hint. Find begins at the hint and goes
// on by what the segments themselves say: to the next one while the wanted place is not below the
// fence, to the one before if the hint is gone. Segments split to the right and are merged into the
// one to their left, so both ways end.
//
// Thread safety: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "collections/layout.h"
#include "engine/engine.h"
#include "types/large_record.h"

namespace skep::collections {

class Access {
 public:
  // Reads the newest state, or that of a snapshot. The engine must outlive the object.
  Access(Engine& engine, uint64_t now_ms, size_t segment_bytes, SnapshotRef at = {})
      : engine_(engine), now_ms_(now_ms), segment_bytes_(segment_bytes), at_(at) {}

  // The value of the key; nothing if it is absent or of another type.
  std::optional<std::string> Get(std::string_view key, uint8_t type);
  // The record of the key's large collection; nothing if it has none of this kind.
  std::optional<types::LargeRecord> Record(std::string_view key, uint8_t kind);
  // The deadline of the key that the last Get has found; 0: none.
  uint64_t deadline_ms() const { return deadline_ms_; }
  void set_deadline_ms(uint64_t deadline_ms) { deadline_ms_ = deadline_ms; }
  // The type of the key's value; kPlainType if it is absent.
  uint8_t TypeOf(std::string_view key);
  // The key of the segment of the part that has the place; nothing if the id has no such part any
  // more. *bytes becomes the segment's bytes.
  std::optional<std::string> FindSegment(uint64_t id, Part part, std::string_view place,
                                         std::string* bytes);
  // Executes a batch and returns it with its outcomes; keeps the ticket.
  Batch& Execute(Batch& batch);

  Engine& engine() const { return engine_; }
  uint64_t now_ms() const { return now_ms_; }
  // The bytes of pieces from which a segment is cut.
  size_t segment_bytes() const { return segment_bytes_; }
  // The highest version that was read or written.
  Version ticket() const { return ticket_; }
  // The error of a read that was refused; kOk if none was.
  Status status() const { return status_; }
  void set_status(Status status) { status_ = status; }
  SnapshotRef snapshot() const { return at_; }
  void NoteTicket(Version version) { ticket_ = std::max(ticket_, version); }

 private:
  std::optional<std::string> SegmentKeyNear(uint64_t id, Part part, std::string_view key,
                                            bool below);

  Engine& engine_;
  const uint64_t now_ms_;
  const size_t segment_bytes_;
  const SnapshotRef at_;
  Version ticket_ = 0;
  uint64_t deadline_ms_ = 0;
  Status status_;
};

// The segments of one part that a call has read.
struct Loaded {
  std::string key;
  std::string bytes;
  Segment segment;  // views of bytes
};
class Segments {
 public:
  Segments(Access& access, uint64_t id, Part part) : access_(access), id_(id), part_(part) {}

  // The segment that has the place; null if the part is gone, its bytes are no segment, or they
  // have changed since an earlier call.
  const Loaded* Find(const std::string& place);
  // The segment that follows; null if it was not read.
  const Loaded* FindNext(const Loaded& segment);
  // By their separators.
  const std::map<std::string, Loaded>& all() const { return loaded_; }

 private:
  const Loaded* Keep(std::string key, std::string bytes);

  Access& access_;
  const uint64_t id_;
  const Part part_;
  std::map<std::string, Loaded> loaded_;
};

}  // namespace skep::collections
