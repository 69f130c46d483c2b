// resp_session.h: a session in RESP: with Skep, or any server of the Redis protocol.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tools/cli/session.h"

namespace skep::cli {

class RespSession final : public Session {
 public:
  RespSession(SessionOptions options, OnPush on_push)
      : options_(std::move(options)), on_push_(std::move(on_push)) {}

  bool Connect(std::string* problem) override;
  bool IsConnected() override { return client_ != nullptr && client_->IsOpen(); }
  Result<RespReply> Run(std::span<const std::string_view> args) override;
  Result<RespReply> Next() override;
  std::string Prompt() const override;
  std::string address() const override { return options_.server.ToString(); }
  bool in_transaction() const override { return in_transaction_; }
  // Asks the server once a connection, and once a login.
  const CommandDocs& docs() override;
  ServerClient* interruptible() override { return client_.get(); }

 private:
  bool SetUp(std::string* problem);
  void SetUpLate();
  Result<RespReply> Receive();
  void Note(std::span<const std::string_view> args, const RespReply& reply);

  SessionOptions options_;
  const OnPush on_push_;
  std::unique_ptr<ServerClient> client_;
  bool is_set_up_ = false;  // whether protocol and keyspace are those of options_
  bool in_transaction_ = false;
  bool asked_docs_ = false;
  CommandDocs docs_;
};

}  // namespace skep::cli
