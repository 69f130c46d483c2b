// resp_pipeline.h: a client's side of one connection: commands out, replies in, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bench/stream_connection.h"
#include "skep/status.h"
#include "wire/resp_reply.h"

namespace skep::bench {

// Thread safety: none; one owner.
class RespPipeline {
 public:
  explicit RespPipeline(StreamConnection connection) : connection_(std::move(connection)) {}

  // Commands to send go here (AppendCommand).
  std::string& out() { return out_; }

  // The next reply, as its bytes; valid until the next call. Sends whatever is still to be sent.
  //   kUnavailable, kIo  the connection broke
  //   kCorrupt           what the server sent is not RESP
  Result<std::string_view> NextReply();

 private:
  std::string_view unread() const { return std::string_view(in_).substr(start_); }
  void DropTaken();
  Status Move();

  StreamConnection connection_;
  RespReplyParser parser_;
  std::string out_;
  size_t sent_ = 0;  // of out_
  std::string in_;
  size_t start_ = 0;  // of in_: what is before it has been handed out
  size_t taken_ = 0;  // length of the reply handed out last
};

// The number in the first line of a reply, as in ":12\r\n" or "*3\r\n"; -1 if there is none.
int64_t HeadNumber(std::string_view reply);

// What is behind "name:" in INFO's answer, to the end of its line.
std::optional<std::string_view> InfoField(std::string_view info, std::string_view name);
// The same, if it begins with a number.
std::optional<uint64_t> InfoNumber(std::string_view info, std::string_view name);

}  // namespace skep::bench
