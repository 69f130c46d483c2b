// Commands about the bits of values.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/decimal.h"
#include "server/bit_args.h"
#include "server/commands.h"
#include "server/optimistic_write.h"
#include "server/server_call.h"

namespace skep::commands {
namespace {

constexpr std::string_view kNotABit = "ERR bit is not an integer or out of range";
constexpr int64_t kByteBits = 8;

// The last words of BITCOUNT and BITPOS: [first [last [BYTE | BIT]]].
struct BitRange {
  int64_t first = 0;
  std::optional<int64_t> last;
  bool in_bits = false;

  // Of a value of so many bytes, in bits.
  Slice Of(size_t bytes) const {
    const auto size = static_cast<int64_t>(bytes) * (in_bits ? kByteBits : 1);
    const Slice slice = SliceOf(first, last.value_or(size - 1), size);
    const int64_t unit = in_bits ? 1 : kByteBits;
    return {.begin = slice.begin * unit, .end = slice.end * unit};
  }
};

// The unit of a range; nullopt if the word is no unit.
std::optional<bool> IsInBits(std::string_view word) {
  if (EqualsIgnoringCase(word, "bit")) return true;
  if (EqualsIgnoringCase(word, "byte")) return false;
  return std::nullopt;
}

enum class BitOperation : uint8_t { kAnd, kOr, kXor, kNot };

std::optional<BitOperation> BitOperationNamed(std::string_view word) {
  using enum BitOperation;
  if (EqualsIgnoringCase(word, "and")) return kAnd;
  if (EqualsIgnoringCase(word, "or")) return kOr;
  if (EqualsIgnoringCase(word, "xor")) return kXor;
  if (EqualsIgnoringCase(word, "not")) return kNot;
  return std::nullopt;
}

// Adds a value to a result; a shorter one goes on with zeros.
void Combine(BitOperation operation, std::string_view value, std::span<char> result) {
  const auto combine = [&](const auto& with) {
    for (size_t i = 0; i < value.size(); ++i)
      result[i] = static_cast<char>(with(result[i], value[i]));
  };
  switch (operation) {
    case BitOperation::kAnd:
      combine([](char a, char b) { return a & b; });
      std::ranges::fill(result.subspan(value.size()), '\0');
      return;
    case BitOperation::kOr:
      return combine([](char a, char b) { return a | b; });
    case BitOperation::kXor:
      return combine([](char a, char b) { return a ^ b; });
    case BitOperation::kNot:
      return combine([](char, char b) { return ~b; });
  }
}

// The result of BITOP over the values that a batch has read.
std::string_view CombineAll(BitOperation operation, const Batch& read, Scratch& scratch) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < read.size(); ++i) bytes = std::max(bytes, read.outcome(i).value.size());
  const std::span<char> result(scratch.Allocate(bytes), bytes);
  std::ranges::fill(result, '\0');
  if (operation != BitOperation::kNot) Combine(BitOperation::kOr, read.outcome(0).value, result);
  for (uint32_t i = operation == BitOperation::kNot ? 0 : 1; i < read.size(); ++i) {
    Combine(operation, read.outcome(i).value, result);
  }
  return {result.data(), result.size()};
}

}  // namespace

Plan PlanGetBit(const Call& call, Batch& batch) {
  const auto offset = ParseBitOffset(call.arg(2), 0);
  if (!offset) return Plan::Error(kNotABitOffset);
  const auto byte = static_cast<int64_t>(*offset / kByteBits);
  batch.GetRange(call.arg(1), {.first = byte, .last = byte});
  return Plan::Requests();
}

void FinishGetBit(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  const uint64_t offset = ParseBitOffset(call.arg(2), 0).value_or(0);
  call.reply().Integer(static_cast<int64_t>(BitsOf(out.value, offset % kByteBits, 1)));
}

Plan PlanSetBit(const Call& call, Batch& batch) {
  const auto offset = ParseBitOffset(call.arg(2), 0);
  if (!offset) return Plan::Error(kNotABitOffset);
  const auto bit = ParseInt64(call.arg(3));
  if (!bit || *bit < 0 || *bit > 1) return Plan::Error(kNotABit);
  batch.Apply(call.arg(1), functions::kSetBit, SetBitOperand(*offset, *bit == 1, batch.scratch()));
  return Plan::Requests();
}

// A range of bytes is read as a part of the value.
Plan PlanBitCount(const Call& call, Batch& batch) {
  const auto args = call.args();
  const bool is_in_bytes = args.size() == 4 || (args.size() == 5 && IsInBits(args[4]) == false);
  const auto first = is_in_bytes ? ParseInt64(args[2]) : std::nullopt;
  const auto last = is_in_bytes ? ParseInt64(args[3]) : std::nullopt;
  if (!first || !last) return PlanGet(call, batch);
  batch.GetRange(call.arg(1), {.first = *first, .last = *last});
  return Plan::Requests();
}

