// session.h: one person's connection: what it is in, what it was, and how it comes back.
#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "skep/status.h"
#include "tools/cli/command_docs.h"
#include "tools/server_client.h"
#include "wire/resp_reply.h"

namespace skep::cli {

struct SessionOptions {
  ServerAddress server;
  uint64_t keyspace = 0;
  bool resp3 = false;
};

// Thread safety: one owner.
class Session {
 public:
  using OnPush = std::function<void(const RespReply& push)>;

  // `on_push` is shown what the server says unasked (RESP3).
  Session(SessionOptions options, OnPush on_push)
      : options_(std::move(options)), on_push_(std::move(on_push)) {}

  // Connects, logs in, chooses protocol and keyspace. False: *problem is a line for a person.
  bool Connect(std::string* problem);
  // Whether there is a connection that the server has not closed.
  bool IsConnected() { return client_ != nullptr && client_->IsOpen(); }

  // Runs a command; there is a connection. On an error there is none any more; whether the command
  // was executed, nobody knows.
  //   as ServerClient::Receive; kAborted: Ctrl-C, within an InterruptScope
  Result<RespReply> Run(std::span<const std::string_view> args);
  // What more comes after a command that is answered for ever (IsStream).
  Result<RespReply> Next();

  // Whether replies to it go on until the connection ends: SUBSCRIBE, MONITOR.
  static bool IsStream(std::string_view command);

  // "127.0.0.1:6379[2](TX)> ", or "not connected> ".
  std::string Prompt() const;
  std::string address() const { return options_.server.ToString(); }
  bool in_transaction() const { return in_transaction_; }

  // Asked of the server once a connection, and a login; empty if it does not tell.
  const CommandDocs& docs();

 private:
  friend class InterruptScope;
  bool SetUp(std::string* problem);
  void SetUpLate();
  Result<RespReply> Receive();
  void Note(std::span<const std::string_view> args, const RespReply& reply);

  SessionOptions options_;
  const OnPush on_push_;
  std::unique_ptr<ServerClient> client_;
  bool is_set_up_ = false;  // protocol and keyspace are those of options_
  bool in_transaction_ = false;
  bool asked_docs_ = false;
  CommandDocs docs_;
};

// While it lives, Ctrl-C ends the wait for a reply of the session's connection, also if it comes
// between two replies, instead of ending the process. One at a time; the session must be connected.
class InterruptScope {
 public:
  explicit InterruptScope(Session& session);
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope();

 private:
  struct sigaction before_;
};

}  // namespace skep::cli
