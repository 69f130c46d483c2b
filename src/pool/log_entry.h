// log_entry.h: what the index servers of a pool do to their state, in one order.
//
// The hash server gives every entry the next index, ships it to the sorted server, and applies it
// once that has acknowledged it; the sorted server applies the same entries in the same order
// (HStore, section 3.2). Entries are judged when they are applied, by what the state then is, so
// both come to the same verdict, and so does a server that takes over.
//
// A batch of entries, as it is shipped:
//   first index varint, count varint, then of each:
//   +------+-----------+---------------+-----------------+-----------
//   | kind | condition | client varint | sequence varint | by kind
//   +------+-----------+---------------+-----------------+-----------
//   put     key length varint, key, slot 8, expected slot 8 (kIfSlot)
//   delete  key length varint, key, expected slot 8 (kIfSlot); not kIfAbsent
//   join    -                       the client is known from now on
//   leave   -                       no more, and its chunks are sealed
//   lease   chunk varint, frames    the client may write to the chunk, which lies in these frames
//                                   (count varint, then each as a varint)
//   seal    chunk varint            the client writes to it no more
//   recycle chunk varint            it is free, at the next generation
//   server  server varint, first frame varint, frame count varint      a memory server has come
//   drain   server varint           it gets no chunks any more
//   gone    server varint           it is no part of the pool any more
//   adopt   chunk varint, gen varint, from varint     the chunk gets the frame of the chunk `from`,
//                                   to which the client has copied it
//   shed    chunk varint            it gives back its frames on servers that are drained
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pool/frames.h"
#include "pool/slot.h"

namespace skep::pool {

struct LogEntry {
  enum class Kind : uint8_t {
    kPut,
    kDelete,
    kJoin,
    kLeave,
    kLease,
    kSeal,
    kRecycle,
    kServer,
    kDrain,
    kGone,
    kAdopt,
    kShed,
  };
  static constexpr Kind kLastKind = Kind::kShed;
  enum class Condition : uint8_t {
    kNone,
    kIfAbsent,
    kIfPresent,
    kIfSlot,  // the key has the slot `expected`
  };
  static constexpr Condition kLastCondition = Condition::kIfSlot;

  Kind kind = Kind::kPut;
  Condition condition = Condition::kNone;
  uint32_t client = 0;
  uint64_t sequence = 0;           // put, delete
  std::string_view key = {};       // put, delete
  Slot slot = {};                  // put
  Slot expected = {};              // put, delete: kIfSlot
  uint32_t chunk = 0;              // lease, seal, recycle, adopt, shed
  ChunkFrames frames = kNoFrames;  // lease
  uint8_t gen = 0;                 // adopt
  uint32_t from = 0;               // adopt
  FrameRange range = {};           // server; drain, gone: its server
};

// What became of a put or delete.
struct CommitVerdict {
  enum class Kind : uint8_t {
    kDone,
    kNotMet,   // the condition does not hold; a delete without one: the key is absent
    kUnknown,  // the client is not known (any more), the sequence is older than those kept, or the
               // item is in no chunk that the client may write to
  };
  Kind kind = Kind::kDone;
  Slot before = {};      // the key's slot before the entry; none: it was absent
  uint64_t version = 0;  // the entry's index
  friend bool operator==(const CommitVerdict&, const CommitVerdict&) = default;
};

// Entries that follow each other. They keep the bytes of their keys.
class LogBatch {
 public:
  // Empty; the first entry will have this index.
  explicit LogBatch(uint64_t first_index = 1) : first_index_(first_index) {}
  // What entry() has returned before is of the other batch then.
  LogBatch(LogBatch&&) = default;
  LogBatch& operator=(LogBatch&&) = default;

  // Copies the entry's key.
  void Add(const LogEntry& entry);

  uint64_t first_index() const { return first_index_; }
  // One past that of the last entry.
  uint64_t end_index() const { return first_index_ + entries_.size(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  size_t key_bytes() const { return keys_.size(); }
  // The keys are right until the batch changes or goes.
  LogEntry entry(size_t i) const;

  void EncodeTo(std::string& to) const;
  // Takes a batch from the front. False: the bytes are none.
  static bool Decode(std::string_view& from, LogBatch* batch);

 private:
  struct Kept {
    LogEntry entry;  // without its key
    uint32_t key_begin, key_bytes;
  };

  uint64_t first_index_;
  std::vector<Kept> entries_;
  std::string keys_;
};

// The same encoding of one entry, as clients send them.
void EncodeEntry(const LogEntry& entry, std::string& to);
bool DecodeEntry(std::string_view& from, LogEntry* entry);

}  // namespace skep::pool
