// protocol.h: what a load generator must know of a protocol: to write requests and to read answers.
//
//   request  `count` operations of one kind that are answered together: one GET, an MGET of 32, or
//            32 commands in a row if the protocol has none of several keys
//   answer   all that the server sends for one request
//
// Answers come in the order of their requests. Of a protocol that can be sent as datagrams, a
// request and its answer are one each, behind a frame that has a number. A protocol is one class;
// protocols.cc lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bench/op_stream.h"
#include "bench/record_format.h"

namespace skep::bench {

// What the answers said. Operations, but for items.
struct NetTally {
  uint64_t hits = 0;    // reads that found a value of the right size
  uint64_t misses = 0;  // reads that found nothing
  uint64_t stored = 0;
  uint64_t scans = 0;
  uint64_t items = 0;       // of scans
  uint64_t errors = 0;      // refused, or answered with what cannot be right
  std::string first_error;  // a line for a person
  uint64_t lost = 0;        // datagrams that nothing came for

  void CountError(std::string_view why, uint64_t operations = 1) {
    if (errors == 0) first_error = why;
    errors += operations;
  }
};

// What is remembered of a request until it is answered.
struct NetAsked {
  OpKind kind;         // never kReadModifyWrite: that is a read and an update
  uint32_t count;      // operations, > 0; scans come alone, unless GroupsScans()
  uint32_t items = 0;  // of a scan, of each of them: at most
};

// Which command a scan is.
enum class ScanCommand : uint8_t {
  kKrange,       // of the keyspace, with values
  kZrangebylex,  // of one sorted set, whose members are key and value in one; writes are ZADDs to
                 // it
  kMget,         // of the scan's first key and the keys behind it in the stream: no order is needed
};

struct NetFormat {
  size_t key_bytes;
  size_t value_bytes;
  ScanCommand scan_command = ScanCommand::kKrange;
  bool datagrams = false;  // requests are, not a stream
};

// One for each connection. Thread safety: none; one owner.
class NetProtocol {
 public:
  enum class Event : uint8_t { kAnswer, kNeedMore, kCorrupt };

  virtual ~NetProtocol() = default;

  // Whether it can do such operations.
  virtual bool Does(OpKind kind) const = 0;

  // Whether several scans can be one request.
  virtual bool GroupsScans() const { return false; }

  // Whether requests can be datagrams.
  virtual bool DoesDatagrams() const { return false; }
  // The frame of the datagram of that number, which the request is appended to.
  virtual void AppendFrame(uint32_t /*number*/, std::string& /*out*/) const {}
  // Whether the datagram is the answer to that number; what is behind its frame is then left.
  virtual bool TakeFrame(uint32_t /*number*/, std::string_view& /*datagram*/) const {
    return false;
  }

  // Appends the request of asked.count operations of that kind, from stream.at(first) on, to `out`.
  // Allocates nothing once `out` and what it keeps have grown. Of `first` and the number of a value
  // only that is required: that they exist.
  virtual void Encode(const NetAsked& asked, const OpStream& stream, size_t first,
                      const ValuePool& values, std::string& out) = 0;

  // Reads on in the answer to `asked`. `input` begins where the last call stopped and holds all
  // that has come since; consumed is how much of it is done with, and the tally counts what it
  // said.
  //   kAnswer    the answer is complete
  //   kNeedMore  it is not; call again with what is left of `input`, and more behind it
  //   kCorrupt   not this protocol, or not an answer to that; nothing can be read any more
  virtual Event Read(std::string_view input, const NetAsked& asked, size_t& consumed,
                     NetTally& tally) = 0;
};

}  // namespace skep::bench
