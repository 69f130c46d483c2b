// resp_writer.h: writes replies, for a server.
//
//   call                RESP2                 RESP3
//   SimpleString("OK")  +OK                   +OK
//   Error("ERR no")     -ERR no               -ERR no
//   Integer(7)          :7                    :7
//   Bulk("ab")          $2 ab                 $2 ab
//   Null()              $-1                   _
//   NullArray()         *-1                   _
//   Array(n)            *n                    *n
//   Map(n)              *2n                   %n
//   Set(n), Push(n)     *n                    ~n, >n
//   Boolean(true)       :1                    #t
//   Double(1.5)         $3 1.5                ,1.5
//   Verbatim("txt", s)  $.. s                 =.. txt:s
//   BigNumber("12")     $2 12                 (12
//
// Array(n) and its kin write only the head; the n elements (Map: 2n, key before value) follow by
// further calls. The writer does not count them: a wrong count is the caller's bug.
//
// Each call grows the output once and writes straight into it; nothing else is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace skep {

// Appends to `out`, which the caller owns and keeps alive. Cheap to make: one for each command.
class RespWriter {
 public:
  // `protocol` is 2 or 3.
  RespWriter(std::string& out, int protocol);

  // `text` holds no CR or LF.
  void SimpleString(std::string_view text);

  // `text_with_code` is "ERR ...", "WRONGTYPE ...". It may quote a client's bytes: CR and LF are
  // replaced by spaces.
  void Error(std::string_view text_with_code);

  void Integer(int64_t value);
  void Bulk(std::string_view bytes);
  // What is before and behind the bytes of a bulk that are sent from where they lie.
  void BeginBulk(size_t bytes) { Head('$', bytes); }
  void EndBulk();
  void Null();
  void NullArray();
  void Array(size_t count);
  void Map(size_t pairs);
  void Set(size_t count);
  void Push(size_t count);
  void Boolean(bool value);

  // The shortest decimal that reads back as `value`; "inf", "-inf", "nan".
  void Double(double value);
  // A double that is text already.
  void Decimal(std::string_view text);

  // `format` is three bytes, "txt" or "mkd"; RESP2 clients do not see it.
  void Verbatim(std::string_view format, std::string_view text);

  // `digits`: an optional minus sign and decimal digits.
  void BigNumber(std::string_view digits);

  int protocol() const { return protocol_; }

 private:
  void Head(char type, size_t count);
  void Line(char type, std::string_view text);

  std::string& out_;
  int protocol_;
};

}  // namespace skep
