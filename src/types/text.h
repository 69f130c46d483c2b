// text.h: strings one behind the other, in collections, in the operands of their functions and in
// the answers.
//
//   +----------------+-----------+
//   | varint, n      | n-1 bytes |      n = 0: no string, and no bytes (only in answers)
//   +----------------+-----------+
//
// So a string of up to 126 bytes takes one byte more than it has. base/varint.h has the varints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/varint.h"
#include "skep/copy_bytes.h"
#include "skep/scratch.h"

namespace skep::types {

// The bytes of a string in this form.
constexpr size_t TextBytes(std::string_view text) {
  return VarintBytes(text.size() + 1) + text.size();
}
inline char* WriteText(char* at, std::string_view text) {
  at = WriteVarint(at, text.size() + 1);
  CopyBytes(at, text.data(), text.size());
  return at + text.size();
}
// Writes what stands for no string.
inline char* WriteNoText(char* at) {
  *at = 0;
  return at + 1;
}

// Takes a string, or what stands for none, from the front. False: the bytes begin with neither.
inline bool TakeMaybeText(std::string_view& from, std::optional<std::string_view>* text) {
  uint64_t number = 0;
  if (!TakeVarint(from, &number) || (number > 0 && number - 1 > from.size())) return false;
  text->reset();
  if (number == 0) return true;
  *text = from.substr(0, number - 1);
  from.remove_prefix(number - 1);
  return true;
}
// Takes a string from the front. False: the bytes do not begin with one.
inline bool TakeText(std::string_view& from, std::string_view* text) {
  std::optional<std::string_view> maybe;
  if (!TakeMaybeText(from, &maybe) || !maybe) return false;
  *text = *maybe;
  return true;
}

// TakeText, in fewer instructions for a text whose length takes one byte.
inline bool TakeShortText(std::string_view& from, std::string_view* text) {
  const size_t bytes = from.empty() ? 0 : static_cast<uint8_t>(from.front());
  if (bytes == 0 || bytes >= 0x80 || bytes > from.size()) return TakeText(from, text);
  *text = from.substr(1, bytes - 1);
  from.remove_prefix(bytes);
  return true;
}

// Takes a number that has all its bytes, from the front. False: there are fewer.
template <class Number>
bool TakeFixed(std::string_view& from, Number* number) {
  if (from.size() < sizeof(*number)) return false;
  std::memcpy(number, from.data(), sizeof(*number));
  from.remove_prefix(sizeof(*number));
  return true;
}

// Takes all strings that the bytes are. False: they are something else.
inline bool TakeTexts(std::string_view from, std::vector<std::string_view>* texts) {
  std::string_view text;
  while (!from.empty()) {
    if (!TakeText(from, &text)) return false;
    texts->push_back(text);
  }
  return true;
}

// Writes strings one behind the other into bytes of a scratch, of which there are as many as the
// caller has counted before. Owner: one function.
class TextWriter {
 public:
  TextWriter(Scratch& scratch, size_t bytes) : begin_(scratch.Allocate(bytes)), at_(begin_) {}
  void Number(uint64_t number) { at_ = WriteVarint(at_, number); }
  template <class Number>
  void Fixed(const Number& number) {
    Bytes({reinterpret_cast<const char*>(&number), sizeof(number)});
  }
  void Text(std::string_view text) { at_ = WriteText(at_, text); }
  void NoText() { at_ = WriteNoText(at_); }
  void Bytes(std::string_view bytes) {
    CopyBytes(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  std::string_view bytes() const { return {begin_, static_cast<size_t>(at_ - begin_)}; }

 private:
  char* const begin_;
  char* at_;
};

// The strings as the operand of a function.
inline std::string_view JoinTexts(std::span<const std::string_view> texts, Scratch& scratch) {
  size_t bytes = 0;
  for (const std::string_view text : texts) bytes += TextBytes(text);
  TextWriter writer(scratch, bytes);
  for (const std::string_view text : texts) writer.Text(text);
  return writer.bytes();
}

}  // namespace skep::types
