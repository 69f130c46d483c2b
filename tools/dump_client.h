// dump_client.h: skep-dump's side of a connection: commands out, replies in, some of them on their
// way.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "bench/resp_pipeline.h"
#include "skep/status.h"
#include "wire/resp_reply.h"

namespace skep {

struct DumpServer {
  std::string host = "127.0.0.1";
  uint16_t port = 6379;
  std::string password;  // empty: none
};

// Thread safety: one owner. After an error of the connection it is of no use any more.
class DumpClient {
 public:
  // Connects and logs in. On an error *problem is a line for a person.
  static Result<DumpClient> Connect(const DumpServer& server, std::string* problem);

  // A command that is sent with the next reply that is waited for.
  void Send(std::initializer_list<std::string_view> args) {
    Send(std::span(args.begin(), args.size()));
  }
  void Send(std::span<const std::string_view> args);
  // The next reply.
  //   kUnavailable, kIo  the connection broke
  //   kCorrupt           it is not RESP
  Result<RespReply> Receive();
  // Nothing else is on its way.
  Result<RespReply> Call(std::initializer_list<std::string_view> args) {
    Send(args);
    return Receive();
  }

 private:
  explicit DumpClient(bench::RespPipeline pipeline) : pipeline_(std::move(pipeline)) {}

  bench::RespPipeline pipeline_;
};

}  // namespace skep
