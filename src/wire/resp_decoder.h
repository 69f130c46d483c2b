// resp_decoder.h: reads commands, for a server.
//
//   multibulk  *2\r\n $3\r\n GET\r\n $1\r\n k\r\n     from clients
//   inline     GET k\r\n                              typed by people; quotes as in a shell
//
// The bytes stay where they were received: arguments are views into them.
//
//             Next() = kNeedMore: the caller appends, moves the bytes if it likes
//                 +----+
//                 v    |
//   input  [ *3.. $3.. SET.. $1.. k.. $10.. va ]
//            ^                        ^
//            0                        pos_: everything before it was checked and is not read again,
//                                     until the last argument arrives
//
// A half-read command is a position, not a list of arguments: nothing is allocated for it. When its
// last byte arrives and it came in more than one piece, one second pass over its lengths collects
// the arguments. So every byte is looked at no more than twice, however the bytes were split, and a
// stalled client holds its bytes and this object, no more.
//
// Errors are Redis 7's, word for word. Three answers differ, each where Redis's own depends on how
// the bytes were split or on where a buffer's NUL happens to be:
//   - a line (inline request or length) longer than inline_bytes_max is refused even if it arrives
//     in one piece;
//   - a NUL byte in an inline request is a byte of an argument, not the end of the request;
//   - a NUL byte in a length is a malformed length at once, not after 64 KiB.
// args_max is a bound that Redis 7 no longer has below 2^31.
// As in Redis, the LF of a length line and the CRLF behind a bulk are skipped, not compared.
//
// Invariants, between calls.
//   D1  phase_ == kStart if and only if no command is half-read; then pos_ == consumed().
//   D2  in a line, [pos_, pos_ + searched_) holds no line end.
//   D3  in a bulk, bulk_bytes_ <= limits.bulk_bytes_max and pos_ is its first byte.
//   D4  stopped_ == kError if and only if error_ is set; nothing but Reset() changes that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace skep {

// Bounds on what one command may claim. They hold for a whole command; between commands they may
// change (a client that has not logged in gets smaller ones).
struct RespLimits {
  size_t args_max = 1024 * 1024;        // beyond: "invalid multibulk length"
  size_t bulk_bytes_max = 512u << 20;   // beyond: "invalid bulk length" (proto-max-bulk-len)
  size_t inline_bytes_max = 64 * 1024;  // beyond: "too big inline request", "... count string"
  bool authenticated = true;            // if not, the first two say "unauthenticated ... length"
};

// There is one for each connection. Owner: the connection's thread.
class RespDecoder {
 public:
  enum class Event : uint8_t { kCommand, kNeedMore, kError };

  // Reads one command. `input` starts at the command's first byte and holds everything received
  // since: after kNeedMore the same bytes again, at any address, and more behind them; after
  // kCommand it starts consumed() bytes further on. Nothing past the command is looked at.
  //
  //   kCommand   `args` is the command; consumed() says how much of `input` it took. The views are
  //              valid while the bytes of `input` stay, and until the next Next() or Reset(). Empty
  //              `args` are a blank line, *0 or *-1, which Redis ignores.
  //   kNeedMore  the command is not complete; see wanted(). `args` means nothing.
  //   kError     the bytes are no RESP; see error(). The connection cannot go on: every further
  //              call says kError, until Reset().
  //
  // `args` is overwritten and keeps its capacity, so that connections can share one.
  Event Next(std::string_view input, const RespLimits& limits, std::vector<std::string_view>& args);

  // After kCommand: bytes of `input` that the command took, at least 1.
  size_t consumed() const { return pos_; }

  // After kNeedMore: a lower bound on how many more bytes the command needs; at least 1. In a bulk
  // it is the bulk's exact rest, so that a caller can make room for it at once.
  size_t wanted() const { return wanted_; }

  // After kError: the text that Redis sends after "-ERR ", without line ends; if there are too many
  // arguments, followed by how many there may be. Valid until Reset().
  std::string_view error() const { return error_; }

  // Forgets the half-read command or the error.
  void Reset();

 private:
  enum class Phase : uint8_t { kStart, kInline, kCount, kBulkLength, kBulk };
  struct LengthLine {
    int64_t number = 0;
    size_t bytes = 0;  // includes the line end
    bool is_number = false;
  };

  // These return true if they have read the thing in their name, and moved pos_ behind it. On
  // false, stopped_ says why: kNeedMore or kError.
  bool DecodeCommand(std::string_view input, const RespLimits& limits,
                     std::vector<std::string_view>& args);
  bool DecodeInline(std::string_view input, const RespLimits& limits,
                    std::vector<std::string_view>& args);
  bool DecodeCount(std::string_view input, const RespLimits& limits);
  bool DecodeArguments(std::string_view input, const RespLimits& limits,
                       std::vector<std::string_view>& args);
  bool DecodeBulkLength(std::string_view input, const RespLimits& limits);
  bool ReadLengthLine(std::string_view rest, const RespLimits& limits, std::string_view too_long,
                      LengthLine& line);
  bool FindLineEnd(std::string_view rest, char line_end, size_t line_bytes_max,
                   std::string_view too_long, size_t& at);
  void Rewind();
  bool WantMore(size_t bytes);
  bool Fail(std::string_view text);
  bool FailWith(std::string_view text);
  bool FailExpectedDollar(char got);

  size_t pos_ = 0;         // everything before it in this command was checked
  size_t searched_ = 0;    // D2
  size_t bulk_bytes_ = 0;  // D3
  size_t wanted_ = 1;
  std::string_view error_;
  std::unique_ptr<char[]> text_;  // unquoted inline arguments, or an error that is not a literal
  uint32_t args_left_ = 0;
  Phase phase_ = Phase::kStart;
  Event stopped_ = Event::kNeedMore;  // D4
};

static_assert(sizeof(RespDecoder) <= 64, "an idle connection is small");

}  // namespace skep
