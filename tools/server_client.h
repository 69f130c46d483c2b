// server_client.h: a tool's side of a connection: commands out, replies in, some of them on their
// way.
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
  std::string socket;    // the path of a unix socket; if there is one, host and port do not count
  std::string user;      // empty: that which has no name
  std::string password;  // empty: none

  // For people: "127.0.0.1:6379", or the path.
  std::string ToString() const;
  // To connect to.
  Address ToAddress() const { return socket.empty() ? ToString() : "unix:" + socket; }
};

// Thread safety: one owner, but for Interrupt(). After an error it is of no use any more.
class ServerClient {
 public:
  static constexpr int kPatienceMs = 60'000;

  // Connects and logs in, waiting at most kPatienceMs for each. On an error *problem is a line for
  // a person.
  static Result<std::unique_ptr<ServerClient>> Connect(const ServerAddress& server,
                                                       std::string* problem);

  // A command that is sent with the next reply that is waited for.
  void Send(std::initializer_list<std::string_view> args) {
    Send(std::span(args.begin(), args.size()));
  }
  void Send(std::span<const std::string_view> args);
  // The next reply.
  //   kUnavailable, kIo  the connection broke, or the server was silent for too long (ETIMEDOUT)
  //   kCorrupt           it is not RESP
  //   kAborted           Interrupt() was called
  Result<RespReply> Receive();
  // Nothing else is on its way.
  Result<RespReply> Call(std::initializer_list<std::string_view> args) {
    Send(args);
    return Receive();
  }

  // Whether the server has not closed the connection, as far as one knows without waiting. Nothing
  // is on its way.
  bool IsOpen();

  // How long a server may be silent that is waited for; negative: for ever. kPatienceMs, if not
  // set.
  void set_patience_ms(int patience_ms) { patience_ms_ = patience_ms; }

  // Ends a Receive() that waits, or the next one. From any thread, and from a signal's handler.
  void Interrupt();
  // That Interrupt() was called and nobody has waited since.
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
  size_t sent_ = 0;  // of out_
  std::string in_;
  size_t begin_ = 0;  // of in_: what is before it has been handed out
  bool waits_to_write_ = false;
  int patience_ms_ = kPatienceMs;
  std::atomic<bool> interrupted_{false};
};

}  // namespace skep
