#include "wire/resp_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/decimal.h"

namespace skep {
namespace {

char* Put(char* at, char byte) {
  *at = byte;
  return at + 1;
}

char* Put(char* at, std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at + bytes.size();
}

char* PutLineEnd(char* at) { return Put(Put(at, '\r'), '\n'); }

// Grows `out` by at most bytes_max and lets put(at) write; put returns the end of its bytes.
template <typename PutBytes>
void Append(std::string& out, size_t bytes_max, PutBytes put) {
  const size_t before = out.size();
  out.resize_and_overwrite(before + bytes_max, [&](char* data, size_t) {
    return static_cast<size_t>(put(data + before) - data);
  });
}

constexpr size_t kHeadBytesMax = 1 + kDecimalBytesMax + 2;

template <typename Integer>
char* PutHead(char* at, char type, Integer value) {
  return PutLineEnd(WriteDecimal(Put(at, type), value));
}

// The longest text is "-2.2250738585072014e-308".
constexpr size_t kDoubleBytesMax = 32;

}  // namespace

RespWriter::RespWriter(std::string& out, int protocol) : out_(out), protocol_(protocol) {
  SKEP_DCHECK(protocol == 2 || protocol == 3);
}

void RespWriter::Head(char type, size_t count) {
  Append(out_, kHeadBytesMax, [&](char* at) { return PutHead(at, type, count); });
}

void RespWriter::Line(char type, std::string_view text) {
  Append(out_, 1 + text.size() + 2, [&](char* at) { return PutLineEnd(Put(Put(at, type), text)); });
}

void RespWriter::SimpleString(std::string_view text) {
  SKEP_DCHECK(text.find_first_of("\r\n") == std::string_view::npos);
  Line('+', text);
}

void RespWriter::Error(std::string_view text_with_code) {
  Append(out_, 1 + text_with_code.size() + 2, [&](char* at) {
    char* text = Put(at, '-');
    char* end = Put(text, text_with_code);
    std::replace_if(text, end, [](char c) { return c == '\r' || c == '\n'; }, ' ');
    return PutLineEnd(end);
  });
}

void RespWriter::Integer(int64_t value) {
  Append(out_, kHeadBytesMax, [&](char* at) { return PutHead(at, ':', value); });
}

void RespWriter::Bulk(std::string_view bytes) {
  Append(out_, kHeadBytesMax + bytes.size() + 2,
         [&](char* at) { return PutLineEnd(Put(PutHead(at, '$', bytes.size()), bytes)); });
}

void RespWriter::EndBulk() { out_.append("\r\n"); }

void RespWriter::Null() { out_.append(protocol_ == 3 ? "_\r\n" : "$-1\r\n"); }
void RespWriter::NullArray() { out_.append(protocol_ == 3 ? "_\r\n" : "*-1\r\n"); }

void RespWriter::Array(size_t count) { Head('*', count); }
void RespWriter::Map(size_t pairs) { protocol_ == 3 ? Head('%', pairs) : Head('*', 2 * pairs); }
void RespWriter::Set(size_t count) { Head(protocol_ == 3 ? '~' : '*', count); }
void RespWriter::Push(size_t count) { Head(protocol_ == 3 ? '>' : '*', count); }

void RespWriter::Boolean(bool value) {
  if (protocol_ == 3) {
    out_.append(value ? "#t\r\n" : "#f\r\n");
  } else {
    Integer(value ? 1 : 0);
  }
}

void RespWriter::Double(double value) {
  std::array<char, kDoubleBytesMax> digits;
  // A NaN's sign bit means nothing; to_chars would write "-nan".
  const char* end = std::isnan(value)
                        ? Put(digits.data(), "nan")
                        : std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  const std::string_view text(digits.data(), end);
  protocol_ == 3 ? Line(',', text) : Bulk(text);
}

void RespWriter::Decimal(std::string_view text) { protocol_ == 3 ? Line(',', text) : Bulk(text); }

void RespWriter::Verbatim(std::string_view format, std::string_view text) {
  SKEP_DCHECK(format.size() == 3);
  if (protocol_ == 2) return Bulk(text);
  Append(out_, kHeadBytesMax + format.size() + 1 + text.size() + 2, [&](char* at) {
    at = PutHead(at, '=', format.size() + 1 + text.size());
    return PutLineEnd(Put(Put(Put(at, format), ':'), text));
  });
}

void RespWriter::BigNumber(std::string_view digits) {
  protocol_ == 3 ? Line('(', digits) : Bulk(digits);
}

}  // namespace skep
