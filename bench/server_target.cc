#include "bench/server_target.h"

#include <fmt/format.h>

#include <utility>

#include "base/network_address.h"
#include "bench/resp_pipeline.h"
#include "bench/stream_connection.h"
#include "wire/resp_reply.h"

namespace skep::bench {
namespace {

std::string_view FirstLine(std::string_view reply) { return reply.substr(0, reply.find('\r')); }

class ServerSession final : public YcsbSession {
 public:
  ServerSession(StreamConnection connection, const ValuePool& values)
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

  // Reads and judges the replies to one operation. The first wrong reply is its error.
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

  // RESP2 sends pairs as a flat array.
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

  RespPipeline pipeline_;
  const ValuePool& values_;
  const std::string value_head_;  // beginning of a right reply to a read
  std::string bound_;             // scratch
};

}  // namespace

Result<std::unique_ptr<YcsbSession>> ServerTarget::Connect() {
  auto connection = StreamConnection::Connect(AddressOf(host_, port_));
  if (!connection) return Fail(connection.error());
  return std::make_unique<ServerSession>(std::move(*connection), values_);
}

Result<Footprint> ServerTarget::Measure() {
  auto connection = StreamConnection::Connect(AddressOf(host_, port_));
  if (!connection) return Fail(connection.error());
  RespPipeline pipeline(std::move(*connection));
  AppendCommand(pipeline.out(), {"INFO", "memory"});
  AppendCommand(pipeline.out(), {"DBSIZE"});
  auto info = pipeline.NextReply();
  if (!info) return Fail(info.error());
  const std::optional<uint64_t> used = InfoNumber(*info, "used_memory");
  Footprint footprint = {.bytes_per_item = std::nullopt,
                         .rss_bytes = InfoNumber(*info, "used_memory_rss")};
  const auto size = pipeline.NextReply();
  if (!size) return Fail(size.error());
  const int64_t items = (*size)[0] == ':' ? HeadNumber(*size) : 0;
  if (used && items > 0) {
    footprint.bytes_per_item = static_cast<double>(*used) / static_cast<double>(items);
  }
  return footprint;
}

}  // namespace skep::bench
