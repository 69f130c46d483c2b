// one_sided_loop.h: a closed loop of a client that reads the leaves of its server
// (ConnectOptions::one_sided): batches of the operations of a stream, one after the other, through
// the library's store. What the client does not answer by reading it sends, and waits.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "bench/net/generator.h"
#include "bench/op_stream.h"
#include "bench/record_format.h"
#include "skep/store.h"

namespace skep::bench {

// The client counts its reads since it was connected.
struct OneSidedCounts {
  uint64_t answered = 0;     // by reading
  uint64_t asked = 0;        // questions that reading did not answer
  uint64_t round_trips = 0;  // of reads, each of many leaves
  uint64_t bytes = 0;        // read
};

// Thread safety: none; one owner.
class OneSidedLoop {
 public:
  // `value_bytes`: as the records have.
  OneSidedLoop(std::unique_ptr<Store> store, size_t value_bytes)
      : store_(std::move(store)), value_bytes_(value_bytes) {}

  // Executes batches of pace.group operations of the stream, which repeats; pace.rate is 0. On
  // failure returns a line for people.
  std::expected<NetFigures, std::string> Run(const OpStream& stream, const ValuePool& values,
                                             const NetPace& pace);
  OneSidedCounts Counts() const;

 private:
  void Fill(const OpStream& stream, const ValuePool& values, uint32_t group);
  void Judge(NetTally& tally) const;

  const std::unique_ptr<Store> store_;
  const size_t value_bytes_;
  Batch batch_;
  size_t next_ = 0;  // in the stream
};

}  // namespace skep::bench
