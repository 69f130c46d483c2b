#include "wire/resp_reply.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/decimal.h"
#include "wire/resp_writer.h"

namespace skep {
namespace {

// A map's count is doubled and an array's is trusted until its values fail to come: no overflow.
constexpr int64_t kCountMax = UINT32_MAX;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// RESP allows a plus sign before an integer.
bool ParseInteger(std::string_view text, int64_t& value) {
  if (text.size() > 1 && text[0] == '+' && IsDigit(text[1])) text.remove_prefix(1);
  const auto parsed = ParseInt64(text);
  value = parsed.value_or(value);
  return parsed.has_value();
}

bool ParseDouble(std::string_view text, double& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc{} && stopped == end;
}

bool IsBigNumber(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, IsDigit);
}

}  // namespace

// One line, or a line and the bulk behind it; with views into the input.
struct RespReplyParser::Token {
  char byte = 0;        // the first byte
  size_t bytes = 0;     // its length in the input
  uint64_t values = 0;  // for an aggregate: the number of values that follow
  RespReply::Type type = RespReply::Type::kNull;
  std::array<char, 3> format{};
  int64_t integer = 0;
  double number = 0;
  std::string_view text;

  bool attribute() const { return byte == '|'; }

  RespReply Build() const {
    return {.type = type,
            .format = format,
            .integer = integer,
            .number = number,
            .text = std::string(text),
            .elements = {}};
  }
};

RespReplyParser::Event RespReplyParser::Next(std::string_view input, RespReply& reply) {
  RespReply built;
  if (!Read<true>(input, built)) return stopped_;
  reply = std::move(built);
  return Event::kReply;
}

RespReplyParser::Event RespReplyParser::Skip(std::string_view input) {
  RespReply nothing;
  return Read<false>(input, nothing) ? Event::kReply : stopped_;
}

void RespReplyParser::Reset() { *this = RespReplyParser(); }

template <bool kBuild>
bool RespReplyParser::Read(std::string_view input, RespReply& reply) {
  if (stopped_ == Event::kError) return false;
  if (!started_) pos_ = 0;
  for (;;) {
    Token token;
    if (!ReadToken(input.substr(pos_), token)) return false;
    started_ = true;
    pos_ += token.bytes;
    if (frames_.empty()) type_ = token.byte;
    if (token.values > 0) {
      if (!Open(token)) return false;
      continue;
    }
    if (token.attribute()) continue;
    if constexpr (kBuild) reply = token.Build();
    if (Complete<kBuild>(reply)) break;
  }
  started_ = false;
  return true;
}

bool RespReplyParser::Open(const Token& token) {
  if (frames_.size() == kDepthMax) return Fail("too many nested aggregates");
  frames_.push_back({.left = token.values, .attribute = token.attribute(), .reply = {}});
  frames_.back().reply.type = token.type;
  return true;
}

// `value` is complete: gives it to the innermost open aggregate, and that one, if it is complete
// too, to the next. Returns true if no aggregate is open any more; `value` is then the reply.
template <bool kBuild>
bool RespReplyParser::Complete(RespReply& value) {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if constexpr (kBuild) frame.reply.elements.push_back(std::move(value));
    if (--frame.left > 0) return false;
    const bool attribute = frame.attribute;
    if constexpr (kBuild) value = std::move(frame.reply);
    frames_.pop_back();
    if (attribute) return false;
  }
  return true;
}

bool RespReplyParser::ReadToken(std::string_view rest, Token& token) {
  std::string_view line;
  if (!ReadLine(rest, line)) return false;
  if (line.empty()) return Fail("empty line");
  token.byte = line.front();
  token.bytes = line.size() + 2;
  token.text = line.substr(1);
  switch (token.byte) {
    case '$':
    case '!':
    case '=':
      return ReadBulk(rest, token);
    case '*':
    case '%':
    case '~':
    case '>':
    case '|':
      return ReadCount(token);
    case ';':
    case '.':
      return Fail("streamed types are not supported");
    default:
      return ReadScalar(token);
  }
}

