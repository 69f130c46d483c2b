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
  bool packed = false;
};

// Commands in, replies out, whatever is spoken to the server. Thread safety: one owner.
class Session {
 public:
  virtual ~Session() = default;

  // Connects, logs in, chooses protocol and keyspace. False: *problem is a line for a person.
  virtual bool Connect(std::string* problem) = 0;
  // Whether there is a connection that the server has not closed, as far as is known.
  virtual bool IsConnected() = 0;

  // Runs a command; there is a connection. On an error there is none any more; whether the command
  // was executed, nobody knows.
  //   as ServerClient::Receive; kAborted: Ctrl-C, within an InterruptScope
  virtual Result<RespReply> Run(std::span<const std::string_view> args) = 0;
  // What more comes after a command that is answered for ever (IsStream).
  virtual Result<RespReply> Next() = 0;

  // Whether replies to it go on until the connection ends: SUBSCRIBE, MONITOR.
  static bool IsStream(std::string_view command);

  // "127.0.0.1:6379[2](TX)> ", or "not connected> ".
  virtual std::string Prompt() const = 0;
  virtual std::string address() const = 0;
  virtual bool in_transaction() const = 0;

  // Empty if the server does not tell.
  virtual const CommandDocs& docs() = 0;

  // What waits for replies and can be interrupted; null: nothing can.
  virtual ServerClient* interruptible() = 0;
};

// `on_push` is shown what the server says unasked (RESP3).
using OnPush = std::function<void(const RespReply& push)>;
std::unique_ptr<Session> MakeSession(const SessionOptions& options, OnPush on_push);

// "127.0.0.1:6379[2](TX)> ", with `mark` before "(TX)".
std::string PromptOf(const Session& session, bool is_connected, uint64_t keyspace,
                     std::string_view mark);

// While it lives, Ctrl-C ends the wait for a reply of the session's connection, also if it comes
// between two replies, instead of ending the process; if it is interruptible. One at a time; the
// session must be connected.
class InterruptScope {
 public:
  explicit InterruptScope(Session& session);
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope();

  // The client is gone.
  static void Forget();

 private:
  bool is_on_;
  struct sigaction before_;
};

}  // namespace skep::cli
