// ycsb_target.h: what a benchmark is run against: a store in this process, or a server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bench/op_stream.h"
#include "skep/status.h"

namespace skep::bench {

// What a session found out about the operations it ran.
struct Tally {
  uint64_t errors = 0;  // operations refused, or answered with what cannot be right
  uint64_t items_scanned = 0;
  uint64_t checksum = 0;  // of what was returned (answer_checksum.h); 0 of a session without one
  // Nanoseconds in the target alone: without putting batches together and checking what came. 0 of
  // a session that cannot tell.
  uint64_t target_ns = 0;
  std::string first_error;  // a line for a person

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

// One thread's way to the target. Thread safety: none; one owner.
class YcsbSession {
 public:
  virtual ~YcsbSession() = default;
  // Runs operations [first, first + count) of the stream as one batch, and checks every answer:
  //   read, read-modify-write  the key is there and its value has the right size
  //   update, insert, delete   done
  //   scan                     at least the start key is there, and not more than was asked for
  // An error fails only its operation; a Status means that the session can do no more.
  //   kUnavailable, kIo  the connection broke
  //   kCorrupt           what the server sent is not RESP
  virtual Status Execute(const OpStream& stream, size_t first, size_t count, Tally& tally) = 0;
};

struct Footprint {
  std::optional<double> bytes_per_item;  // all the target holds for its items / their number
  std::optional<uint64_t> rss_bytes;     // of the process that holds them
};

// A state of the target that stays readable until it is dropped.
class HeldSnapshot {
 public:
  virtual ~HeldSnapshot() = default;
  // Whether it can still be read: a snapshot may be revoked.
  virtual bool Readable() = 0;
};

class YcsbTarget {
 public:
  virtual ~YcsbTarget() = default;
  // Thread-safe. The session must not outlive the target.
  virtual Result<std::unique_ptr<YcsbSession>> Connect() = 0;
  // Holds the state of this moment, which must not outlive the target.
  //   kNotSupported  the target has no snapshots, or this benchmark does not use them
  virtual Result<std::unique_ptr<HeldSnapshot>> Hold() {
    return Fail(Code::kNotSupported, "no snapshots of this target");
  }
  // What it takes now. Unknown figures are left out.
  virtual Result<Footprint> Measure() = 0;
};

}  // namespace skep::bench
