// resp_reply.h: replies, as a client reads them, and commands, as a client writes them.
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
// Stricter than the decoder of commands, since a server has no excuse: line ends are compared, not
// skipped; numbers have one form (a plus sign on an integer is allowed, as the protocol says).
//
// The bytes of a reply are read once, however they were split. The memory of a half-built reply is
// in proportion to the bytes received, never to a count that a server claims.
//
// Invariants, between calls.
//   P1  depth_ <= kDepthMax; frames_[0, depth_) are the open aggregates, the outermost first, each
//       with left > 0.
//   P2  a frame's reply, if not null, is root_ or the last element of the nearest frame below it.
//       Only the innermost frame's elements grow, so no pointer to an open reply is ever moved.
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

  // Same type and same content; a NaN equals nothing, itself included.
  bool operator==(const RespReply&) const = default;
};

// One for each connection. Owner: the connection's thread.
class RespReplyParser {
 public:
  enum class Event { kReply, kNeedMore, kError };

  // Aggregates inside one another, attributes included.
  static constexpr size_t kDepthMax = 32;
  // The same as the server's limit on a value that a client may send.
  static constexpr size_t kBulkBytesMax = 512u << 20;
  // Simple strings, errors, numbers and lengths, without their line end.
  static constexpr size_t kLineBytesMax = 64 * 1024;

  // Reads one reply. `input` starts at the reply's first byte and holds everything received since;
  // the same bytes at any address, with more behind them, after kNeedMore.
  //
  //   kReply     `reply` is built; consumed() and type() are set. It owns its bytes.
  //   kNeedMore  see wanted(); `reply` is untouched.
  //   kError     not RESP, or beyond a limit; see error(). Every further call says so, until
  //   Reset().
  Event Next(std::string_view input, RespReply& reply);

  // As Next, but builds nothing. One reply is read by one of the two from its start to its end.
  Event Skip(std::string_view input);

  // After kReply: bytes of `input` that the reply took.
  size_t consumed() const { return pos_; }

  // After kReply: the reply's first byte ('+', '-', ':', '$', ...), behind any attribute.
  char type() const { return type_; }

  // After kNeedMore: a lower bound on how many more bytes the reply needs; at least 1.
  size_t wanted() const { return wanted_; }

  // After kError: what was wrong; a literal.
  std::string_view error() const { return error_; }

  // Forgets the half-read reply or the error.
  void Reset();

 private:
  struct Token;
  struct Frame {
    uint64_t left;     // values still to come, > 0
    RespReply* reply;  // null when skipping, and inside an attribute
    bool attribute;    // its values count as nothing in the frame below
  };

  template <bool kBuild>
  Event Run(std::string_view input);
  template <bool kBuild>
  bool Accept(const Token& token);
  RespReply* Slot();
  void CloseFrames();
  Event ReadToken(std::string_view input, Token& token);
  Event ReadLine(std::string_view input, std::string_view& line);
  Event ReadBlob(std::string_view input, Token& token);
  Event ReadHead(std::string_view line, Token& token);
  Event WantMore(size_t bytes);
  Event Fail(std::string_view text);

  size_t pos_ = 0;       // what is before it, in this reply, is done
  size_t searched_ = 0;  // [pos_, pos_ + searched_) holds no CR
  size_t wanted_ = 1;
  std::string_view error_;
  size_t depth_ = 0;
  bool done_ = true;  // no reply is half-read
  char type_ = 0;
  RespReply root_;
  std::array<Frame, kDepthMax> frames_;
};

// Appends one command: a RESP array of bulks, the same in RESP2 and RESP3.
void AppendCommand(std::string& out, std::span<const std::string_view> args);
void AppendCommand(std::string& out, std::initializer_list<std::string_view> args);

}  // namespace skep
