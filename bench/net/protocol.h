// protocol.h: the interface of a protocol to the load generator: it writes requests and reads
// answers.
//
//   request  `count` operations of one kind that are answered together: one GET, an MGET of 32, or
//            32 commands in a row if the protocol has no command for several keys
//   answer   all that the server sends for one request
//
// Answers come in the order of their requests, unless they tell whose they are (Whose). If a
// protocol can be sent as datagrams, a request and its answer are one datagram each, behind a frame
// that has a number. A protocol is one class; protocols.cc lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bench/op_stream.h"
#include "bench/record_format.h"

namespace skep::client {
class FatRoot;
}

namespace skep::bench {

// Counts of answers, in operations, except `items`.
struct NetTally {
  uint64_t hits = 0;    // reads that found a value of the right size
  uint64_t misses = 0;  // reads that found nothing
  uint64_t stored = 0;
  uint64_t scans = 0;
  uint64_t items = 0;       // items of scans
  uint64_t errors = 0;      // refused, or answered wrongly
  std::string first_error;  // a line for people
  uint64_t lost = 0;        // datagrams without an answer

  void CountError(std::string_view why, uint64_t operations = 1) {
    if (errors == 0) first_error = why;
    errors += operations;
  }
};

// The record of a request that is kept until the answer comes.
struct NetAsked {
  OpKind kind;         // never kReadModifyWrite: that is a read and an update
  uint32_t count;      // operations, > 0; scans come alone, unless GroupsScans()
  uint32_t items = 0;  // of each scan, at most
};

// The command that a scan uses.
enum class ScanCommand : uint8_t {
  kKrange,       // of the keyspace, with values
  kZrangebylex,  // of one sorted set, whose members are key and value in one; writes are ZADDs to
                 // it
  kMget,         // of the scan's first key and the keys behind it in the stream: needs no order
};

struct NetFormat {
  size_t key_bytes;
  size_t value_bytes;
  ScanCommand scan_command = ScanCommand::kKrange;
  bool datagrams = false;  // requests are datagrams, not a stream
  // The protocol `packed` sends hints from it, and asks for its pages; null: no hints.
  client::FatRoot* fat_root = nullptr;
};

// The protocol of one connection. Thread safety: none; one owner.
class NetProtocol {
 public:
  enum class Event : uint8_t { kAnswer, kNeedMore, kCorrupt };

  virtual ~NetProtocol() = default;

  // Returns whether the protocol has such operations.
  virtual bool Does(OpKind kind) const = 0;

  // Returns whether several scans can be one request.
  virtual bool GroupsScans() const { return false; }

  // Returns whether requests can be datagrams.
  virtual bool DoesDatagrams() const { return false; }
  // Appends the frame of datagram `number`; the request is appended behind it.
  virtual void AppendFrame(uint32_t /*number*/, std::string& /*out*/) const {}
  // Returns whether the datagram answers that number, and removes its frame.
  virtual bool TakeFrame(uint32_t /*number*/, std::string_view& /*datagram*/) const {
    return false;
  }

  // Appends the request of asked.count operations of that kind, from stream.at(first) on, to `out`.
  // Allocates nothing once `out` and its own buffers have grown. `first` and the number of a value
  // only have to exist.
  virtual void Encode(const NetAsked& asked, const OpStream& stream, size_t first,
                      const ValuePool& values, std::string& out) = 0;

  // Returns which of the requests under way on a stream the next answer belongs to: 0 is the oldest
  // one, and stands also for an answer of which too little has come. `input` is as for Read.
  virtual size_t Whose(std::string_view /*input*/) const { return 0; }

  // Continues to read the answer to `asked`. `input` begins where the last call stopped and holds
  // all bytes that have come since; `consumed` is how many of them are done with, and the tally
  // counts what they said.
  //   kAnswer    the answer is complete
  //   kNeedMore  it is not; call again with the rest of `input`, and more bytes behind it
  //   kCorrupt   not this protocol, or no answer to that request; nothing can be read any more
  virtual Event Read(std::string_view input, const NetAsked& asked, size_t& consumed,
                     NetTally& tally) = 0;
};

}  // namespace skep::bench
