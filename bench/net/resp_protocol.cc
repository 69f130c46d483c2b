#include "bench/net/resp_protocol.h"

#include <fmt/format.h>

#include "base/decimal.h"
#include "bench/net/answer_line.h"

namespace skep::bench {
namespace {

constexpr std::string_view kEnd = "\r\n";
constexpr std::string_view kOk = "+OK\r\n";
constexpr std::string_view kSetName = "$10\r\nskep-bench\r\n";  // the sorted set

// Appends "*count", and the name of the command.
void AppendHead(uint32_t count, std::string_view name, std::string& out) {
  const fmt::format_int elements(count);
  const fmt::format_int bytes(name.size());
  out.append("*").append(elements.data(), elements.size()).append("\r\n$");
  out.append(bytes.data(), bytes.size()).append(kEnd).append(name).append(kEnd);
}

void AppendBulk(std::string_view head, std::string_view bytes, std::string& out) {
  out.append(head).append(bytes).append(kEnd);
}

void AppendNumber(uint32_t number, std::string& out) {
  const fmt::format_int digits(number);
  const fmt::format_int bytes(digits.size());
  out.append("$").append(bytes.data(), bytes.size()).append(kEnd);
  out.append(digits.data(), digits.size()).append(kEnd);
}

std::string_view LineOf(std::string_view reply) { return reply.substr(0, reply.find('\r')); }

void CountAbsent(const NetAsked& asked, NetTally& tally) {
  if (asked.kind == OpKind::kRead) {
    ++tally.misses;
  } else {
    tally.CountError("a key of a scan is absent");
  }
}

}  // namespace

RespProtocol::Bulk::Bulk(size_t size) : head(fmt::format("${}\r\n", size)), bytes(size) {}

RespProtocol::RespProtocol(const NetFormat& format)
    : scan_command_(format.scan_command),
      key_(format.key_bytes),
      value_(format.value_bytes),
      bound_(format.key_bytes + 1),
      member_(format.key_bytes + format.value_bytes) {}

bool RespProtocol::Does(OpKind kind) const {
  if (scan_command_ != ScanCommand::kZrangebylex) return kind != OpKind::kDelete;
  return kind == OpKind::kScan || kind == OpKind::kUpdate || kind == OpKind::kInsert;
}

void RespProtocol::Encode(const NetAsked& asked, const OpStream& stream, size_t first,
                          const ValuePool& values, std::string& out) {
  if (asked.kind == OpKind::kRead) return EncodeReads(asked, stream, first, out);
  if (asked.kind != OpKind::kScan) return EncodeWrites(asked, stream, first, values, out);
  if (scan_command_ == ScanCommand::kMget) {
    return EncodeMget(asked.items, stream, first, out);
  }
  EncodeScan(asked, stream.at(first).key, out);
}

void RespProtocol::EncodeReads(const NetAsked& asked, const OpStream& stream, size_t first,
                               std::string& out) {
  if (asked.count > 1) return EncodeMget(asked.count, stream, first, out);
  out.append("*2\r\n$3\r\nGET\r\n");
  AppendBulk(key_.head, stream.at(first).key, out);
}

// At the end of the stream it goes on with the stream's beginning.
void RespProtocol::EncodeMget(uint32_t count, const OpStream& stream, size_t first,
                              std::string& out) {
  AppendHead(count + 1, "MGET", out);
  for (size_t i = first; i < first + count; ++i) {
    AppendBulk(key_.head, stream.at(i % stream.size()).key, out);
  }
}

void RespProtocol::EncodeWrites(const NetAsked& asked, const OpStream& stream, size_t first,
                                const ValuePool& values, std::string& out) {
  if (scan_command_ == ScanCommand::kZrangebylex) {
    return EncodeAdds(asked, stream, first, values, out);
  }
  if (asked.count == 1) {
    out.append("*3\r\n$3\r\nSET\r\n");
  } else {
    AppendHead(2 * asked.count + 1, "MSET", out);
  }
  for (size_t i = first; i < first + asked.count; ++i) {
    AppendBulk(key_.head, stream.at(i).key, out);
    AppendBulk(value_.head, values.at(i), out);
  }
}

void RespProtocol::EncodeAdds(const NetAsked& asked, const OpStream& stream, size_t first,
                              const ValuePool& values, std::string& out) {
  AppendHead(2 * asked.count + 2, "ZADD", out);
  out.append(kSetName);
  for (size_t i = first; i < first + asked.count; ++i) {
    out.append("$1\r\n0\r\n").append(member_.head);
    out.append(stream.at(i).key).append(values.at(i)).append(kEnd);
  }
}

void RespProtocol::EncodeScan(const NetAsked& asked, std::string_view key, std::string& out) {
  const bool is_krange = scan_command_ == ScanCommand::kKrange;
  if (is_krange) {
    AppendHead(7, "KRANGE", out);
  } else {
    AppendHead(7, "ZRANGEBYLEX", out);
    out.append(kSetName);
  }
  out.append(bound_.head).append("[").append(key).append(kEnd);
  out.append("$1\r\n+\r\n$5\r\nLIMIT\r\n$1\r\n0\r\n");
  AppendNumber(asked.items, out);
  if (is_krange) out.append("$10\r\nWITHVALUES\r\n");
}

bool RespProtocol::IsArray(const NetAsked& asked) const {
  return asked.kind == OpKind::kScan || (asked.kind == OpKind::kRead && asked.count > 1);
}

NetProtocol::Event RespProtocol::Read(std::string_view input, const NetAsked& asked,
                                      size_t& consumed, NetTally& tally) {
  consumed = 0;
  if (!IsArray(asked)) return ReadSingle(input, asked, consumed, tally);
  if (!is_open_) {
    const Event event = ReadHead(input, asked, consumed, tally);
    if (event != Event::kAnswer || !is_open_) return event;
  }
  return ReadElements(input, asked, consumed, tally);
}

// Reads the answer to one GET, SET, MSET or ZADD.
NetProtocol::Event RespProtocol::ReadSingle(std::string_view input, const NetAsked& asked,
                                            size_t& consumed, NetTally& tally) {
  if (asked.kind == OpKind::kRead) return ReadElement(input, asked, consumed, tally);
  if (!input.starts_with(kOk)) {
    if (kOk.starts_with(input)) return Event::kNeedMore;
    return ReadUnexpected(input, asked, consumed, tally);
  }
  consumed = kOk.size();
  tally.stored += asked.count;
  return Event::kAnswer;
}

// Returns kAnswer when the head was read: is_open_ is then true, or an error took the array's
// place.
NetProtocol::Event RespProtocol::ReadHead(std::string_view input, const NetAsked& asked,
                                          size_t& consumed, NetTally& tally) {
  const auto line = FirstLine(input);
  if (!line) return input.size() > kAnswerLineBytesMax ? Event::kCorrupt : Event::kNeedMore;
  consumed = line->size() + kEnd.size();
  if (line->starts_with('-')) {
    tally.CountError(line->substr(1), asked.count);
    return Event::kAnswer;
  }
  const auto elements = line->starts_with('*') ? ParseInt64(line->substr(1)) : std::nullopt;
  return elements && Open(*elements, asked, tally) ? Event::kAnswer : Event::kCorrupt;
}

// Returns false if such an array cannot answer the request.
bool RespProtocol::Open(int64_t elements, const NetAsked& asked, NetTally& tally) {
  const bool is_scan = asked.kind == OpKind::kScan;
  const int64_t per_item = is_scan && scan_command_ == ScanCommand::kKrange ? 2 : 1;
  const int64_t wanted = per_item * (is_scan ? asked.items : asked.count);
  const bool may_be_fewer = is_scan && scan_command_ != ScanCommand::kMget;
  if (elements < (may_be_fewer ? 0 : wanted) || elements > wanted || elements % per_item != 0) {
    return false;
  }
  left_ = static_cast<uint32_t>(elements);
  is_open_ = true;
  if (!is_scan) return true;
  ++tally.scans;
  tally.items += static_cast<uint64_t>(elements / per_item);
  if (elements == 0) tally.CountError("a scan from a key that was inserted is empty");
  return true;
}

NetProtocol::Event RespProtocol::ReadElements(std::string_view input, const NetAsked& asked,
                                              size_t& consumed, NetTally& tally) {
  for (; left_ > 0; --left_) {
    size_t element = 0;
    const Event event = ReadElement(input.substr(consumed), asked, element, tally);
    if (event != Event::kAnswer) return event;
    consumed += element;
  }
  is_open_ = false;
  return Event::kAnswer;
}

// Returns what comes next in a right answer.
const RespProtocol::Bulk& RespProtocol::Wanted(const NetAsked& asked) const {
  if (asked.kind != OpKind::kScan || scan_command_ == ScanCommand::kMget) return value_;
  if (scan_command_ == ScanCommand::kZrangebylex) return member_;
  return left_ % 2 == 0 ? key_ : value_;
}

// Reads one value of a read, or one element of a scan's answer.
NetProtocol::Event RespProtocol::ReadElement(std::string_view input, const NetAsked& asked,
                                             size_t& consumed, NetTally& tally) {
  const Bulk& wanted = Wanted(asked);
  if (!input.starts_with(wanted.head)) {
    if (wanted.head.starts_with(input)) return Event::kNeedMore;
    return ReadUnexpected(input, asked, consumed, tally);
  }
  const size_t end = wanted.head.size() + wanted.bytes;
  if (input.size() < end + kEnd.size()) return Event::kNeedMore;
  if (input.substr(end, kEnd.size()) != kEnd) return Event::kCorrupt;
  consumed = end + kEnd.size();
  if (asked.kind == OpKind::kRead) ++tally.hits;
  return Event::kAnswer;
}

// Reads a whole reply, or an element, with a head other than that of a right answer.
NetProtocol::Event RespProtocol::ReadUnexpected(std::string_view input, const NetAsked& asked,
                                                size_t& consumed, NetTally& tally) {
  const auto event = parser_.Skip(input);
  if (event == RespReplyParser::Event::kNeedMore) return Event::kNeedMore;
  if (event == RespReplyParser::Event::kError) return Event::kCorrupt;
  consumed = parser_.consumed();
  const bool is_write = asked.kind != OpKind::kRead && asked.kind != OpKind::kScan;
  if (parser_.type() == '-') {
    tally.CountError(LineOf(input.substr(1)), is_write ? asked.count : 1);
  } else if (is_write) {
    if (parser_.type() != ':' || scan_command_ != ScanCommand::kZrangebylex) return Event::kCorrupt;
    tally.stored += asked.count;
  } else if (input.starts_with("$-1") || parser_.type() == '_') {
    CountAbsent(asked, tally);
  } else if (parser_.type() == '$') {
    tally.CountError("a key or value of another size than was stored");
  } else {
    return Event::kCorrupt;
  }
  return Event::kAnswer;
}

}  // namespace skep::bench
