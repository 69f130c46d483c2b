#include "rma/message_stream.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace skep::rma {
namespace {

// A buffer begins so small, doubles when a read has filled it, and is kept up to the last size.
constexpr size_t kBufferBytesMin = size_t{16} << 10;
constexpr size_t kBufferBytesUsual = size_t{256} << 10;
constexpr size_t kBufferBytesKept = size_t{4} << 20;

struct MessageHeader {
  uint32_t bytes;
  uint8_t kind;
  uint8_t code;
  uint16_t zero;
  uint64_t token;
};
static_assert(sizeof(MessageHeader) == MessageStream::kHeaderBytes);
static_assert(std::endian::native == std::endian::little);

Status StreamError(ssize_t error) {
  return Status(Code::kIo, "the connection broke", static_cast<uint64_t>(-error));
}

bool IsValid(const MessageHeader& header) {
  const auto kind = static_cast<MessageKind>(header.kind);
  if (kind < MessageKind::kHello || kind > MessageKind::kPosted || header.zero != 0) return false;
  if (header.code == 0) return true;
  const bool is_code = header.code <= static_cast<uint8_t>(Code::kCorrupt);
  return kind == MessageKind::kReply && is_code && header.bytes == 0;
}

}  // namespace

char* MessageStream::Add(const Message& message, size_t body_bytes) {
  SKEP_DCHECK(body_bytes <= std::numeric_limits<uint32_t>::max());
  const MessageHeader header = {.bytes = static_cast<uint32_t>(body_bytes),
                                .kind = static_cast<uint8_t>(message.kind),
                                .code = static_cast<uint8_t>(message.code),
                                .zero = 0,
                                .token = message.token};
  const size_t at = out_.size();
  const size_t end = at + kHeaderBytes + body_bytes;
  out_.resize_and_overwrite(end, [&](char* bytes, size_t) {
    std::memcpy(bytes + at, &header, sizeof(header));
    return end;
  });
  return out_.data() + at + kHeaderBytes;
}

void MessageStream::Add(const Message& message) {
  char* const body = Add(message, message.body.size());
  if (!message.body.empty()) std::memcpy(body, message.body.data(), message.body.size());
}

Status MessageStream::Send() {
  if (unsent_bytes() == 0) return {};
  const ssize_t taken = stream_.Write(std::string_view(out_).substr(sent_));
  if (taken == -EAGAIN) return {};
  if (taken < 0) return StreamError(taken);
  sent_ += static_cast<size_t>(taken);
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
    if (out_.capacity() > kBufferBytesKept) out_.shrink_to_fit();
  } else if (sent_ > out_.size() / 2) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  return {};
}

// Room for at least one byte.
void MessageStream::MakeRoom() {
  const size_t rest = end_ - begin_;
  const bool is_filled = end_ == in_.size();
  if (begin_ > 0) std::copy(in_.begin() + begin_, in_.begin() + end_, in_.begin());
  begin_ = 0;
  end_ = rest;
  if (rest == 0 && in_.size() > kBufferBytesKept) std::vector<char>().swap(in_);
  const bool is_short = rest == in_.size() || (is_filled && in_.size() < kBufferBytesUsual);
  if (is_short) in_.resize(std::max(kBufferBytesMin, 2 * in_.size()));
}

Result<bool> MessageStream::Receive() {
  MakeRoom();
  const ssize_t got = stream_.Read(in_.data() + end_, in_.size() - end_);
  if (got == -EAGAIN) return true;
  if (got < 0) return Fail(StreamError(got));
  end_ += static_cast<size_t>(got);
  return got > 0;
}

Result<std::optional<Message>> MessageStream::Next() {
  const std::string_view rest(in_.data() + begin_, end_ - begin_);
  if (rest.size() < kHeaderBytes) return std::nullopt;
  MessageHeader header;
  std::memcpy(&header, rest.data(), sizeof(header));
  if (!IsValid(header)) return Fail(Code::kCorrupt, "the peer sent what is no message");
  const auto kind = static_cast<MessageKind>(header.kind);
  if (header.bytes > LimitOf(kind)) {
    return Fail(Code::kCorrupt, "the peer sent a message that is too long");
  }
  if (rest.size() - kHeaderBytes < header.bytes) return std::nullopt;
  begin_ += kHeaderBytes + header.bytes;
  return Message{.kind = kind,
                 .code = static_cast<Code>(header.code),
                 .token = header.token,
                 .body = rest.substr(kHeaderBytes, header.bytes)};
}

size_t MessageStream::LimitOf(MessageKind kind) const {
  switch (kind) {
    case MessageKind::kHello:
      return limits_.hello_bytes_max;
    case MessageKind::kRefuse:
      return 0;
    case MessageKind::kCall:
    case MessageKind::kReply:
      return limits_.call_bytes_max;
    case MessageKind::kPost:
    case MessageKind::kPosted:
      return limits_.post_bytes_max;
  }
  return 0;
}

}  // namespace skep::rma
