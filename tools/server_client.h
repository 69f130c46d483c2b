// server_client.h: a tool's side of a connection: sends commands and receives replies, with several
// under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/network.h"
#include "skep/status.h"
#include "wire/resp_reply.h"

namespace skep {

struct ServerAddress {
  std::string host = "127.0.0.1";  // a name or a number
  uint16_t port = 6379;
  std::string socket;    // path of a unix socket; if set, host and port are ignored
  std::string user;      // empty: the default user
  std::string password;  // empty: none

  // Returns the server's name for people: "127.0.0.1:6379", or the path.
  std::string ToString() const;
  // Returns the address to connect to.
  Address ToAddress() const { return socket.empty() ? ToString() : "unix:" + socket; }
};

// Thread safety: one owner, except Interrupt(). Unusable after an error.
class ServerClient {
 public:
  static constexpr int kPatienceMs = 60'000;

  // Connects and logs in, waiting at most kPatienceMs for each. On an error *problem is a line for
  // people.
  static Result<std::unique_ptr<ServerClient>> Connect(const ServerAddress& server,
                                                       std::string* problem);

  // Queues a command, which is sent by the next wait for a reply.
  void Send(std::initializer_list<std::string_view> args) {
    Send(std::span(args.begin(), args.size()));
  }
  void Send(std::span<const std::string_view> args);
  // Waits for the next reply.
  //   kUnavailable, kIo  the connection broke, or the server was silent for too long (ETIMEDOUT)
  //   kCorrupt           the bytes are not RESP
  //   kAborted           Interrupt() was called
  Result<RespReply> Receive();
  // Sends a command and waits for its reply. No other command may be under way.
  Result<RespReply> Call(std::initializer_list<std::string_view> args) {
    Send(args);
    return Receive();
  }

  // Returns whether the server has not closed the connection, as far as can be known without
  // waiting. No command may be under way.
  bool IsOpen();

  // Sets how long a wait tolerates a silent server; negative: for ever. The initial value is
  // kPatienceMs.
  void set_patience_ms(int patience_ms) { patience_ms_ = patience_ms; }

  // Ends a Receive() that waits, or the next one. May be called from any thread, and from a signal
  // handler.
  void Interrupt();
  // Forgets an Interrupt() that has not ended a wait yet.
  void ForgetInterrupt() { interrupted_.store(false, std::memory_order_relaxed); }

 private:
  explicit ServerClient(std::unique_ptr<Stream> stream);

  Status Login(const ServerAddress& server, std::string* problem);
  Status Move();
  Status Wait(bool wants_write);
  Status Read();

  std::unique_ptr<Poller> poller_;
  std::unique_ptr<Stream> stream_;
  RespReplyParser parser_;
  std::string out_;
  size_t sent_ = 0;  // how much of out_ is sent
  std::string in_;
  size_t begin_ = 0;  // the bytes of in_ before it are handed out
  bool waits_to_write_ = false;
  int patience_ms_ = kPatienceMs;
  std::atomic<bool> interrupted_{false};
};

}  // namespace skep
