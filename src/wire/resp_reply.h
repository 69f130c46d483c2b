// resp_reply.h: reads replies and writes commands, for a client.
//
// One grammar, two readers: RespReplyParser::Next builds the reply, RespReplyParser::Skip only
// finds its end, for load generators.
//
//   kind        first bytes            RespReply
//   simple      +text                  kSimple     text
//   error       -text or !n text       kError      text
//   integer     :n                     kInteger    integer
//   bulk        $n bytes               kBulk       text
//   null        _ or $-1 or *-1        kNull
//   array       *n                     kArray      elements
//   map         %n                     kMap        elements, key before value: 2n of them
//   set, push   ~n, >n                 kSet kPush  elements
//   boolean     #t #f                  kBoolean    integer, 1 or 0
//   double      ,x                     kDouble     number
//   verbatim    =n ext:bytes           kVerbatim   text, without "ext:"; format
//   big number  (digits                kBigNumber  text
//   attribute   |n                     read and dropped: it belongs to the value behind it
//   streamed    $? *? ~? %? ;n .       refused
//
// The parser is stricter than the decoder of commands, since a server has no excuse: line ends are
// compared, not skipped; numbers have one form (a plus sign on an integer is allowed, as the
// protocol says).
//
// The bytes of a reply are read once, however they were split. The memory of a half-built reply is
// in proportion to the bytes received, never to a count that a server claims.
//
// Invariants, between calls.
//   P1  frames_ holds the open aggregates, the outermost first, at most kDepthMax of them, each
//       with left > 0. A complete one moves into the one below it, so no reply points at another.
//   P2  [pos_, pos_ + searched_) holds no CR.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace skep {

struct RespReply {
  enum class Type : uint8_t {
    kNull,
    kSimple,
    kError,
    kInteger,
    kBulk,
    kArray,
    kMap,
    kSet,
    kPush,
    kBoolean,
    kDouble,
    kVerbatim,
    kBigNumber,
  };

  Type type = Type::kNull;
  std::array<char, 3> format{};     // kVerbatim: "txt" or "mkd"
  int64_t integer = 0;              // kInteger, kBoolean
  double number = 0;                // kDouble
  std::string text;                 // kSimple, kError, kBulk, kVerbatim, kBigNumber
  std::vector<RespReply> elements;  // kArray, kMap, kSet, kPush

  bool is_error() const { return type == Type::kError; }
  bool is_null() const { return type == Type::kNull; }

  // Equal if type and content are; a NaN equals nothing, itself included.
  bool operator==(const RespReply&) const = default;
};

// There is one for each connection. Owner: the connection's thread.
class RespReplyParser {
 public:
  enum class Event : uint8_t { kReply, kNeedMore, kError };

  // The most aggregates inside one another, attributes included.
  static constexpr size_t kDepthMax = 32;
  // The same as the server's limit on a value that a client may send.
  static constexpr size_t kBulkBytesMax = 512u << 20;
  // Limit of simple strings, errors, numbers and lengths, without their line end.
  static constexpr size_t kLineBytesMax = 64 * 1024;

  // Reads one reply. `input` starts at the reply's first byte and holds everything received since;
  // the same bytes at any address, with more behind them, after kNeedMore.
  //
  //   kReply     `reply` is built; consumed() and type() are set. It owns its bytes.
  //   kNeedMore  see wanted(); `reply` is untouched.
  //   kError     not RESP, or beyond a limit; see error(). Every further call says so, until
  //              Reset().
  Event Next(std::string_view input, RespReply& reply);

  // Like Next, but builds nothing. A reply must be read by one of the two from start to end.
  Event Skip(std::string_view input);

  // After kReply: bytes of `input` that the reply took.
  size_t consumed() const { return pos_; }

  // After kReply: the reply's first byte ('+', '-', ':', '$', ...), behind any attribute.
  char type() const { return type_; }

  // After kNeedMore: a lower bound on how many more bytes the reply needs; at least 1.
  size_t wanted() const { return wanted_; }

  // After kError: the error; a literal.
  std::string_view error() const { return error_; }

  // Forgets the half-read reply or the error.
  void Reset();

 private:
  struct Token;
  // An open aggregate.
  struct Frame {
    uint64_t left;    // P1
    bool attribute;   // dropped when complete, and no value of the frame below
    RespReply reply;  // the part built so far; empty when skipping
  };

  template <bool kBuild>
  bool Read(std::string_view input, RespReply& reply);
  template <bool kBuild>
  bool Complete(RespReply& value);
  bool Open(const Token& token);

  // These return true if they have read the thing in their name. On false, stopped_ says why:
  // kNeedMore or kError.
  bool ReadToken(std::string_view rest, Token& token);
  bool ReadLine(std::string_view rest, std::string_view& line);
  bool ReadBulk(std::string_view rest, Token& token);
  bool ReadScalar(Token& token);
  bool ReadCount(Token& token);
  bool WantMore(size_t bytes);
  bool Fail(std::string_view text);

  size_t pos_ = 0;       // everything before it in this reply was read
  size_t searched_ = 0;  // P2
  size_t wanted_ = 1;
  std::string_view error_;
  std::vector<Frame> frames_;
  Event stopped_ = Event::kNeedMore;
  bool started_ = false;  // a reply is half-read
  char type_ = 0;
};

// Appends one command: a RESP array of bulks, the same in RESP2 and RESP3.
void AppendCommand(std::string& out, std::span<const std::string_view> args);
void AppendCommand(std::string& out, std::initializer_list<std::string_view> args);

}  // namespace skep
