// collection.h: what the functions of all collections do alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/decimal.h"
#include "skep/function.h"
#include "types/text.h"
#include "types/value_type.h"

namespace skep::types {

using Texts = std::vector<std::string_view>;

inline constexpr Status kBadOperand(Code::kInvalidArgument, "the operand is not of this function");

inline FunctionEffect Failure(Status status) { return {.status = status}; }
inline FunctionEffect Failure(const char* text) {
  return {.status = {Code::kInvalidArgument, text}};
}
inline FunctionEffect Number(int64_t number) { return {.integer = number}; }

// The effect of a collection that has these bytes now, of which there are `members`: it is stored,
// or erased if it has none.
inline FunctionEffect Stored(std::string_view bytes, size_t members, int64_t integer) {
  if (members == 0) return {.action = FunctionEffect::Action::kErase, .integer = integer};
  if (const Status s = FormError(bytes.size()); !s.ok()) return Failure(s);
  return {.action = FunctionEffect::Action::kReplace,
          .value = bytes,
          .returned = {},
          .integer = integer};
}

// A collection that begins with the number of its members.
struct Counted {
  uint64_t members = 0;
  std::string_view body = {};  // the members
};
// Nothing if the value is none; without a value it has no members.
inline std::optional<Counted> ReadCounted(const std::optional<std::string_view>& value) {
  Counted counted;
  if (!value) return counted;
  counted.body = *value;
  if (!TakeVarint(counted.body, &counted.members) || counted.members == 0 ||
      counted.members > counted.body.size()) {
    return std::nullopt;
  }
  return counted;
}

// The strings of a collection that has `each` of them for each member; nothing if it has others.
inline std::optional<Texts> ReadTexts(const std::optional<std::string_view>& value, size_t each) {
  const auto counted = ReadCounted(value);
  if (!counted) return std::nullopt;
  Texts texts;
  texts.reserve(counted->members * each);
  if (!TakeTexts(counted->body, &texts) || texts.size() != counted->members * each) {
    return std::nullopt;
  }
  return texts;
}

// Writes a collection of strings, `each` for each member.
inline std::string_view WriteTexts(const Texts& texts, size_t each, Scratch& scratch) {
  size_t bytes = VarintBytes(texts.size() / each);
  for (const std::string_view text : texts) bytes += TextBytes(text);
  TextWriter writer(scratch, bytes);
  writer.Number(texts.size() / each);
  for (const std::string_view text : texts) writer.Text(text);
  return writer.bytes();
}

// The operand's one string; nothing if it is something else.
inline std::optional<std::string_view> OnlyText(std::string_view operand) {
  std::string_view text;
  if (!TakeText(operand, &text) || !operand.empty()) return std::nullopt;
  return text;
}

// What a command that draws members asks for. Its operand: the seed in 8 bytes, and the count in 8.
struct DrawRequest {
  uint64_t seed;
  int64_t count;  // negative: the same member may be drawn more than once
};
inline std::optional<DrawRequest> ReadDrawRequest(std::string_view operand) {
  DrawRequest request;
  if (operand.size() != sizeof(request)) return std::nullopt;
  std::memcpy(&request, operand.data(), sizeof(request));
  return request;
}
inline std::string_view WriteDrawRequest(const DrawRequest& request, Scratch& scratch) {
  return scratch.Copy({reinterpret_cast<const char*>(&request), sizeof(request)});
}

// The most members that are drawn when one may come more than once: a reply of that many is some
// megabytes at least.
inline constexpr int64_t kDrawsMax = int64_t{1} << 20;
inline constexpr Status kTooManyDraws(Code::kInvalidArgument,
                                      "more than 1048576 members cannot be drawn at once");
static_assert(kDrawsMax == 1048576);
inline constexpr const char* kDrawnTooLarge = "the members that are drawn exceed the maximum size";

// Draws indexes below `members`, which is not 0: distinct ones, in the order of members, if the
// count is positive. Nothing if it is below -kDrawsMax.
std::optional<std::vector<size_t>> DrawIndexes(size_t members, const DrawRequest& request);
// Likewise for a function that only reads, so that no log of another library repeats it: one index
// is drawn without a walk.
std::optional<std::vector<size_t>> DrawIndexesToRead(size_t members, const DrawRequest& request);

// What HSCAN and its kin ask for. Its operand: two texts, the member to begin with, and a decimal,
// how many members are wanted.
struct MemberScanRequest {
  std::string_view from;
  uint64_t count;
};
inline std::optional<MemberScanRequest> ReadMemberScan(std::string_view operand) {
  MemberScanRequest request;
  std::string_view count;
  if (!TakeText(operand, &request.from) || !TakeText(operand, &count) || !operand.empty()) {
    return std::nullopt;
  }
  const auto number = ParseInt64(count);
  if (!number || *number < 1) return std::nullopt;
  request.count = static_cast<uint64_t>(*number);
  return request;
}
// The answer: a text, the member to go on from, or none at the end; then the members, as texts. Of
// a collection in one value it has all members, whatever was asked for.
inline FunctionEffect WholeMemberScan(const FunctionInput& input, std::string_view members) {
  if (!ReadMemberScan(input.operand)) return Failure(kBadOperand);
  TextWriter writer(*input.scratch, 1 + members.size());
  writer.NoText();
  writer.Bytes(members);
  return {.returned = writer.bytes()};
}

}  // namespace skep::types
