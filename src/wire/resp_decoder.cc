#include "wire/resp_decoder.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/decimal.h"
#include "wire/inline_request.h"

namespace skep {
namespace {

// The most digits of the fast path: no overflow, and longer lengths are rare.
constexpr size_t kShortDigitsMax = 8;

// Reads a usual length line: a type byte, one to eight digits and two bytes of line end. If all of
// it is there, sets `number` and returns the line's bytes. Otherwise returns 0, and the slow path
// decides.
size_t ReadShortLength(std::string_view line, int64_t& number) {
  if (line.size() < 4) return 0;
  const size_t last = std::min(line.size() - 2, 1 + kShortDigitsMax);
  int64_t parsed = 0;
  for (size_t i = 1; i <= last; ++i) {
    const unsigned digit = static_cast<unsigned char>(line[i]) - unsigned{'0'};
    if (digit > 9) {
      const bool is_one_form = line[i] == '\r' && i > 1 && (line[1] != '0' || i == 2);
      number = parsed;
      return is_one_form ? i + 2 : 0;
    }
    parsed = parsed * 10 + digit;
  }
  return 0;
}

}  // namespace

RespDecoder::Event RespDecoder::Next(std::string_view input, const RespLimits& limits,
                                     std::vector<std::string_view>& args) {
  if (stopped_ == Event::kError) return Event::kError;
  args.clear();
  const bool resumed = phase_ != Phase::kStart;
  if (!resumed) Rewind();
  if (!DecodeCommand(input, limits, args)) return stopped_;
  if (resumed && input.front() == '*') {
    // The first arguments were views into an earlier `input`: collect them all from this one.
    args.clear();
    Rewind();
    if (!DecodeCommand(input, limits, args)) return stopped_;
  }
  phase_ = Phase::kStart;
  return Event::kCommand;
}

void RespDecoder::Reset() { *this = RespDecoder(); }

void RespDecoder::Rewind() {
  pos_ = 0;
  searched_ = 0;
  phase_ = Phase::kStart;
  text_.reset();
}

bool RespDecoder::DecodeCommand(std::string_view input, const RespLimits& limits,
                                std::vector<std::string_view>& args) {
  if (phase_ == Phase::kStart) {
    if (input.empty()) return WantMore(1);
    phase_ = input.front() == '*' ? Phase::kCount : Phase::kInline;
  }
  if (phase_ == Phase::kInline) return DecodeInline(input, limits, args);
  if (phase_ == Phase::kCount && !DecodeCount(input, limits)) return false;
  return DecodeArguments(input, limits, args);
}

bool RespDecoder::DecodeInline(std::string_view input, const RespLimits& limits,
                               std::vector<std::string_view>& args) {
  size_t end = 0;
  if (!FindLineEnd(input, '\n', limits.inline_bytes_max, "Protocol error: too big inline request",
                   end)) {
    return false;
  }
  std::string_view line = input.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!SplitInlineRequest(line, text_, args)) {
    return Fail("Protocol error: unbalanced quotes in request");
  }
  pos_ = end + 1;
  return true;
}

bool RespDecoder::DecodeCount(std::string_view input, const RespLimits& limits) {
  LengthLine line;
  if (!ReadLengthLine(input, limits, "Protocol error: too big mbulk count string", line)) {
    return false;
  }
  const uint64_t count_max = std::min<uint64_t>(limits.args_max, UINT32_MAX);
  if (!line.is_number || line.number > static_cast<int64_t>(count_max)) {
    // A count that Redis would accept gets an error that says why it is refused here.
    if (line.is_number && line.number <= INT32_MAX && limits.authenticated) {
      return FailWith("Protocol error: invalid multibulk length (more than " +
                      std::to_string(count_max) + ")");
    }
    return Fail(limits.authenticated ? "Protocol error: invalid multibulk length"
                                     : "Protocol error: unauthenticated multibulk length");
  }
  args_left_ = static_cast<uint32_t>(std::max<int64_t>(line.number, 0));
  pos_ += line.bytes;
  phase_ = Phase::kBulkLength;
  return true;
}

