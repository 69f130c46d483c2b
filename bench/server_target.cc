#include "bench/server_target.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "bench/tcp_connection.h"
#include "wire/resp_reply.h"

namespace skep::bench {
namespace {

// Commands out, replies in. Thread safety: none; one owner.
class Pipeline {
 public:
  explicit Pipeline(TcpConnection connection) : connection_(std::move(connection)) {}

  // Commands to send go here.
  std::string& out() { return out_; }

  // The next reply, as its bytes; valid until the next call. Sends whatever is still to be sent.
  Result<std::string_view> NextReply() {
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

 private:
  std::string_view unread() const { return std::string_view(in_).substr(start_); }

  void DropTaken() {
    start_ += std::exchange(taken_, 0);
    if (start_ == in_.size()) {
      in_.clear();
      start_ = 0;
    }
  }

  // Sends what can be sent, then waits for bytes, or for room to send more.
  Status Move() {
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

  TcpConnection connection_;
  RespReplyParser parser_;
  std::string out_;
  size_t sent_ = 0;  // of out_
  std::string in_;
  size_t start_ = 0;  // of in_: what is before it has been handed out
  size_t taken_ = 0;  // length of the reply handed out last
};

// The number in the first line of a reply, as in ":12\r\n" or "*3\r\n"; -1 if there is none.
int64_t HeadNumber(std::string_view reply) {
  int64_t number = -1;
  std::from_chars(reply.data() + 1, reply.data() + reply.size(), number);
  return number;
}

std::string_view FirstLine(std::string_view reply) { return reply.substr(0, reply.find('\r')); }

class ServerSession final : public YcsbSession {
 public:
  ServerSession(TcpConnection connection, const ValuePool& values)
      : pipeline_(std::move(connection)),
        values_(values),
        value_head_(fmt::format("${}\r\n", values.value_bytes())) {}

  Status Execute(const OpStream& stream, size_t first, size_t count, Tally& tally) override {
    for (size_t i = first; i < first + count; ++i) Append(stream.at(i), values_.at(i));
    for (size_t i = first; i < first + count; ++i) {
      if (Status status = CheckReplies(stream.at(i), tally); !status.ok()) return status;
    }
    return {};
  }

 private:
  void Append(const YcsbOp& op, std::string_view value) {
    std::string& out = pipeline_.out();
    switch (op.kind) {
      case OpKind::kRead:
        AppendCommand(out, {"GET", op.key});
        break;
      case OpKind::kUpdate:
      case OpKind::kInsert:
        AppendCommand(out, {"SET", op.key, value});
        break;
      case OpKind::kScan:
        AppendScan(op);
        break;
      case OpKind::kReadModifyWrite:
        AppendCommand(out, {"GET", op.key});
        AppendCommand(out, {"SET", op.key, value});
        break;
      case OpKind::kDelete:
        AppendCommand(out, {"DEL", op.key});
        break;
    }
  }

  void AppendScan(const YcsbOp& op) {
    bound_.assign(1, '[').append(op.key);
    const fmt::format_int limit(op.scan_items);
    AppendCommand(pipeline_.out(), {"KRANGE", bound_, "+", "LIMIT", "0",
                                    std::string_view(limit.data(), limit.size()), "WITHVALUES"});
  }

  // Reads and judges what belongs to one operation. Its first wrong reply is its error.
  Status CheckReplies(const YcsbOp& op, Tally& tally) {
    const bool reads = op.kind == OpKind::kRead || op.kind == OpKind::kReadModifyWrite;
    const bool writes = op.kind != OpKind::kRead && op.kind != OpKind::kScan;
    const uint64_t errors_before = tally.errors;
    if (reads) {
      const auto reply = pipeline_.NextReply();
      if (!reply) return reply.error();
      if (!reply->starts_with(value_head_)) CountWrong(*reply, tally);
    }
    if (op.kind == OpKind::kScan) {
      const auto reply = pipeline_.NextReply();
      if (!reply) return reply.error();
      CheckScan(op, *reply, tally);
    }
    if (writes) {
      const auto reply = pipeline_.NextReply();
      if (!reply) return reply.error();
      const std::string_view good = op.kind == OpKind::kDelete ? ":1" : "+";
      if (!reply->starts_with(good) && tally.errors == errors_before) CountWrong(*reply, tally);
    }
    return {};
  }

  // RESP2 shapes pairs as a flat array.
  void CheckScan(const YcsbOp& op, std::string_view reply, Tally& tally) {
    const int64_t elements = reply[0] == '*' ? HeadNumber(reply) : -1;
    if (elements < 2 || elements % 2 != 0 || elements / 2 > op.scan_items) {
      CountWrong(reply, tally);
    } else {
      tally.items_scanned += static_cast<uint64_t>(elements / 2);
    }
  }

  static void CountWrong(std::string_view reply, Tally& tally) {
    if (reply.starts_with("$-1")) return tally.CountError("a key that was inserted is absent");
    if (reply[0] == '-') return tally.CountError(FirstLine(reply));
    tally.CountError(fmt::format("an unexpected reply: {}", FirstLine(reply)));
  }

  Pipeline pipeline_;
  const ValuePool& values_;
  const std::string value_head_;  // what the reply to a read must start with
  std::string bound_;             // scratch
};

// The number behind "name:" in INFO's answer.
std::optional<uint64_t> InfoField(std::string_view info, std::string_view name) {
  const std::string line = fmt::format("\n{}:", name);
  const size_t at = info.find(line);
  if (at == std::string_view::npos) return std::nullopt;
  uint64_t number = 0;
  const char* digits = info.data() + at + line.size();
  if (std::from_chars(digits, info.data() + info.size(), number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

Result<std::unique_ptr<YcsbSession>> ServerTarget::Connect() {
  auto connection = TcpConnection::Connect(host_, port_);
  if (!connection) return Fail(connection.error());
  return std::make_unique<ServerSession>(std::move(*connection), values_);
}

Result<Footprint> ServerTarget::Measure() {
  auto connection = TcpConnection::Connect(host_, port_);
  if (!connection) return Fail(connection.error());
  Pipeline pipeline(std::move(*connection));
  AppendCommand(pipeline.out(), {"INFO", "memory"});
  AppendCommand(pipeline.out(), {"DBSIZE"});
  auto info = pipeline.NextReply();
  if (!info) return Fail(info.error());
  const std::optional<uint64_t> used = InfoField(*info, "used_memory");
  Footprint footprint = {.bytes_per_item = std::nullopt,
                         .rss_bytes = InfoField(*info, "used_memory_rss")};
  const auto size = pipeline.NextReply();
  if (!size) return Fail(size.error());
  const int64_t items = (*size)[0] == ':' ? HeadNumber(*size) : 0;
  if (used && items > 0) {
    footprint.bytes_per_item = static_cast<double>(*used) / static_cast<double>(items);
  }
  return footprint;
}

}  // namespace skep::bench
