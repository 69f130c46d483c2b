// ycsb_target.h: the target of a benchmark: a store in this process, or a server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bench/op_stream.h"
#include "skep/status.h"

namespace skep::bench {

// Counts of the operations that a session ran.
struct Tally {
  uint64_t errors = 0;  // operations refused, or answered wrongly
  uint64_t items_scanned = 0;
  uint64_t checksum = 0;  // of the answers (answer_checksum.h); 0: the session has none
  // Nanoseconds in the target alone, without building batches and checking answers. 0: the session
  // cannot tell.
  uint64_t target_ns = 0;
  std::string first_error;  // a line for people

  void CountError(std::string_view why) {
    if (errors++ == 0) first_error = why;
  }
  void Merge(const Tally& other) {
    if (errors == 0) first_error = other.first_error;
    errors += other.errors;
    items_scanned += other.items_scanned;
    checksum += other.checksum;
    target_ns += other.target_ns;
  }
};

// One thread's session with the target. Thread safety: none; one owner.
class YcsbSession {
 public:
  virtual ~YcsbSession() = default;
  // Runs operations [first, first + count) of the stream as one batch, and checks every answer:
  //   read, read-modify-write  the key exists and its value has the right size
  //   update, insert, delete   done
  //   scan                     at least the start key exists; no more items than were asked for
  // An error fails only its operation; a Status means that the session is unusable.
  //   kUnavailable, kIo  the connection broke
  //   kCorrupt           the server sent bytes that are not RESP
  virtual Status Execute(const OpStream& stream, size_t first, size_t count, Tally& tally) = 0;
};

struct Footprint {
  std::optional<double> bytes_per_item;  // all that the target holds for its items / their number
  std::optional<uint64_t> rss_bytes;     // of the process that holds them
};

// A state of the target that stays readable until it is dropped.
class HeldSnapshot {
 public:
  virtual ~HeldSnapshot() = default;
  // Returns whether the snapshot can still be read: it may be revoked.
  virtual bool Readable() = 0;
};

class YcsbTarget {
 public:
  virtual ~YcsbTarget() = default;
  // Opens a session. Thread-safe. The session must not outlive the target.
  virtual Result<std::unique_ptr<YcsbSession>> Connect() = 0;
  // Holds the present state; the snapshot must not outlive the target.
  //   kNotSupported  the target has no snapshots, or this benchmark does not use them
  virtual Result<std::unique_ptr<HeldSnapshot>> Hold() {
    return Fail(Code::kNotSupported, "no snapshots of this target");
  }
  // Returns what the target takes now. Unknown figures are left out.
  virtual Result<Footprint> Measure() = 0;
};

}  // namespace skep::bench
