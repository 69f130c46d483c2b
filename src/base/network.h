// network.h: byte streams, datagrams and readiness, injected. The real network is sockets and
// epoll; the simulated one (sim/sim_network.h) splits, delays and cuts streams from a seed, and
// loses, doubles and delays datagrams.
//
// All calls but Connect are non-blocking. Calls that move bytes return how many, or a negative
// errno: -EAGAIN when nothing can be moved now. Readiness is level-triggered.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "skep/status.h"

namespace skep {

// Where to listen or connect: "127.0.0.1:6379", "[::1]:6379", or "unix:/run/skep.sock".
// Port 0 asks the system for a free one; Listener::address() tells which.
using Address = std::string;

// One end of a connection. Destruction closes it. Thread safety: one owner.
class Stream {
 public:
  virtual ~Stream() = default;
  // > 0: bytes read; 0: the peer finished sending; < 0: -errno.
  virtual ssize_t Read(char* to, size_t bytes) = 0;
  // >= 0: bytes taken, perhaps fewer than given; < 0: -errno. Never raises SIGPIPE.
  virtual ssize_t Write(std::string_view bytes) = 0;
  // The same of several parts in a row; none is empty. A stream that has no system call for this
  // takes them one by one.
  virtual ssize_t Write(std::span<const std::string_view> parts);
  // The peer will read an end of stream after the bytes written so far; reading from the peer goes
  // on. No Write after it.
  virtual void FinishSending() = 0;
  virtual Address peer() const = 0;
  virtual Address local() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // Returns a waiting connection; null with *error = EAGAIN when there is none, else the errno
  // (EMFILE...).
  virtual std::unique_ptr<Stream> Accept(int* error) = 0;
  virtual Address address() const = 0;
};

// The other end of a datagram, in the form that its network uses.
struct DatagramPeer {
  std::array<char, 28> bytes = {};
  uint8_t size = 0;

  friend bool operator==(const DatagramPeer&, const DatagramPeer&) = default;
};

struct Datagram {
  DatagramPeer peer;
  std::string_view bytes;
};

// The largest datagram over IPv4.
inline constexpr size_t kDatagramBytesMax = 65'507;

// Sends and receives datagrams: each arrives whole or is lost; any may arrive twice, or late.
// Thread safety: one owner.
class DatagramSocket {
 public:
  virtual ~DatagramSocket() = default;
  // Returns datagrams that have arrived, perhaps not all of them; none if none has. Valid until the
  // next call.
  virtual std::span<const Datagram> Receive() = 0;
  // Hands the datagrams to the network; those that it has no room for are lost. Cost: one system
  // call for some tens of them; fewer calls if datagrams of one size go to one peer in a row.
  virtual void Send(std::span<const Datagram> datagrams) = 0;
  virtual Address address() const = 0;
};

// A stream that is ready. A stream that broke (was reset, or both sides finished) is reported as
// readable and writable whatever the caller asked for: the caller reads the error or removes the
// stream.
struct ReadyEvent {
  void* tag = nullptr;    // the tag given to Add()
  bool readable = false;  // Read or Accept would not return -EAGAIN (errors and ends included)
  bool writable = false;
};

// Waits for many streams, listeners and datagrams. Thread safety: one owner, but Wake() from any
// thread.
class Poller {
 public:
  virtual ~Poller() = default;
  virtual Status Add(Stream& stream, void* tag, bool want_read, bool want_write) = 0;
  virtual Status Change(Stream& stream, void* tag, bool want_read, bool want_write) = 0;
  virtual void Remove(Stream& stream) = 0;
  virtual Status Add(Listener& listener, void* tag) = 0;
  virtual void Remove(Listener& listener) = 0;
  virtual Status Add(DatagramSocket& socket, void* tag) = 0;
  virtual void Remove(DatagramSocket& socket) = 0;
  // Waits up to `timeout_ms` (0: not at all, -1: for ever) and returns the ready streams, listeners
  // and sockets; valid until the next Wait. A Wake() ends the wait; it is not reported as an event.
  virtual std::span<const ReadyEvent> Wait(int timeout_ms) = 0;
  virtual void Wake() = 0;
};

class Network {
 public:
  virtual ~Network() = default;
  //   kInvalidArgument  the address cannot be parsed
  //   kIo               the errno of socket, bind or listen
  virtual Result<std::unique_ptr<Listener>> Listen(const Address& address) = 0;
  // Connects. Real sockets wait until the connection is accepted or refused, up to `timeout_ms`
  // (-1: for as long as the system tries, which may be minutes).
  //   kInvalidArgument  the address cannot be parsed
  //   kIo               the errno; ETIMEDOUT: neither accepted nor refused in time
  virtual Result<std::unique_ptr<Stream>> Connect(const Address& address, int timeout_ms) = 0;
  // Receives datagrams at this address, and sends from it. Several sockets may have the same
  // address: they share the peers.
  //   as Listen; kInvalidArgument also for a unix socket
  virtual Result<std::unique_ptr<DatagramSocket>> BindDatagrams(const Address& address) = 0;
  // Exchanges datagrams with this peer alone; Datagram::peer is ignored.
  //   as BindDatagrams
  virtual Result<std::unique_ptr<DatagramSocket>> ConnectDatagrams(const Address& address) = 0;
  virtual std::unique_ptr<Poller> NewPoller() = 0;
};

// The network of this machine: sockets and epoll. TCP streams have TCP_NODELAY; a unix socket's
// stale file is replaced.
// Thread-safe; lives as long as the process.
Network& SocketNetwork();

}  // namespace skep
