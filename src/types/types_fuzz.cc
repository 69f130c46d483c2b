// Runs the functions of collections on values and operands of any bytes.
//
// Input: which function, 1 byte; the length of the value, 2 bytes; the value; the operand. Without
// a value if the length is 65535. What a function stores must be a collection again: the same
// type's length function says how many members it has, at least one.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "skep/scratch.h"
#include "types/function_table.h"
#include "types/hash_fields.h"
#include "types/value_type.h"

namespace skep::types {
namespace {

std::vector<TypeFunction> All() {
  std::vector<TypeFunction> all;
  for (const auto functions :
       {HashFunctions(), SetFunctions(), ListFunctions(), SortedSetFunctions(),
        SortedSetJoinFunctions(), HyperLogLogFunctions(), HashDeadlineFunctions()}) {
    all.insert(all.end(), functions.begin(), functions.end());
  }
  return all;
}

FunctionEffect Run(const TypeFunction& function, std::optional<std::string_view> value,
                   std::string_view operand, Scratch& scratch) {
  return function.body({.value = value,
                        .operand = operand,
                        .scratch = &scratch,
                        .function = nullptr,
                        .value_bytes_max = size_t{64} << 20,
                        .now_ms = 1'000});
}

void Check(std::string_view input) {
  static const std::vector<TypeFunction> all = All();
  constexpr uint16_t kNoValue = 65535;
  if (input.size() < 3) return;
  const TypeFunction& function = all[static_cast<uint8_t>(input[0]) % all.size()];
  uint16_t bytes = 0;
  std::memcpy(&bytes, input.data() + 1, sizeof bytes);
  input.remove_prefix(3);
  std::optional<std::string_view> value;
  if (bytes != kNoValue) {
    value = input.substr(0, bytes);
    input.remove_prefix(value->size());
  }
  Scratch scratch;
  const FunctionEffect effect = Run(function, value, input, scratch);
  using Action = FunctionEffect::Action;
  SKEP_CHECK(effect.status.ok() || effect.action == Action::kKeep);
  SKEP_CHECK(!function.reads_only || effect.action == Action::kKeep);
  if (effect.action != Action::kReplace) return;
  SKEP_CHECK(effect.value.size() <= kOneValueBytesMax);
  const auto length = std::ranges::find_if(all, [&](const TypeFunction& other) {
    return other.type == function.type && other.name.ends_with("-length");
  });
  const FunctionEffect members = Run(*length, effect.value, {}, scratch);
  SKEP_CHECK(members.status.ok() && members.integer > 0);
}

}  // namespace
}  // namespace skep::types

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  skep::types::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
