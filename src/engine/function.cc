#include "skep/function.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "base/decimal.h"
#include "base/mutex.h"
#include "engine/element_functions.h"
#include "engine/string_functions.h"
#include "types/function_table.h"
#include "types/hash_fields.h"
#include "types/large_counts.h"
#include "types/large_exchange.h"
#include "types/large_find.h"
#include "types/large_put.h"
#include "types/large_record.h"
#include "types/large_segment.h"

namespace skep {
namespace {

using Name = std::tuple<FunctionKind, std::string, Element>;

struct Registry {
  Mutex mutex;
  std::map<Name, std::unique_ptr<Function>> by_name SKEP_GUARDED_BY(mutex);

  Registry() {
    for (Function& function : BuiltInElementFunctions()) {
      function.body = BodyOf(function.kind);
      function.parts_body = PartsBodyOf(function);
      Add(std::move(function));
    }
    Add(types::HashFunctions());
    Add(types::HashDeadlineFunctions());
    Add(types::SetFunctions());
    Add(types::ListFunctions());
    Add(types::SortedSetFunctions());
    Add(types::SortedSetJoinFunctions());
    Add(types::HyperLogLogFunctions());
    Add(types::LargeCountsFunctions());
    Add(types::LargeExchangeFunctions());
    Add(types::LargeFindFunctions());
    Add(types::LargePutFunctions());
    Add(types::LargeRecordFunctions());
    Add(types::LargeSegmentFunctions());
  }
  void Add(std::span<const types::TypeFunction> functions) SKEP_REQUIRES(mutex) {
    for (const auto& [name, body, type, reads_only] : functions) {
      Add({.name = std::string(name), .body = body, .type = type, .reads_only = reads_only});
    }
  }
  // Returns null if there is one of that name already.
  const Function* Add(Function function) SKEP_REQUIRES(mutex) {
    const auto [at, fresh] = by_name.try_emplace({function.kind, function.name, function.element});
    if (!fresh) return nullptr;
    at->second = std::make_unique<Function>(std::move(function));
    return at->second.get();
  }
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;  // lives as long as the process
  return *registry;
}

Result<const Function*> Register(Function function) {
  constexpr size_t kNameBytesMax = 64;
  if (function.name.empty() || function.name.size() > kNameBytesMax) {
    return Fail(Code::kInvalidArgument, "a function's name has 1 to 64 bytes",
                function.name.size());
  }
  Registry& registry = TheRegistry();
  const MutexLock lock(registry.mutex);
  const Function* const added = registry.Add(std::move(function));
  if (added == nullptr) {
    return Fail(Code::kInvalidArgument, "a function of that name is registered");
  }
  return added;
}

Result<const Function*> RegisterOfParts(std::string_view name, FunctionBody body,
                                        PartsBody parts_body) {
  return Register({.name = std::string(name), .body = body, .parts_body = parts_body});
}

FunctionEffect AddDecimal(const FunctionInput& input) {
  const std::optional<int64_t> now = input.value ? ParseInt64(*input.value) : 0;
  const std::optional<int64_t> delta = ParseInt64(input.operand);
  if (!now || !delta) {
    return {.status = {Code::kInvalidArgument, "value is not an integer or out of range"}};
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(*now, *delta, &sum)) {
    return {.status = {Code::kInvalidArgument, "increment or decrement would overflow"}};
  }
  char* const at = input.scratch->Allocate(kDecimalBytesMax);
  const char* const end = WriteDecimal(at, sum);
  return {.action = FunctionEffect::Action::kReplace,
          .value = {at, static_cast<size_t>(end - at)},
          .integer = sum};
}

FunctionEffect Append(const FunctionInput& input) {
  const std::string_view now = input.value.value_or("");
  // Appending nothing is a write, too: it ends watches of the key, as in Redis.
  const std::string_view joined =
      now.empty() ? input.operand : input.scratch->Concat(now, input.operand);
  return {.action = FunctionEffect::Action::kReplace,
          .value = joined,
          .integer = static_cast<int64_t>(joined.size())};
}

}  // namespace

Result<const Function*> RegisterFunction(std::string_view name, FunctionBody body, uint8_t type) {
  return Register({.name = std::string(name), .body = body, .type = type});
}

Result<const Function*> function_internal::RegisterElements(Function function) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (std::ranges::any_of(function.name, is_upper)) {
    return Fail(Code::kInvalidArgument,
                "a function of elements has no capital letters in its name");
  }
  function.body = BodyOf(function.kind);
  function.parts_body = PartsBodyOf(function);
  return Register(std::move(function));
}

const Function* FindFunction(std::string_view name) {
  return FindFunction(FunctionKind::kPlain, name, {});
}

const Function* FindFunction(FunctionKind kind, std::string_view name, Element element) {
  Registry& registry = TheRegistry();
  const MutexLock lock(registry.mutex);
  const auto at = registry.by_name.find({kind, std::string(name), element});
  return at == registry.by_name.end() ? nullptr : at->second.get();
}

std::vector<const Function*> AllFunctions() {
  Registry& registry = TheRegistry();
  const MutexLock lock(registry.mutex);
  std::vector<const Function*> all;
  for (const auto& [name, function] : registry.by_name) all.push_back(function.get());
  return all;
}

namespace functions {
const Function* const kAddDecimal = *RegisterFunction("add-decimal", AddDecimal);
const Function* const kAppend = *RegisterOfParts("append", Append, AppendToParts);
const Function* const kSetRange = *RegisterOfParts("set-range", SetRange, SetRangeOfParts);
const Function* const kSetBit = *RegisterOfParts("set-bit", SetBit, SetBitOfParts);
const Function* const kBitField =
    *RegisterOfParts("bit-field", ChangeBitFields, ChangeBitFieldsOfParts);
const Function* const kAddFloat = *RegisterFunction("add-float", AddFloat);
}  // namespace functions

}  // namespace skep
