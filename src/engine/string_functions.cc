#include "engine/string_functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/float_text.h"

namespace skep {
namespace {

constexpr size_t kByteBits = 8;
constexpr size_t kOffsetBytes = sizeof(uint64_t);
constexpr Status kMalformedOperand{Code::kInvalidArgument, "not an operand of this function"};

template <typename T>
T LoadNumber(const char* at) {
  T number;
  std::memcpy(&number, at, sizeof(number));
  return number;
}

template <typename T>
char* StoreNumber(char* at, T number) {
  std::memcpy(at, &number, sizeof(number));
  return at + sizeof(number);
}

Status TooLarge(size_t value_bytes_max) {
  return {Code::kTooLarge, "value exceeds the maximum size", value_bytes_max};
}
FunctionEffect ValueTooLarge(const FunctionInput& input) {
  return {.status = TooLarge(input.value_bytes_max)};
}

// Whether a value may not have `bytes` bytes from the offset on.
bool IsTooFar(uint64_t offset, size_t bytes, size_t value_bytes_max) {
  return offset > value_bytes_max || bytes > value_bytes_max - offset;
}

// A copy of the value that has at least `bytes` bytes.
std::span<char> Grown(const FunctionInput& input, size_t bytes) {
  const std::string_view now = input.value.value_or("");
  const size_t size = std::max(bytes, now.size());
  char* const at = input.scratch->Allocate(size);
  CopyBytes(at, now.data(), now.size());
  std::fill(at + now.size(), at + size, '\0');
  return {at, size};
}

void SetBits(std::span<char> value, uint64_t offset, unsigned bits, uint64_t number) {
  for (unsigned i = 0; i < bits; ++i) {
    const uint64_t at = offset + i;
    const unsigned shift = kByteBits - 1 - at % kByteBits;
    const bool bit = (number >> (bits - 1 - i) & 1) != 0;
    char& byte = value[at / kByteBits];
    byte = static_cast<char>((byte & ~(1U << shift)) | (bit ? 1U << shift : 0U));
  }
}

// The number that `bits` bits hold of it.
int64_t Wrapped(uint64_t number, unsigned bits, bool is_signed) {
  const unsigned unused = 64 - bits;
  const uint64_t high = number << unused;
  if (is_signed) return static_cast<int64_t>(high) >> unused;
  return static_cast<int64_t>(high >> unused);
}

struct Sum {
  int64_t number = 0;
  bool overflows = false;
};

// The number that a kSet or kAdd makes of the one before.
Sum NewNumber(const BitFieldOperation& o, int64_t before) {
  using Wide = __int128;
  const Wide most = o.is_signed ? (Wide{1} << (o.bits - 1)) - 1 : (Wide{1} << o.bits) - 1;
  const Wide least = o.is_signed ? -most - 1 : 0;
  // The number that an unsigned field is set to is an unsigned one of 64 bits.
  const Wide set_to = o.is_signed ? Wide{o.value} : Wide{static_cast<uint64_t>(o.value)};
  const Wide sum = o.kind == BitFieldOperation::Kind::kSet ? set_to : Wide{before} + o.value;
  if (sum >= least && sum <= most) return {.number = static_cast<int64_t>(sum)};
  if (o.overflow == BitFieldOperation::Overflow::kSaturate) {
    // Redis goes by the room above the number, which has 64 bits there: a signed field that is set
    // to one of the least numbers becomes the greatest.
    const bool has_wrapped = o.kind == BitFieldOperation::Kind::kSet && most - sum > INT64_MAX;
    return {.number = static_cast<int64_t>(sum > most || has_wrapped ? most : least),
            .overflows = true};
  }
  return {.number = Wrapped(static_cast<uint64_t>(sum), o.bits, o.is_signed), .overflows = true};
}

// Reads the operation at `at`; nullopt if its fields are out of their bounds.
std::optional<BitFieldOperation> ReadOperation(const char* at) {
  const auto kind = static_cast<uint8_t>(at[0]);
  const auto overflow = static_cast<uint8_t>(at[1]);
  const BitFieldOperation o = {.kind = static_cast<BitFieldOperation::Kind>(kind),
                               .overflow = static_cast<BitFieldOperation::Overflow>(overflow),
                               .is_signed = at[2] != 0,
                               .bits = static_cast<uint8_t>(at[3]),
                               .offset = LoadNumber<uint64_t>(at + 4),
                               .value = LoadNumber<int64_t>(at + 4 + kOffsetBytes)};
  const bool is_valid = kind <= static_cast<uint8_t>(BitFieldOperation::Kind::kAdd) &&
                        overflow <= static_cast<uint8_t>(BitFieldOperation::Overflow::kFail) &&
                        o.bits >= 1 && o.bits <= (o.is_signed ? 64 : 63) &&
                        o.offset <= kBitOffsetMax;
  return is_valid ? std::optional(o) : std::nullopt;
}

// The bytes that a value needs for all writes of the operand; nullopt if that is malformed.
std::optional<uint64_t> BytesToWrite(std::string_view operand) {
  if (operand.size() % kBitFieldBytes != 0) return std::nullopt;
  uint64_t bytes = 0;
  for (size_t i = 0; i < operand.size(); i += kBitFieldBytes) {
    const auto o = ReadOperation(operand.data() + i);
    if (!o) return std::nullopt;
    if (o->kind == BitFieldOperation::Kind::kGet) continue;
    bytes = std::max(bytes, (o->offset + o->bits - 1) / kByteBits + 1);
  }
  return bytes;
}

// Bytes of a value, and how many are before them.
struct BytesFrom {
  uint64_t first;
  std::span<char> bytes;
};

struct BitFieldsDone {
  bool changed = false;      // a field is another one now
  std::string_view results;  // in the scratch
};

// Does the operations of a sound operand, in order. `bytes_of` gives bytes that have the fields of
// an operation, which are changed where they lie.
template <typename BytesOf>
BitFieldsDone DoBitFields(std::string_view operand, Scratch& scratch, BytesOf bytes_of) {
  BitFieldsDone done;
  const size_t count = operand.size() / kBitFieldBytes;
  char* const results = scratch.Allocate(count * kBitFieldResultBytes);
  char* result = results;
  for (size_t i = 0; i < count; ++i) {
    BitFieldOperation o = *ReadOperation(operand.data() + i * kBitFieldBytes);
    const auto [first, bytes] = bytes_of(o);
    o.offset -= first * kByteBits;
    const int64_t before = BitFieldOf({bytes.data(), bytes.size()}, o);
    const bool writes = o.kind != BitFieldOperation::Kind::kGet;
    const Sum sum = writes ? NewNumber(o, before) : Sum{.number = before};
    const bool fails = sum.overflows && o.overflow == BitFieldOperation::Overflow::kFail;
    if (writes && !fails) {
      SetBits(bytes, o.offset, o.bits, static_cast<uint64_t>(sum.number));
      done.changed |= sum.number != before;
    }
    *result = fails ? 0 : 1;
    const bool tells_before = o.kind == BitFieldOperation::Kind::kSet;
    result = StoreNumber(result + 1, fails ? int64_t{0} : tells_before ? before : sum.number);
  }
  done.results = {results, count * kBitFieldResultBytes};
  return done;
}

// Reads bytes of a value; those behind its end are zeros.
void ReadOrZero(const ValueParts& value, uint64_t offset, std::span<char> to) {
  const uint64_t there = value.size() - std::min<uint64_t>(offset, value.size());
  const size_t size = std::min<uint64_t>(there, to.size());
  if (size > 0) value.Read(offset, to.first(size));
  std::ranges::fill(to.subspan(size), '\0');
}

// Copies of the bytes that have the fields of an operand, each byte once, ascending.
std::vector<BytesFrom> FieldsOf(const PartsInput& input) {
  struct Bounds {
    uint64_t begin, end;
  };
  std::vector<Bounds> fields;
  for (size_t i = 0; i < input.operand.size(); i += kBitFieldBytes) {
    const BitFieldOperation o = *ReadOperation(input.operand.data() + i);
    fields.push_back({o.offset / kByteBits, (o.offset + o.bits - 1) / kByteBits + 1});
  }
  std::ranges::sort(fields, {}, &Bounds::begin);
  std::vector<BytesFrom> copies;
  for (size_t i = 0; i < fields.size();) {
    Bounds joined = fields[i];
    for (++i; i < fields.size() && fields[i].begin <= joined.end; ++i) {
      joined.end = std::max(joined.end, fields[i].end);
    }
    const size_t size = joined.end - joined.begin;
    copies.push_back({joined.begin, {input.scratch->Allocate(size), size}});
    ReadOrZero(input.value, joined.begin, copies.back().bytes);
  }
  return copies;
}

}  // namespace

FunctionEffect SetRange(const FunctionInput& input) {
  if (input.operand.size() <= kOffsetBytes) return {.status = kMalformedOperand};
  const auto offset = LoadNumber<uint64_t>(input.operand.data());
  const std::string_view bytes = input.operand.substr(kOffsetBytes);
  if (IsTooFar(offset, bytes.size(), input.value_bytes_max)) return ValueTooLarge(input);
  const std::span<char> value = Grown(input, offset + bytes.size());
  CopyBytes(value.data() + offset, bytes.data(), bytes.size());
  return {.action = FunctionEffect::Action::kReplace,
          .value = {value.data(), value.size()},
          .integer = static_cast<int64_t>(value.size())};
}

FunctionEffect SetBit(const FunctionInput& input) {
  if (input.operand.size() != kOffsetBytes + 1) return {.status = kMalformedOperand};
  const auto offset = LoadNumber<uint64_t>(input.operand.data());
  const bool bit = input.operand[kOffsetBytes] != 0;
  const uint64_t byte = offset / kByteBits;
  if (byte >= input.value_bytes_max) return ValueTooLarge(input);
  const std::string_view now = input.value.value_or("");
  const auto before = static_cast<int64_t>(BitsOf(now, offset, 1));
  if (byte < now.size() && (before != 0) == bit) return {.integer = before};
  const std::span<char> value = Grown(input, byte + 1);
  SetBits(value, offset, 1, bit ? 1 : 0);
  return {.action = FunctionEffect::Action::kReplace,
          .value = {value.data(), value.size()},
          .integer = before};
}

FunctionEffect ChangeBitFields(const FunctionInput& input) {
  const auto bytes = BytesToWrite(input.operand);
  if (!bytes) return {.status = kMalformedOperand};
  if (*bytes > input.value_bytes_max) return ValueTooLarge(input);
  const size_t before_bytes = input.value.value_or("").size();
  const std::span<char> value = Grown(input, *bytes);
  const BitFieldsDone done =
      DoBitFields(input.operand, *input.scratch,
                  [&](const BitFieldOperation&) { return BytesFrom{.first = 0, .bytes = value}; });
  FunctionEffect effect = {.returned = done.results};
  if (done.changed || value.size() > before_bytes) {
    effect.action = FunctionEffect::Action::kReplace;
    effect.value = {value.data(), value.size()};
  }
  return effect;
}

PartsEffect AppendToParts(const PartsInput& input) {
  const size_t before = input.value.size();
  if (IsTooFar(before, input.operand.size(), input.value_bytes_max)) {
    return {.status = TooLarge(input.value_bytes_max)};
  }
  const size_t size = before + input.operand.size();
  return {.changes = true,
          .size = size,
          .edits = {{.offset = before, .bytes = input.operand}},
          .integer = static_cast<int64_t>(size)};
}

PartsEffect SetRangeOfParts(const PartsInput& input) {
  if (input.operand.size() <= kOffsetBytes) return {.status = kMalformedOperand};
  const auto offset = LoadNumber<uint64_t>(input.operand.data());
  const std::string_view bytes = input.operand.substr(kOffsetBytes);
  if (IsTooFar(offset, bytes.size(), input.value_bytes_max)) {
    return {.status = TooLarge(input.value_bytes_max)};
  }
  const size_t size = std::max(input.value.size(), offset + bytes.size());
  return {.changes = true,
          .size = size,
          .edits = {{.offset = offset, .bytes = bytes}},
          .integer = static_cast<int64_t>(size)};
}

PartsEffect SetBitOfParts(const PartsInput& input) {
  if (input.operand.size() != kOffsetBytes + 1) return {.status = kMalformedOperand};
  const auto offset = LoadNumber<uint64_t>(input.operand.data());
  const bool bit = input.operand[kOffsetBytes] != 0;
  const uint64_t at = offset / kByteBits;
  if (at >= input.value_bytes_max) return {.status = TooLarge(input.value_bytes_max)};
  const std::span<char> byte(input.scratch->Allocate(1), 1);
  ReadOrZero(input.value, at, byte);
  const auto before = static_cast<int64_t>(BitsOf({byte.data(), 1}, offset % kByteBits, 1));
  if (at < input.value.size() && (before != 0) == bit) return {.integer = before};
  SetBits(byte, offset % kByteBits, 1, bit ? 1 : 0);
  return {.changes = true,
          .size = std::max(input.value.size(), at + 1),
          .edits = {{.offset = at, .bytes = {byte.data(), 1}}},
          .integer = before};
}

PartsEffect ChangeBitFieldsOfParts(const PartsInput& input) {
  const auto bytes = BytesToWrite(input.operand);
  if (!bytes) return {.status = kMalformedOperand};
  if (*bytes > input.value_bytes_max) return {.status = TooLarge(input.value_bytes_max)};
  const std::vector<BytesFrom> fields = FieldsOf(input);
  const auto field_of = [&](const BitFieldOperation& o) {
    const auto behind =
        std::ranges::upper_bound(fields, o.offset / kByteBits, {}, &BytesFrom::first);
    return *std::prev(behind);
  };
  const BitFieldsDone done = DoBitFields(input.operand, *input.scratch, field_of);
  const size_t size = std::max<size_t>(input.value.size(), *bytes);
  PartsEffect effect = {
      .changes = done.changed || size > input.value.size(), .size = size, .returned = done.results};
  if (!effect.changes) return effect;
  for (const auto& [first, field] : fields) {
    if (first >= size) break;
    const size_t within = std::min(field.size(), size - first);
    effect.edits.push_back({.offset = first, .bytes = {field.data(), within}});
  }
  return effect;
}

FunctionEffect AddFloat(const FunctionInput& input) {
  const auto now = input.value ? ParseLongDouble(*input.value) : 0;
  const auto more = ParseLongDouble(input.operand);
  if (!now || !more) return {.status = {Code::kInvalidArgument, "value is not a valid float"}};
  const long double sum = *now + *more;
  if (!std::isfinite(sum)) {
    return {.status = {Code::kInvalidArgument, "increment would produce NaN or Infinity"}};
  }
  const std::string_view text = input.scratch->Copy(TextOf(sum));
  return {.action = FunctionEffect::Action::kReplace, .value = text, .returned = text};
}

std::string_view SetRangeOperand(uint64_t offset, std::string_view bytes, Scratch& scratch) {
  char* const at = scratch.Allocate(kOffsetBytes + bytes.size());
  CopyBytes(StoreNumber(at, offset), bytes.data(), bytes.size());
  return {at, kOffsetBytes + bytes.size()};
}

std::string_view SetBitOperand(uint64_t bit_offset, bool bit, Scratch& scratch) {
  char* const at = scratch.Allocate(kOffsetBytes + 1);
  *StoreNumber(at, bit_offset) = bit ? 1 : 0;
  return {at, kOffsetBytes + 1};
}

void WriteBitFieldOperation(const BitFieldOperation& o, char* to) {
  to = StoreNumber(to, o.kind);
  to = StoreNumber(to, o.overflow);
  to = StoreNumber(to, static_cast<uint8_t>(o.is_signed ? 1 : 0));
  to = StoreNumber(to, o.bits);
  to = StoreNumber(to, o.offset);
  StoreNumber(to, o.value);
}

std::optional<int64_t> ReadBitFieldResult(std::string_view returned, size_t index) {
  const char* const at = returned.data() + index * kBitFieldResultBytes;
  if (*at == 0) return std::nullopt;
  return LoadNumber<int64_t>(at + 1);
}

bool HasWrittenBitField(std::string_view operand, std::string_view returned) {
  for (size_t i = 0; i < returned.size() / kBitFieldResultBytes; ++i) {
    const auto kind = static_cast<BitFieldOperation::Kind>(operand[i * kBitFieldBytes]);
    if (kind != BitFieldOperation::Kind::kGet && ReadBitFieldResult(returned, i)) return true;
  }
  return false;
}

uint64_t BitsOf(std::string_view value, uint64_t offset, unsigned bits) {
  uint64_t number = 0;
  for (uint64_t at = offset; at < offset + bits; ++at) {
    const uint64_t byte = at / kByteBits;
    const unsigned shift = kByteBits - 1 - at % kByteBits;
    const unsigned bit = byte < value.size() ? static_cast<uint8_t>(value[byte]) >> shift & 1 : 0;
    number = number << 1 | bit;
  }
  return number;
}

int64_t BitFieldOf(std::string_view value, const BitFieldOperation& field) {
  return Wrapped(BitsOf(value, field.offset, field.bits), field.bits, field.is_signed);
}

}  // namespace skep
