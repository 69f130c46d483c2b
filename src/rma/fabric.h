// fabric.h: memory of other processes, read and written without their code, and messages to them.
//
// An endpoint is one thread's end of a fabric. It exposes regions of memory to its peers, reads and
// writes theirs (one-sided operations), calls them and answers their calls (messages).
//
//   Post   reads and writes of a peer's regions; one kDone when all of them have ended
//   Call   a message to a peer, which sees kRequest; its Reply comes back as kReply
//   Poll   moves everything on, and returns the events
//
// What a one-sided operation promises, on every fabric:
//   F1  An aligned word of 8 bytes is read and written whole. Nothing else is: a read may see some
//       words from before a write and others from after it, in any order.
//   F2  Operations of one Post, and of several, are in no order. A caller that wants an order waits
//       for kDone of the first before it posts the second.
//   F3  kDone of a write without an error: whoever reads after it sees the bytes
//       (Capabilities::delivery_complete; where that is false the caller must read them back).
//   F4  kDone of a read without an error: the bytes were in the peer's memory at some instants
//       between the Post and the Poll that returns kDone. A reader may assume no more, above all
//       not that they are there now. Where Capabilities::coherent is false they may be older than
//       the Post, too: a reader cannot tell what is new.
//   F5  A kDone with an error tells nothing: a write may have been done, now or later, in part, or
//       not. Later ends where Fence says so.
// Each Post, and each Call, ends in exactly one event, unless its endpoint is destroyed before.
// The messages of one connection come in the order in which they were sent, each way.
//
// Peers. A PeerId stands for one connection, either side's Connect, and is never used again.
// kJoined comes first: from then on either side may read, write and call the other. When a
// connection ends, by either side, first everything that was under way on it ends with
// kUnavailable, then one kLeft comes. There is no connecting again by itself: whoever knows what
// was sent decides.
//
// Backends. mem (mem_fabric.h): regions are mapped, one-sided operations are copies by the CPU of
// the caller, messages go over a unix socket. tcp (tcp_fabric.h): everything is messages of many
// operations, which the target carries out in its Poll. Which one is used is asked for by name;
// none stands in for another. Tests have one more, of one thread and from a seed: sim
// (testing/sim_fabric.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/network.h"
#include "base/shared_memory.h"
#include "skep/status.h"

namespace skep::rma {

struct Capabilities {
  std::string_view name;               // "mem", "tcp"
  bool one_sided = false;              // no code of the target runs for reads and writes
  bool delivery_complete = true;       // F3
  bool coherent = true;                // reads are of memory, not of copies that may be older
  bool needs_target_progress = false;  // the target must Poll for reads and writes to be done
  uint32_t post_operations_max = 0;    // of one Post
  uint64_t post_bytes_max = 0;         // of one Post's operations together
};

using PeerId = uint32_t;

struct Operation {
  enum class Kind : uint8_t { kRead, kWrite };
  Kind kind = Kind::kRead;
  uint32_t region = 0;    // the index in the target's EndpointOptions::regions
  uint64_t offset = 0;    // a multiple of 8
  uint32_t bytes = 0;     // a multiple of 8, not 0
  void* local = nullptr;  // aligned to 8 bytes; its bytes stay until kDone
};

enum class Access : uint8_t { kRead, kReadWrite };

// How many regions an endpoint can have.
inline constexpr size_t kRegionsMax = 128;

// Memory that peers may read, or also write: all of it, as long as the endpoint exists. It outlives
// the endpoint. What it is for is between its user and its peers.
struct Region {
  SharedMemory* memory = nullptr;
  Access access = Access::kRead;
};

struct EndpointOptions {
  // Where peers connect to; empty: nowhere. As Network::Listen takes it; mem: "unix:PATH".
  Address listen;
  std::vector<Region> regions;
  // A longer message is refused with kTooLarge, and a peer that sends one, or anything that is no
  // message, is disconnected.
  size_t message_bytes_max = size_t{16} << 20;
  // A peer that has let so many bytes to it wait is disconnected. The bytes of a Post wait with
  // their caller instead, while half as many are on their way to the peer, or from it.
  size_t unsent_bytes_max = size_t{64} << 20;
  // As a target: more peers are refused.
  uint32_t peers_max = 1024;
};

struct Event {
  enum class Kind : uint8_t {
    kJoined,   // a peer has connected to this endpoint, or a Connect of this one has reached it
    kLeft,     // the connection has ended, or the Connect has failed: `status` says why
    kDone,     // of the Post of this token
    kReply,    // of the Call of this token: `bytes`, if the status is ok
    kRequest,  // of the peer's Call: `bytes`; answered by Reply with this token
  };
  Kind kind = Kind::kDone;
  PeerId peer = 0;
  uint64_t token = 0;
  //   kUnavailable      the connection has ended, or is not there yet. Of kLeft: the peer has
  //                     closed it, this endpoint has, or no endpoint of this fabric answers there
  //   kInvalidArgument  an operation is not within a region that the peer exposes, or writes one
  //                     that is only read; none or some of the Post's others are done
  //   kTooLarge         the message, or the Post, exceeds a limit of either side; `detail` is the
  //                     limit. Of kLeft: the peer let unsent_bytes_max wait
  //   kCorrupt          of kLeft: the peer sent what is no message
  //   kIo               of kLeft: the errno
  Status status = {};
  std::string_view bytes = {};
};

// Thread safety: one owner; Wake() from any thread.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual const Capabilities& capabilities() const = 0;
  // Where this endpoint listens: with the port the system gave. Empty: nowhere.
  virtual Address address() const = 0;