bool RespDecoder::DecodeArguments(std::string_view input, const RespLimits& limits,
                                  std::vector<std::string_view>& args) {
  for (; args_left_ > 0; --args_left_) {
    if (phase_ == Phase::kBulkLength && !DecodeBulkLength(input, limits)) return false;
    const size_t received = input.size() - pos_;
    if (received < bulk_bytes_ + 2) return WantMore(bulk_bytes_ + 2 - received);
    args.emplace_back(input.data() + pos_, bulk_bytes_);
    pos_ += bulk_bytes_ + 2;
    phase_ = Phase::kBulkLength;
  }
  return true;
}

bool RespDecoder::DecodeBulkLength(std::string_view input, const RespLimits& limits) {
  const std::string_view rest = input.substr(pos_);
  int64_t number = 0;
  const size_t bytes = ReadShortLength(rest, number);
  const bool is_allowed = bytes != 0 && bytes - 2 <= limits.inline_bytes_max &&
                          static_cast<uint64_t>(number) <= limits.bulk_bytes_max;
  if (is_allowed && rest.front() == '$') [[likely]] {
    bulk_bytes_ = static_cast<size_t>(number);
    pos_ += bytes;
    searched_ = 0;
    phase_ = Phase::kBulk;
    return true;
  }
  LengthLine line;
  if (!ReadLengthLine(rest, limits, "Protocol error: too big bulk count string", line)) {
    return false;
  }
  if (rest.front() != '$') return FailExpectedDollar(rest.front());
  if (!line.is_number || line.number < 0 ||
      static_cast<uint64_t>(line.number) > limits.bulk_bytes_max) {
    return Fail(limits.authenticated ? "Protocol error: invalid bulk length"
                                     : "Protocol error: unauthenticated bulk length");
  }
  bulk_bytes_ = static_cast<size_t>(line.number);
  pos_ += line.bytes;
  phase_ = Phase::kBulk;
  return true;
}

// Reads the line that `rest` begins with: a type byte, whichever it is, and a number.
bool RespDecoder::ReadLengthLine(std::string_view rest, const RespLimits& limits,
                                 std::string_view too_long, LengthLine& line) {
  line.bytes = ReadShortLength(rest, line.number);
  line.is_number = true;
  if (line.bytes == 0 || line.bytes - 2 > limits.inline_bytes_max) {
    size_t end = 0;
    if (!FindLineEnd(rest, '\r', limits.inline_bytes_max, too_long, end)) return false;
    searched_ = end;
    if (end + 2 > rest.size()) return WantMore(1);
    line.bytes = end + 2;
    // A line may be empty, without even the type byte.
    const auto number = end > 0 ? ParseInt64(rest.substr(1, end - 1)) : std::nullopt;
    line.is_number = number.has_value();
    line.number = number.value_or(0);
  }
  searched_ = 0;
  return true;
}

// Finds the end of the line that `rest` begins with, if it is within the first line_bytes_max + 1
// bytes. Sets searched_ to how much need not be searched again.
bool RespDecoder::FindLineEnd(std::string_view rest, char line_end, size_t line_bytes_max,
                              std::string_view too_long, size_t& at) {
  const std::string_view searchable = rest.substr(0, std::min(rest.size(), line_bytes_max) + 1);
  at = searchable.find(line_end, searched_);
  if (at != std::string_view::npos) return true;
  if (rest.size() > line_bytes_max) return Fail(too_long);
  searched_ = rest.size();
  return WantMore(1);
}

bool RespDecoder::WantMore(size_t bytes) {
  wanted_ = bytes;
  stopped_ = Event::kNeedMore;
  return false;
}

bool RespDecoder::Fail(std::string_view text) {
  error_ = text;
  stopped_ = Event::kError;
  return false;
}

// Fails with a copy of the text.
bool RespDecoder::FailWith(std::string_view text) {
  text_ = std::make_unique_for_overwrite<char[]>(text.size());
  std::memcpy(text_.get(), text.data(), text.size());
  return Fail({text_.get(), text.size()});
}

bool RespDecoder::FailExpectedDollar(char got) {
  std::string text = "Protocol error: expected '$', got '?'";
  text[text.size() - 2] = got == '\r' || got == '\n' ? ' ' : got;
  return FailWith(text);
}

}  // namespace skep
