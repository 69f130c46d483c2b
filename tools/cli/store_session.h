// store_session.h: a session over the packed protocol, by a store that is a server's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/command.h"
#include "server/session.h"
#include "skep/store.h"
#include "tools/cli/session.h"
#include "tools/cli/store_commands.h"

namespace skep::cli {

class StoreSession final : public Session, private CommandHost {
 public:
  explicit StoreSession(SessionOptions options) : CommandHost(now_), options_(std::move(options)) {}

  bool Connect(std::string* problem) override;
  bool IsConnected() override { return store_ != nullptr; }
  // Runs a command as Session does, but nothing interrupts it: without an answer it ends by itself
  // after ConnectOptions::timeout_ms.
  Result<RespReply> Run(std::span<const std::string_view> args) override;
  //   kNotSupported  always: no command streams
  Result<RespReply> Next() override;
  std::string Prompt() const override;
  std::string address() const override { return options_.server.ToString(); }
  bool in_transaction() const override { return session_.transaction != nullptr; }
  const CommandDocs& docs() override;
  ServerClient* interruptible() override { return nullptr; }

 private:
  void Execute(skep::Session& session, Batch& batch,
               std::span<const PlannedCommand> commands) override;

  std::string Refusal(const StoreCommand& found, std::span<const std::string_view> args) const;
  void RunPlanned(const Call& call);
  void RunOwn(OwnCommand own, const Call& call);
  bool Answers(const Call& call);
  void Ping(const Call& call);
  void Save(const Call& call);
  void Select(const Call& call);
  void Pin(const Call& call);
  void CountKeys(const Call& call);
  RespReply TakeReply();

  SessionOptions options_;
  std::unique_ptr<Store> store_;
  Snapshot snapshot_;      // of the session's keyspace; invalid: reads see the present
  skep::Session session_;  // keyspace, transaction, and the reply as a server encodes it
  StoreNow now_;           // of the command being run
  Status failure_;         // the error that broke the command being run
  CommandDocs docs_;
};

}  // namespace skep::cli