// Reads the line that `rest` begins with, without CR LF.
bool RespReplyParser::ReadLine(std::string_view rest, std::string_view& line) {
  const size_t end = rest.substr(0, kLineBytesMax + 1).find('\r', searched_);
  if (end == std::string_view::npos) {
    if (rest.size() > kLineBytesMax) return Fail("line too long");
    searched_ = rest.size();
    return WantMore(1);
  }
  searched_ = end;
  if (end + 1 == rest.size()) return WantMore(1);
  if (rest[end + 1] != '\n') return Fail("CR without LF");
  searched_ = 0;
  line = rest.substr(0, end);
  return true;
}

// `token` has the length line, which is read again when more bytes have come; it is short.
bool RespReplyParser::ReadBulk(std::string_view rest, Token& token) {
  if (token.text == "?") return Fail("streamed types are not supported");
  if (token.byte == '$' && token.text == "-1") {
    token.text = {};
    return true;
  }
  const auto length = ParseInt64(token.text);
  if (!length || *length < 0 || static_cast<uint64_t>(*length) > kBulkBytesMax) {
    return Fail("invalid bulk length");
  }
  const size_t bytes = static_cast<size_t>(*length);
  rest.remove_prefix(token.bytes);
  if (rest.size() < bytes + 2) return WantMore(bytes + 2 - rest.size());
  if (rest.substr(bytes, 2) != "\r\n") return Fail("bulk without CR LF behind it");
  token.text = rest.substr(0, bytes);
  token.bytes += bytes + 2;
  token.type = token.byte == '$' ? RespReply::Type::kBulk : RespReply::Type::kError;
  if (token.byte != '=') return true;

  if (bytes < 4 || token.text[3] != ':') return Fail("invalid verbatim string");
  token.type = RespReply::Type::kVerbatim;
  std::ranges::copy(token.text.substr(0, 3), token.format.begin());
  token.text.remove_prefix(4);
  return true;
}

bool RespReplyParser::ReadCount(Token& token) {
  const std::string_view digits = std::exchange(token.text, {});
  if (digits == "?") return Fail("streamed types are not supported");
  if (token.byte == '*' && digits == "-1") return true;
  const auto count = ParseInt64(digits);
  if (!count || *count < 0 || *count > kCountMax) {
    return Fail("invalid aggregate length");
  }
  const bool pairs = token.byte == '%' || token.byte == '|';
  token.values = static_cast<uint64_t>(*count) * (pairs ? 2 : 1);
  token.type = token.byte == '*'   ? RespReply::Type::kArray
               : token.byte == '~' ? RespReply::Type::kSet
               : token.byte == '>' ? RespReply::Type::kPush
                                   : RespReply::Type::kMap;
  return true;
}

bool RespReplyParser::ReadScalar(Token& token) {
  std::string_view& text = token.text;
  switch (token.byte) {
    case '+':
      token.type = RespReply::Type::kSimple;
      return true;
    case '-':
      token.type = RespReply::Type::kError;
      return true;
    case '(':
      token.type = RespReply::Type::kBigNumber;
      return IsBigNumber(text) || Fail("invalid big number");
    case ':':
      token.type = RespReply::Type::kInteger;
      if (!ParseInteger(std::exchange(text, {}), token.integer)) return Fail("invalid integer");
      return true;
    case ',':
      token.type = RespReply::Type::kDouble;
      if (!ParseDouble(std::exchange(text, {}), token.number)) return Fail("invalid double");
      return true;
    case '#':
      token.type = RespReply::Type::kBoolean;
      token.integer = text == "t" ? 1 : 0;
      if (text != "t" && text != "f") return Fail("invalid boolean");
      text = {};
      return true;
    case '_':
      return text.empty() || Fail("invalid null");
    default:
      return Fail("unknown type");
  }
}

bool RespReplyParser::WantMore(size_t bytes) {
  wanted_ = bytes;
  stopped_ = Event::kNeedMore;
  return false;
}

bool RespReplyParser::Fail(std::string_view text) {
  error_ = text;
  stopped_ = Event::kError;
  return false;
}

void AppendCommand(std::string& out, std::span<const std::string_view> args) {
  RespWriter writer(out, 2);
  writer.Array(args.size());
  for (const std::string_view arg : args) writer.Bulk(arg);
}

void AppendCommand(std::string& out, std::initializer_list<std::string_view> args) {
  AppendCommand(out, std::span(args.begin(), args.size()));
}

}  // namespace skep
