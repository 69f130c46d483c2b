#include "server/bit_args.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/call.h"

namespace skep {
namespace {

constexpr int64_t kByteBits = 8;
constexpr std::string_view kWrongFieldType =
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 "
    "is.";

bool BitAt(std::string_view value, int64_t at) {
  return BitsOf(value, static_cast<uint64_t>(at), 1) != 0;
}

// Calls `visit` with each maximal run of whole bytes, and each bit outside of them, of the slice.
// Stops when `visit` returns false.
template <typename VisitBit, typename VisitBytes>
void ForEachPiece(Slice bits, const VisitBit& visit_bit, const VisitBytes& visit_bytes) {
  int64_t at = bits.begin;
  for (; at < bits.end && at % kByteBits != 0; ++at) {
    if (!visit_bit(at)) return;
  }
  const int64_t whole_end = std::max(at, bits.end / kByteBits * kByteBits);
  if (at < whole_end && !visit_bytes(at / kByteBits, whole_end / kByteBits)) return;
  for (at = whole_end; at < bits.end; ++at) {
    if (!visit_bit(at)) return;
  }
}

// The width and sign of a field; false if the word is no type.
bool ParseFieldType(std::string_view word, BitFieldOperation& to) {
  if (!word.starts_with('i') && !word.starts_with('u')) return false;
  to.is_signed = word[0] == 'i';
  const auto bits = ParseInt64(word.substr(1));
  if (!bits || *bits < 1 || *bits > (to.is_signed ? 64 : 63)) return false;
  to.bits = static_cast<uint8_t>(*bits);
  return true;
}

std::optional<BitFieldOperation::Overflow> OverflowNamed(std::string_view word) {
  using enum BitFieldOperation::Overflow;
  if (EqualsIgnoringCase(word, "wrap")) return kWrap;
  if (EqualsIgnoringCase(word, "sat")) return kSaturate;
  if (EqualsIgnoringCase(word, "fail")) return kFail;
  return std::nullopt;
}

std::optional<BitFieldOperation::Kind> KindNamed(std::string_view word) {
  using enum BitFieldOperation::Kind;
  if (EqualsIgnoringCase(word, "get")) return kGet;
  if (EqualsIgnoringCase(word, "set")) return kSet;
  if (EqualsIgnoringCase(word, "incrby")) return kAdd;
  return std::nullopt;
}

}  // namespace

Slice SliceOf(int64_t first, int64_t last, int64_t size) {
  const auto [begin, end] = ByteRange{first, last}.Of(static_cast<size_t>(size));
  return {.begin = static_cast<int64_t>(begin), .end = static_cast<int64_t>(end)};
}

std::optional<uint64_t> ParseBitOffset(std::string_view word, unsigned field_bits) {
  const bool counts_fields = field_bits > 0 && word.starts_with('#');
  const auto number = ParseInt64(word.substr(counts_fields ? 1 : 0));
  if (!number || *number < 0) return std::nullopt;
  int64_t offset = *number;
  if (counts_fields && __builtin_mul_overflow(offset, int64_t{field_bits}, &offset)) {
    return std::nullopt;
  }
  if (offset / kByteBits >= kRedisValueBytesMax) return std::nullopt;
  return static_cast<uint64_t>(offset);
}

int64_t CountBits(std::string_view value, Slice bits) {
  int64_t count = 0;
  const auto count_bit = [&](int64_t at) {
    count += BitAt(value, at) ? 1 : 0;
    return true;
  };
  const auto count_bytes = [&](int64_t begin, int64_t end) {
    for (; begin + 8 <= end; begin += 8) {
      uint64_t word = 0;
      std::memcpy(&word, value.data() + begin, sizeof(word));
      count += std::popcount(word);
    }
    for (; begin < end; ++begin) {
      count += std::popcount(static_cast<uint8_t>(value[static_cast<size_t>(begin)]));
    }
    return true;
  };
  ForEachPiece(bits, count_bit, count_bytes);
  return count;
}

std::optional<int64_t> FindBit(std::string_view value, Slice bits, bool bit) {
  std::optional<int64_t> found;
  const auto is_other = [&](int64_t at) {
    if (BitAt(value, at) == bit) found = at;
    return !found;
  };
  const auto are_others = [&](int64_t begin, int64_t end) {
    const char other = static_cast<char>(bit ? 0 : 0xff);
    const std::string_view bytes =
        value.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    const size_t at = bytes.find_first_not_of(other);
    if (at == std::string_view::npos) return true;
    int64_t first = (begin + static_cast<int64_t>(at)) * kByteBits;
    while (BitAt(value, first) != bit) ++first;
    found = first;
    return false;
  };
  ForEachPiece(bits, is_other, are_others);
  return found;
}

std::string_view ParseBitField(std::span<const std::string_view> words, BitFieldArgs& to) {
  using enum BitFieldOperation::Kind;
  auto overflow = BitFieldOperation::Overflow::kWrap;
  for (size_t i = 0; i < words.size();) {
    const size_t left = words.size() - i - 1;
    if (EqualsIgnoringCase(words[i], "overflow") && left >= 1) {
      const auto named = OverflowNamed(words[i + 1]);
      if (!named) return "ERR Invalid OVERFLOW type specified";
      overflow = *named;
      i += 2;
      continue;
    }
    const auto kind = KindNamed(words[i]);
    if (!kind || left < (*kind == kGet ? 2 : 3)) return kSyntaxError;
    BitFieldOperation operation{.kind = *kind, .overflow = overflow};
    if (!ParseFieldType(words[i + 1], operation)) return kWrongFieldType;
    const auto offset = ParseBitOffset(words[i + 2], operation.bits);
    if (!offset) return kNotABitOffset;
    operation.offset = *offset;
    i += 3;
    if (*kind != kGet) {
      to.writes = true;
      const auto value = ParseInt64(words[i++]);
      if (!value) return kNotAnInteger;
      operation.value = *value;
    }
    to.operations.push_back(operation);
  }
  return {};
}

}  // namespace skep
