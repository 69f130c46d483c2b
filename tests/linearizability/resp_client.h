// resp_client.h: a server that speaks RESP as a client of the checker's tests.
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
#include "wire/resp_reply.h"

namespace skep::linearizability {

// One connection, one command at a time. Thread safety: one owner.
class RespConnection {
 public:
  static constexpr int kReplyTimeoutMs = 30'000;

  // A connection that cannot be made answers nothing.
  RespConnection(Network& network, const Address& address);
  ~RespConnection();

  // Sends a command and waits for its reply; nullopt if none came (the connection broke, or
  // kReplyTimeoutMs passed). Then nothing is answered any more.
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
  std::unique_ptr<Stream> stream_;  // null once broken
  RespReplyParser parser_;
  std::string received_;
};

// Steps as commands:
//
//   get put insert update delete   GET, SET, SETNX, SET XX, DEL
//   add rename                     INCRBY, RENAME
//   scan                           KRANGE, and every other unlimited one KSCAN in chunks of two
//   count delete-range             KCOUNT, KDELRANGE; every other one of all keys FLUSHDB
//   puts                           MSET; with the condition that all keys are absent, MSETNX
//   gets                           MGET
//   a get and a put of one key     SET GET
class RespClient final : public KvClient {
 public:
  RespClient(Network& network, const Address& address) : connection_(network, address) {}

  bool Supports(const Operation& operation) const override;
  Reply Perform(Operation& operation) override;

 private:
  Reply PerformPoint(Operation& operation);
  Reply Add(Operation& operation);
  Reply Rename(Step& step);
  Reply PerformRange(Step& step);
  Reply DeleteAll(Step& step);
  Reply ScanInChunks(Step& step);
  Reply PerformBatch(Operation& operation);
  Reply PutIfAllAbsent(Operation& operation);
  Reply SetAndGet(Operation& operation);

  RespConnection connection_;
  uint64_t scans_ = 0;
  uint64_t clears_ = 0;  // range deletes of everything asked
};

}  // namespace skep::linearizability
