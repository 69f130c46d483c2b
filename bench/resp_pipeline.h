// resp_pipeline.h: a client's side of one connection: sends commands and receives replies, in
// order.
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

  // The buffer to which commands are appended (AppendCommand).
  std::string& out() { return out_; }

  // Returns the bytes of the next reply; valid until the next call. Sends all pending commands
  // first.
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
  size_t sent_ = 0;  // how much of out_ is sent
  std::string in_;
  size_t start_ = 0;  // the bytes of in_ before it are handed out
  size_t taken_ = 0;  // length of the reply handed out last
};

// Returns the number in the first line of a reply, as in ":12\r\n" or "*3\r\n"; -1 if there is
// none.
int64_t HeadNumber(std::string_view reply);

// Returns what is behind "name:" in INFO's answer, to the end of its line.
std::optional<std::string_view> InfoField(std::string_view info, std::string_view name);
// Returns the number at the beginning of that field.
std::optional<uint64_t> InfoNumber(std::string_view info, std::string_view name);

}  // namespace skep::bench
