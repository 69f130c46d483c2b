#include "types/large_record.h"

#include "types/collection.h"

namespace skep::types {
namespace {

FunctionEffect ChangeRecord(const FunctionInput& input) {
  RecordChange change;
  int64_t deadlines = 0;
  const bool has_deadlines = input.operand.size() == sizeof(change) + sizeof(deadlines);
  if (input.operand.size() != sizeof(change) && !has_deadlines) return Failure(kBadOperand);
  std::memcpy(&change, input.operand.data(), sizeof(change));
  if (has_deadlines) {
    std::memcpy(&deadlines, input.operand.data() + sizeof(change), sizeof(deadlines));
  }
  auto record = input.value ? ReadLargeRecord(*input.value) : std::nullopt;
  if (!record || record->id != change.id) {
    return Failure(Status(Code::kAborted, "the collection was replaced"));
  }
  if (record->first != change.levels) {
    return Failure(Status(Code::kAborted, "the counts of the collection have another level"));
  }
  const auto before = static_cast<int64_t>(record->members);
  if (before + change.fewest <= 0 && before + change.members > 0) {
    return Failure(Status(Code::kAborted, "the collection was empty in between"));
  }
  record->members += static_cast<uint64_t>(change.members);
  record->bytes += static_cast<uint64_t>(change.bytes);
  record->last += static_cast<uint64_t>(deadlines);
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

constexpr TypeFunction kLargeRecordFunctions[] = {
    {"large-hash-change", ChangeRecord, kLargeForm + kHash},
    {"large-set-change", ChangeRecord, kLargeForm + kSet},
    {"large-list-store", StoreRecord, kLargeForm + kList},
    {"large-zset-change", ChangeRecord, kLargeForm + kSortedSet},
};

}  // namespace

std::span<const TypeFunction> LargeRecordFunctions() { return kLargeRecordFunctions; }

}  // namespace skep::types