// As in Redis, an absent key is answered before the words behind it are looked at.
void FinishBitCount(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  const auto args = call.args();
  if (call.Refused(out)) return;
  if (!out.present) return call.reply().Integer(0);
  BitRange range;
  if (args.size() == 3 || args.size() > 5) return call.Error(kSyntaxError);
  if (args.size() > 3) {
    const auto first = ParseInt64(args[2]);
    range.last = ParseInt64(args[3]);
    if (!first || !range.last) return call.Error(kNotAnInteger);
    range.first = *first;
    if (*first < 0 && *range.last < 0 && *first > *range.last) return call.reply().Integer(0);
  }
  if (args.size() == 5) {
    const auto in_bits = IsInBits(args[4]);
    if (!in_bits) return call.Error(kSyntaxError);
    range.in_bits = *in_bits;
  }
  const bool is_part = batch.requests()[slot].has(Request::kByteRange);
  const Slice bits = (is_part ? BitRange{} : range).Of(out.value.size());
  call.reply().Integer(CountBits(out.value, bits));
}

Plan PlanBitPos(const Call& call, Batch& batch) {
  const auto bit = ParseInt64(call.arg(2));
  if (!bit) return Plan::Error(kNotAnInteger);
  if (*bit != 0 && *bit != 1) return Plan::Error("ERR The bit argument must be 1 or 0.");
  return PlanGet(call, batch);
}

void FinishBitPos(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  const auto args = call.args();
  if (call.Refused(out)) return;
  const bool bit = args[2] == "1";
  if (!out.present) return call.reply().Integer(bit ? -1 : 0);
  BitRange range;
  if (args.size() > 6) return call.Error(kSyntaxError);
  if (args.size() > 3) {
    const auto first = ParseInt64(args[3]);
    if (!first) return call.Error(kNotAnInteger);
    range.first = *first;
  }
  if (args.size() == 6) {
    const auto in_bits = IsInBits(args[5]);
    if (!in_bits) return call.Error(kSyntaxError);
    range.in_bits = *in_bits;
  }
  if (args.size() > 4) {
    range.last = ParseInt64(args[4]);
    if (!range.last) return call.Error(kNotAnInteger);
  }
  const Slice slice = range.Of(out.value.size());
  if (slice.empty()) return call.reply().Integer(-1);
  const auto found = FindBit(out.value, slice, bit);
  // Behind a value there are zeros, unless a range ends before.
  const bool is_behind = !found && !bit && !range.last;
  call.reply().Integer(is_behind ? slice.end : found.value_or(-1));
}

void RunBitOp(const ServerCall& call) {
  const auto operation = BitOperationNamed(call.arg(1));
  if (!operation) return call.Error(kSyntaxError);
  const auto sources = call.args().subspan(3);
  if (*operation == BitOperation::kNot && sources.size() != 1) {
    return call.Error("ERR BITOP NOT must be called with a single source key.");
  }
  size_t bytes = 0;
  const auto make = [&](const Batch& read, Batch& write) {
    const std::string_view result = CombineAll(*operation, read, write.scratch());
    bytes = result.size();
    bytes == 0 ? write.Delete(call.arg(2)) : write.Put(call.arg(2), result);
  };
  Batch write(Batch::Kind::kAtomic);
  if (!WriteIfUnchanged(call, sources, ValuesOf::kStrings, make, write)) return;
  call.reply().Integer(static_cast<int64_t>(bytes));
}

Plan PlanBitField(const Call& call, Batch& batch) {
  BitFieldArgs args;
  const std::string_view error = ParseBitField(call.args().subspan(2), args);
  if (!error.empty()) return Plan::Error(error);
  if (!args.writes) return PlanGet(call, batch);
  const size_t bytes = args.operations.size() * kBitFieldBytes;
  char* const operand = batch.scratch().Allocate(bytes);
  for (size_t i = 0; i < args.operations.size(); ++i) {
    WriteBitFieldOperation(args.operations[i], operand + i * kBitFieldBytes);
  }
  batch.Apply(call.arg(1), functions::kBitField, {operand, bytes});
  return Plan::Requests();
}

Plan PlanBitFieldRo(const Call& call, Batch& batch) {
  BitFieldArgs args;
  const std::string_view error = ParseBitField(call.args().subspan(2), args);
  if (!error.empty()) return Plan::Error(error);
  if (args.writes) return Plan::Error("ERR BITFIELD_RO only supports the GET subcommand");
  return PlanGet(call, batch);
}

void FinishBitField(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  BitFieldArgs args;
  ParseBitField(call.args().subspan(2), args);
  RespWriter reply = call.reply();
  reply.Array(args.operations.size());
  for (size_t i = 0; i < args.operations.size(); ++i) {
    const std::optional<int64_t> number =
        args.writes ? ReadBitFieldResult(out.value, i) : BitFieldOf(out.value, args.operations[i]);
    number ? reply.Integer(*number) : reply.Null();
  }
}

}  // namespace skep::commands
