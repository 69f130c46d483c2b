#include "bench/resp_pipeline.h"

#include <fmt/format.h>

#include <charconv>

namespace skep::bench {

Result<std::string_view> RespPipeline::NextReply() {
  DropTaken();
  for (;;) {
    switch (parser_.Skip(unread())) {
      case RespReplyParser::Event::kReply:
        taken_ = parser_.consumed();
        return unread().substr(0, taken_);
      case RespReplyParser::Event::kError:
        return Fail(Code::kCorrupt, "the server's reply is not RESP");
      case RespReplyParser::Event::kNeedMore:
        break;
    }
    if (Status status = Move(); !status.ok()) return Fail(status);
  }
}

void RespPipeline::DropTaken() {
  start_ += std::exchange(taken_, 0);
  if (start_ == in_.size()) {
    in_.clear();
    start_ = 0;
  }
}

// Sends what can be sent, then waits for bytes, or for room to send more.
Status RespPipeline::Move() {
  if (sent_ < out_.size()) {
    const Result<size_t> sent = connection_.Send(std::string_view(out_).substr(sent_));
    if (!sent) return sent.error();
    sent_ += *sent;
  }
  if (sent_ < out_.size()) {
    const Result<bool> readable = connection_.Wait(/*want_send=*/true);
    if (!readable) return readable.error();
    if (!*readable) return {};
  } else {
    out_.clear();
    sent_ = 0;
  }
  in_.erase(0, std::exchange(start_, 0));
  return connection_.Receive(in_);
}

int64_t HeadNumber(std::string_view reply) {
  int64_t number = -1;
  std::from_chars(reply.data() + 1, reply.data() + reply.size(), number);
  return number;
}

std::optional<std::string_view> InfoField(std::string_view info, std::string_view name) {
  const std::string line = fmt::format("\n{}:", name);
  const size_t at = info.find(line);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = info.substr(at + line.size());
  return rest.substr(0, rest.find('\r'));
}

std::optional<uint64_t> InfoNumber(std::string_view info, std::string_view name) {
  const auto field = InfoField(info, name);
  uint64_t number = 0;
  if (!field ||
      std::from_chars(field->data(), field->data() + field->size(), number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace skep::bench
