// message_stream.h: messages over a stream of bytes.
//
//   offset  size  field
//        0     4  bytes   of the body
//        4     1  kind    MessageKind
//        5     1  code    of a kReply: kOk, or why it has no body; of others 0
//        6     2  (zero)
//        8     8  token   of a kCall and its kReply, of a kPost and its kPosted; else 0
//       16        body    no alignment                                        all little-endian
//
// What is sent in one turn of an event loop goes out in one write; what has come is read in one
// read, and the messages in it are views of the buffer. A buffer grows with the bytes that have
// come, not with what a message says of its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/network.h"
#include "skep/status.h"

namespace skep::rma {

enum class MessageKind : uint8_t {
  kHello = 1,  // hello.h: the first one of either side
  kRefuse,     // instead of a hello: the endpoint has as many peers as it may
  kCall,
  kReply,
  kPost,    // post_message.h
  kPosted,  // the bytes that were read, one operation's after the other's
};

struct Message {
  MessageKind kind = MessageKind::kHello;
  Code code = Code::kOk;
  uint64_t token = 0;
  std::string_view body = {};
};

// How long a body may be that the other side sends.
struct MessageLimits {
  size_t hello_bytes_max = 0;
  size_t call_bytes_max = 0;  // of a kReply too
  size_t post_bytes_max = 0;  // of a kPosted too
};

// Owner: one thread.
class MessageStream {
 public:
  static constexpr size_t kHeaderBytes = 16;

  // The stream outlives it.
  explicit MessageStream(Stream& stream) : stream_(stream) {}

  // Of the messages that Next returns from now on.
  void set_limits(const MessageLimits& limits) { limits_ = limits; }

  // Adds a message to what is to be sent, and returns where its body of `body_bytes` goes, which
  // the caller writes before it calls anything else.
  char* Add(const Message& message, size_t body_bytes);
  // The same with its body.
  void Add(const Message& message);
  size_t unsent_bytes() const { return out_.size() - sent_; }
  // Writes once what is to be sent, or as much of it as the stream takes.
  //   kIo  the errno: the stream is broken
  Status Send();

  // Reads once. False: the other side sends no more. What Next returned is invalid then.
  //   kIo  the errno: the stream is broken
  Result<bool> Receive();
  // The next message that has come whole; nothing if there is none. Valid until Receive.
  //   kCorrupt  what has come is no message, or one that is longer than the limit
  Result<std::optional<Message>> Next();

 private:
  size_t LimitOf(MessageKind kind) const;
  void MakeRoom();

  Stream& stream_;
  MessageLimits limits_;
  std::string out_;
  size_t sent_ = 0;  // of out_
  // Bytes [begin_, end_) of in_ have come and are no message yet that Next has returned.
  std::vector<char> in_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace skep::rma
