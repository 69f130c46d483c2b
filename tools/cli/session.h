// session.h: a person's connection to a server: its state, and how to connect again.
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

// Runs commands, by either protocol. Thread safety: one owner.
class Session {
 public:
  virtual ~Session() = default;

  // Connects, logs in, chooses protocol and keyspace. On failure returns false; *problem is a line
  // for people.
  virtual bool Connect(std::string* problem) = 0;
  // Returns whether there is a connection that, as far as is known, the server has not closed.
  virtual bool IsConnected() = 0;

  // Runs a command on the connection, which must exist. On an error the connection is gone, and it
  // is unknown whether the command was executed.
  //   as ServerClient::Receive; kAborted: Ctrl-C, within an InterruptScope
  virtual Result<RespReply> Run(std::span<const std::string_view> args) = 0;
  // Returns the next reply to a command whose replies do not end (IsStream).
  virtual Result<RespReply> Next() = 0;

  // Returns whether replies to the command go on until the connection ends: SUBSCRIBE, MONITOR.
  static bool IsStream(std::string_view command);

  // Returns "127.0.0.1:6379[2](TX)> ", or "not connected> ".
  virtual std::string Prompt() const = 0;
  virtual std::string address() const = 0;
  virtual bool in_transaction() const = 0;

  // Returns the server's descriptions of its commands; none if the server does not have them.
  virtual const CommandDocs& docs() = 0;

  // Returns the client whose wait for replies can be interrupted; null: there is none.
  virtual ServerClient* interruptible() = 0;
};

// `on_push` receives messages that the server sends unasked (RESP3).
using OnPush = std::function<void(const RespReply& push)>;
std::unique_ptr<Session> MakeSession(const SessionOptions& options, OnPush on_push);

// Returns "127.0.0.1:6379[2](TX)> ", with `mark` before "(TX)".
std::string PromptOf(const Session& session, bool is_connected, uint64_t keyspace,
                     std::string_view mark);

// While it lives, Ctrl-C ends the wait for a reply of the session's connection, also if it comes
// between two replies, instead of ending the process. Without an interruptible client it has no
// effect. One at a time; the session must be connected.
class InterruptScope {
 public:
  explicit InterruptScope(Session& session);
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope();

  // Called when the client is destroyed.
  static void Forget();

 private:
  bool is_on_;
  struct sigaction before_;
};

}  // namespace skep::cli
