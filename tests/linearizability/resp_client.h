// resp_client.h: a client of the checker's tests for a server that speaks RESP.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/network.h"
#include "tests/linearizability/kv_client.h"
#include "tests/linearizability/resp_steps.h"
#include "wire/resp_reply.h"

namespace skep::linearizability {

// One connection, one command at a time. Thread safety: one owner.
class RespConnection {
 public:
  static constexpr int kReplyTimeoutMs = 30'000;

  // If the connection cannot be made, no command is answered.
  RespConnection(Network& network, const Address& address);
  ~RespConnection();

  // Sends a command and waits for its reply; nullopt if none came (the connection broke, or
  // kReplyTimeoutMs passed). No later command is answered then.
  std::optional<RespReply> Ask(std::span<const std::string_view> args);
  std::optional<RespReply> Ask(std::initializer_list<std::string_view> args) {
    return Ask(std::span(args.begin(), args.size()));
  }

 private:
  bool Send(std::string_view bytes);
  bool Receive();
  bool WaitFor(bool readable);
  void Break();

  std::unique_ptr<Poller> poller_;
  std::unique_ptr<Stream> stream_;  // null: the connection is broken
  RespReplyParser parser_;
  std::string received_;
};

// Steps that go together are one command (resp_steps.h). Parts, and steps that need watched keys to
// be unchanged, are a transaction: MULTI, a command for each part, EXEC. Every other unlimited scan
// is KSCAN in chunks of two; every other delete of everything is FLUSHDB.
class RespClient final : public KvClient {
 public:
  RespClient(Network& network, const Address& address) : connection_(network, address) {}

  // Supports watches as a server has them: EXEC needs all watches that the client has begun.
  bool Supports(const Operation& operation) const override;
  Reply Perform(Operation& operation) override;

 private:
  std::optional<RespReply> Ask(const std::vector<std::string>& words);
  Reply PerformAlone(Operation& operation);
  Reply DeleteAll(Step& step);
  Reply ScanInChunks(Step& step);
  Reply Transaction(Operation& operation);
  Reply ReadParts(const RespReply& reply, std::span<const RespSteps> parts, Operation& operation);

  RespConnection connection_;
  uint64_t asked_ = 0;
  uint64_t scans_ = 0;
  uint64_t clears_ = 0;  // range deletes of everything
};

}  // namespace skep::linearizability
