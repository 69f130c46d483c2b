// echo.h: the smallest server and client that use everything a Network has, for tests of networks
// and of the simulation. Both are driven by turns and never block.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/network.h"
#include "base/random.h"

namespace skep {

// Sends back the bytes that it receives. Reads no more from a client while it still owes bytes to
// it, so that a slow client fills its own buffers only. A client that finished sending is closed
// once it has everything back.
class EchoServer {
 public:
  EchoServer(Network& network, std::unique_ptr<Listener> listener);

  // Accepts, reads and writes what is ready. Returns whether anything was ready.
  bool Turn(int timeout_ms);
  size_t sessions() const { return sessions_.size(); }
  uint64_t bytes_echoed() const { return bytes_echoed_; }

 private:
  struct Session {
    uint64_t id;
    std::unique_ptr<Stream> stream;
    std::string owed;
    bool finished = false;
  };

  void AcceptAll();
  // Returns false if the session is over.
  bool Serve(Session& session);
  bool Receive(Session& session);
  bool Send(Session& session);

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Poller> poller_;
  std::map<uint64_t, std::unique_ptr<Session>> sessions_;  // by id: see simulation.h, S4
  uint64_t last_session_ = 0;
  uint64_t bytes_echoed_ = 0;
};

// Sends random bytes in random pieces and keeps the bytes that come back, until the end.
class EchoClient {
 public:
  EchoClient(std::unique_ptr<Stream> stream, Random& random, size_t bytes);

  // Does one write and one read, at most. Returns whether any byte or the end moved.
  bool Move();
  // Returns whether the end or an error was read.
  bool done() const { return done_; }
  // Returns the errno that ended the client; 0 if all went well.
  int error() const { return error_; }
  const std::string& sent() const { return sent_; }
  const std::string& received() const { return received_; }
  Stream& stream() { return *stream_; }

 private:
  bool WriteSome();
  bool ReadSome();
  bool End(int error);

  std::unique_ptr<Stream> stream_;
  Random& random_;
  std::string sent_;
  size_t taken_ = 0;  // number of bytes of sent_ that the stream took
  bool finished_ = false;
  std::string received_;
  bool done_ = false;
  int error_ = 0;
};

}  // namespace skep
