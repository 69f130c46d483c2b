#include "engine/element_functions.h"

#include <array>
#include <cstring>

namespace skep {
namespace {

constexpr std::array<std::string_view, kElements> kNames = {"i8",  "i16", "i32", "i64", "u8",
                                                            "u16", "u32", "u64", "f32", "f64"};
constexpr std::array<size_t, kElements> kBytes = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};

FunctionEffect Refused(const char* why) { return {.status = {Code::kInvalidArgument, why}}; }

constexpr const char* kNoKey = "no such key";

FunctionEffect Update(const FunctionInput& input) {
  const Function& f = *input.function;
  const auto update = ParseUpdate(input.operand);
  if (!update) return {.status = update.error()};
  std::string_view old;
  if (input.value) {
    old = *input.value;
  } else if (update->create == 0) {
    return Refused(kNoKey);
  } else {
    const size_t bytes = update->create * BytesOf(f.element);
    if (bytes > input.value_bytes_max) {
      return {.status = {Code::kTooLarge, "value exceeds the maximum size", input.value_bytes_max}};
    }
    char* const zeros = input.scratch->Allocate(bytes);
    std::memset(zeros, 0, bytes);
    old = {zeros, bytes};
  }
  if (const Status s = CheckUpdate(f, *update, old.size()); !s.ok()) return {.status = s};
  const size_t count = old.size() / BytesOf(f.element);
  char* const elements = input.scratch->Allocate(old.size());
  CopyBytes(elements, old.data(), old.size());
  f.kernel.update(f, elements, update->operands.data(), update->is_vector, count);
  const std::string_view made(elements, old.size());
  FunctionEffect effect = {.action = FunctionEffect::Action::kReplace,
                           .value = made,
                           .integer = static_cast<int64_t>(count)};
  if (update->returns == UpdateOptions::Returns::kOld) effect.returned = old;
  if (update->returns == UpdateOptions::Returns::kNew) effect.returned = made;
  return effect;
}

FunctionEffect Reduce(const FunctionInput& input) {
  const Function& f = *input.function;
  if (!input.value) return Refused(kNoKey);
  if (const Status s = CheckReduce(f, input.value->size(), input.operand); !s.ok()) {
    return {.status = s};
  }
  const size_t count = input.value->size() / BytesOf(f.element);
  if (count == 0 && input.operand.empty() && f.starts_with_first) return {};
  const std::string_view first = input.operand.empty() ? FirstState(f) : input.operand;
  char* const state = input.scratch->Allocate(kStateBytes);
  std::memcpy(state, first.data(), kStateBytes);
  f.kernel.reduce(f, input.value->data(), count, state);
  FunctionEffect effect = {.returned = {state, kStateBytes}};
  if (f.state != Element::kF64) std::memcpy(&effect.integer, state, kStateBytes);
  return effect;
}

FunctionEffect Filter(const FunctionInput& input) {
  const Function& f = *input.function;
  if (!input.value) return Refused(kNoKey);
  if (const Status s = CheckFilter(f, input.value->size(), input.operand); !s.ok()) {
    return {.status = s};
  }
  const size_t bytes = BytesOf(f.element);
  char* const out = input.scratch->Allocate(input.value->size());
  const size_t wanted = f.kernel.filter(f, input.value->data(), input.operand.data(), out,
                                        input.value->size() / bytes);
  return {.returned = {out, wanted * bytes}, .integer = static_cast<int64_t>(wanted)};
}

}  // namespace

size_t BytesOf(Element element) { return kBytes[static_cast<size_t>(element)]; }

std::string_view NameOf(Element element) { return kNames[static_cast<size_t>(element)]; }

std::string_view NameOf(FunctionKind kind) {
  constexpr std::string_view kKinds[] = {"plain", "update", "reduce", "filter"};
  return kKinds[static_cast<size_t>(kind)];
}

std::optional<Element> ElementNamed(std::string_view name) {
  for (size_t i = 0; i < kElements; ++i) {
    if (kNames[i] == name) return static_cast<Element>(i);
  }
  return std::nullopt;
}

std::string_view UpdateOperand(const UpdateOptions& options, std::string_view operands,
                               Scratch& scratch) {
  char* const at = scratch.Allocate(kUpdateHeaderBytes + operands.size());
  std::memset(at, 0, kUpdateHeaderBytes);
  at[0] = static_cast<char>(options.returns);
  at[1] = options.is_vector ? 1 : 0;
  std::memcpy(at + 4, &options.create, sizeof(options.create));
  CopyBytes(at + kUpdateHeaderBytes, operands.data(), operands.size());
  return {at, kUpdateHeaderBytes + operands.size()};
}

Result<UpdateOperands> ParseUpdate(std::string_view operand) {
  constexpr auto kLast = static_cast<char>(UpdateOptions::Returns::kNew);
  if (operand.size() < kUpdateHeaderBytes || operand[0] < 0 || operand[0] > kLast) {
    return Fail(Code::kInvalidArgument, "not the operand of an update");
  }
  UpdateOperands parsed = {.returns = static_cast<UpdateOptions::Returns>(operand[0]),
                           .is_vector = operand[1] != 0,
                           .operands = operand.substr(kUpdateHeaderBytes)};
  std::memcpy(&parsed.create, operand.data() + 4, sizeof(parsed.create));
  return parsed;
}

Status CheckUpdate(const Function& update, const UpdateOperands& operands, size_t bytes) {
  if (const Status s = CheckElements(update, bytes); !s.ok()) return s;
  const size_t sets = operands.is_vector ? bytes / BytesOf(update.element) : 1;
  if (operands.operands.size() == update.operand_bytes() * sets) return {};
  return {Code::kInvalidArgument, operands.is_vector
                                      ? "the vector of operands does not fit the value's length"
                                      : "the number of operands is not the function's"};
}

FunctionBody BodyOf(FunctionKind kind) {
  switch (kind) {
    case FunctionKind::kUpdate:
      return Update;
    case FunctionKind::kReduce:
      return Reduce;
    case FunctionKind::kFilter:
      return Filter;
    case FunctionKind::kPlain:
      break;
  }
  return nullptr;
}

Status CheckElements(const Function& function, size_t bytes) {
  if (bytes % BytesOf(function.element) == 0) return {};
  return {Code::kInvalidArgument, "the value's length is not a multiple of the element's"};
}

Status CheckReduce(const Function& reduce, size_t bytes, std::string_view operand) {
  if (const Status s = CheckElements(reduce, bytes); !s.ok()) return s;
  if (operand.empty() || operand.size() == kStateBytes) return {};
  return {Code::kInvalidArgument, "a reduction begins with a state of 8 bytes"};
}

Status CheckFilter(const Function& filter, size_t bytes, std::string_view operand) {
  if (const Status s = CheckElements(filter, bytes); !s.ok()) return s;
  if (operand.size() == filter.operand_bytes()) return {};
  return {Code::kInvalidArgument, "the number of operands is not the function's"};
}

std::string_view FirstState(const Function& reduce) {
  return {reinterpret_cast<const char*>(&reduce.first_state), kStateBytes};
}

}  // namespace skep
