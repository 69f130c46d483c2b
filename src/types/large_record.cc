#include "types/large_record.h"

#include "types/collection.h"

namespace skep::types {
namespace {

FunctionEffect ChangeRecord(const FunctionInput& input) {
  RecordChange change;
  if (input.operand.size() != sizeof(change)) return Failure(kBadOperand);
  std::memcpy(&change, input.operand.data(), sizeof(change));
  auto record = input.value ? ReadLargeRecord(*input.value) : std::nullopt;
  if (!record || record->id != change.id) {
    return Failure(Status(Code::kAborted, "the collection was replaced"));
  }
  const auto before = static_cast<int64_t>(record->members);
  if (before + change.fewest <= 0 && before + change.members > 0) {
    return Failure(Status(Code::kAborted, "the collection was empty in between"));
  }
  record->members += static_cast<uint64_t>(change.members);
  record->bytes += static_cast<uint64_t>(change.bytes);
  ++record->writes;
  if (record->members == 0) return {.action = FunctionEffect::Action::kErase};
  return {.action = FunctionEffect::Action::kReplace,
          .value = input.scratch->Copy(BytesOf(*record)),
          .returned = {},
          .integer = static_cast<int64_t>(record->members)};
}

// Replaces the record of a list, which a condition of the batch has compared.
FunctionEffect StoreRecord(const FunctionInput& input) {
  if (!ReadLargeRecord(input.operand)) return Failure(kBadOperand);
  if (!input.value) return Failure(Status(Code::kAborted, "the collection was replaced"));
  return {.action = FunctionEffect::Action::kReplace, .value = input.operand};
}

constexpr Status kNotMine(Code::kAborted, "the member is of another block");

FunctionEffect AddToCount(const FunctionInput& input) {
  int64_t delta = 0;
  if (input.operand.size() < sizeof(delta)) return Failure(kBadOperand);
  std::memcpy(&delta, input.operand.data(), sizeof(delta));
  if (!input.value) return Failure(kNotMine);
  std::string_view rest = *input.value;
  std::optional<std::string_view> fence;
  uint64_t count = 0;
  if (!TakeMaybeText(rest, &fence) || !TakeVarint(rest, &count)) return Failure(kNoCollection);
  if (fence && input.operand.substr(sizeof(delta)) >= *fence) return Failure(kNotMine);
  count += static_cast<uint64_t>(delta);
  TextWriter writer(*input.scratch, (fence ? TextBytes(*fence) : 1) + VarintBytes(count));
  fence ? writer.Text(*fence) : writer.NoText();
  writer.Number(count);
  return {.action = FunctionEffect::Action::kReplace,
          .value = writer.bytes(),
          .returned = {},
          .integer = static_cast<int64_t>(count)};
}

constexpr TypeFunction kLargeRecordFunctions[] = {
    {"large-hash-change", ChangeRecord, kLargeForm + kHash},
    {"large-set-change", ChangeRecord, kLargeForm + kSet},
    {"large-list-store", StoreRecord, kLargeForm + kList},
    {"large-zset-change", ChangeRecord, kLargeForm + kSortedSet},
    {"large-count-add", AddToCount, kSegment},
};

}  // namespace

std::span<const TypeFunction> LargeRecordFunctions() { return kLargeRecordFunctions; }

}  // namespace skep::types
