#include "skep/function.h"

#include <map>
#include <memory>
#include <mutex>

#include "base/decimal.h"

namespace skep {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Function>, std::less<>> by_name;  // guarded by mutex
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;  // lives as long as the process
  return *registry;
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
  // Appending nothing is a write, too: who watches the key hears of it, as in Redis.
  const std::string_view joined =
      now.empty() ? input.operand : input.scratch->Concat(now, input.operand);
  return {.action = FunctionEffect::Action::kReplace,
          .value = joined,
          .integer = static_cast<int64_t>(joined.size())};
}

}  // namespace

Result<const Function*> RegisterFunction(std::string_view name, FunctionBody body) {
  constexpr size_t kNameBytesMax = 64;
  if (name.empty() || name.size() > kNameBytesMax) {
    return Fail(Code::kInvalidArgument, "a function's name has 1 to 64 bytes", name.size());
  }
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto [at, fresh] = registry.by_name.try_emplace(std::string(name));
  if (!fresh) return Fail(Code::kInvalidArgument, "a function of that name is registered");
  at->second = std::make_unique<Function>(Function{.name = at->first, .body = body});
  return at->second.get();
}

const Function* FindFunction(std::string_view name) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  const auto at = registry.by_name.find(name);
  return at == registry.by_name.end() ? nullptr : at->second.get();
}

namespace functions {
const Function* const kAddDecimal = *RegisterFunction("add-decimal", AddDecimal);
const Function* const kAppend = *RegisterFunction("append", Append);
}  // namespace functions

}  // namespace skep