  // Begins to connect. kJoined of this PeerId comes when the peer has answered, or kLeft if it does
  // not within `timeout_ms`, is no endpoint of this fabric or has as many peers as it may. Poll
  // moves it on: two endpoints that connect to each other never wait for each other.
  //   kInvalidArgument  the address cannot be parsed, or is none of this fabric
  //   kUnavailable      nobody is there; `detail` is the errno
  //   kIo               the errno
  virtual Result<PeerId> Connect(const Address& address, int timeout_ms) = 0;
  // Ends the connection; its kLeft, and the events before it, come with the next Poll. Also right
  // for a peer that has left.
  virtual void Disconnect(PeerId peer) = 0;
  // How many bytes the peer's region has; 0: there is none, or the peer has left.
  virtual uint64_t RegionBytes(PeerId peer, uint32_t region) const = 0;

  // Begins operations on the peer's regions. `token` is the caller's. Cost: of mem the copies
  // themselves, with the cache misses of all operations overlapped; of the others to queue them.
  virtual void Post(PeerId peer, uint64_t token, std::span<const Operation> operations) = 0;
  // Gives the local bytes of a Post that only reads back to the caller before its kDone, which
  // comes all the same: from now on nothing is written to them. Nothing happens to a Post that has
  // ended. False: this fabric cannot, and the caller waits for kDone. Cost: a look at what is under
  // way.
  virtual bool Abandon(PeerId peer, uint64_t token) {
    (void)peer, (void)token;
    return false;
  }
  // Sends a message. `request` is copied or sent before the call returns.
  virtual void Call(PeerId peer, uint64_t token, std::string_view request) = 0;
  // Answers a kRequest of this peer and token. Nothing, if the peer has left meanwhile.
  virtual void Reply(PeerId peer, uint64_t token, std::string_view reply) = 0;

  // Sends what is queued, carries out what has come, and returns what has ended; waits for that up
  // to `timeout_ms` (0: not at all, -1: for ever). The events and their bytes are valid until the
  // next call of this endpoint's Poll.
  virtual std::span<const Event> Poll(int timeout_ms) = 0;
  // Ends a Poll that waits, or the next one.
  virtual void Wake() = 0;

  // Disconnects the peer. True once none of its writes can reach this endpoint's regions any more,
  // late ones (F5) included; until then it is asked again, with pauses. tcp: at once. mem: when the
  // peer's endpoint has unmapped the regions, which it does as it learns of the end, or its process
  // has ended: a process that is stopped or hangs is waited for.
  virtual bool Fence(PeerId peer) = 0;
};

// One kind of fabric. Thread-safe.
class Fabric {
 public:
  virtual ~Fabric() = default;
  //   kInvalidArgument  the address, a region without memory, or more than kRegionsMax
  //   kIo               the errno: of listening, say
  virtual Result<std::unique_ptr<Endpoint>> Open(const EndpointOptions& options) = 0;
};

}  // namespace skep::rma
