// The functions of elements, of values that are in parts: each looks at a chunk of the value after
// the other, so that nothing of the size of the value is copied but what the caller asks for.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "engine/element_functions.h"
#include "engine/value_parts.h"

namespace skep {
namespace {

using Chunk = std::array<char, kElementChunkBytes>;
static_assert(kElementChunkBytes % sizeof(uint64_t) == 0);  // each element is in one chunk

// Calls visit(offset, bytes) for each chunk of the value, in order.
template <typename Visit>
void ForEachChunk(const ValueParts& value, Visit visit) {
  Chunk chunk;
  for (size_t at = 0; at < value.size(); at += chunk.size()) {
    const std::span<char> bytes = std::span(chunk).first(std::min(chunk.size(), value.size() - at));
    value.Read(at, bytes);
    visit(at, std::string_view(bytes.data(), bytes.size()));
  }
}

// What of `after` is from the first byte that differs from `before` to the last one.
PartEdit EditOf(size_t offset, std::string_view before, const char* after) {
  const auto first = std::ranges::mismatch(before, std::string_view(after, before.size())).in1;
  const size_t begin = first - before.begin();
  size_t end = before.size();
  while (end > begin && before[end - 1] == after[end - 1]) --end;
  return {.offset = offset + begin, .bytes = {after + begin, end - begin}};
}

PartsEffect UpdateParts(const PartsInput& input) {
  using Returns = UpdateOptions::Returns;
  const Function& f = *input.function;
  const auto update = ParseUpdate(input.operand);
  if (!update) return {.status = update.error()};
  const size_t size = input.value.size();
  if (const Status s = CheckUpdate(f, *update, size); !s.ok()) return {.status = s};
  PartsEffect effect = {.changes = true,
                        .size = size,
                        .integer = static_cast<int64_t>(size / BytesOf(f.element)),
                        .seen_bytes = size};
  char* const returned =
      update->returns == Returns::kNothing ? nullptr : input.scratch->Allocate(size);
  if (returned != nullptr) effect.returned = {returned, size};
  char* made = nullptr;
  ForEachChunk(input.value, [&](size_t offset, std::string_view before) {
    if (made == nullptr) made = input.scratch->Allocate(kElementChunkBytes);
    before.copy(made, before.size());
    const size_t sets = update->is_vector ? offset / BytesOf(f.element) : 0;
    f.kernel.update(f, made, update->operands.data() + sets * f.operand_bytes(), update->is_vector,
                    before.size() / BytesOf(f.element));
    if (returned != nullptr) {
      std::memcpy(returned + offset, update->returns == Returns::kOld ? before.data() : made,
                  before.size());
    }
    const PartEdit edit = EditOf(offset, before, made);
    if (edit.bytes.empty()) return;
    effect.edits.push_back(edit);
    made = nullptr;
  });
  return effect;
}

PartsEffect ReduceParts(const PartsInput& input) {
  const Function& f = *input.function;
  if (const Status s = CheckReduce(f, input.value.size(), input.operand); !s.ok()) {
    return {.status = s};
  }
  const std::string_view first = input.operand.empty() ? FirstState(f) : input.operand;
  char* const state = input.scratch->Allocate(kStateBytes);
  std::memcpy(state, first.data(), kStateBytes);
  ForEachChunk(input.value, [&](size_t, std::string_view bytes) {
    f.kernel.reduce(f, bytes.data(), bytes.size() / BytesOf(f.element), state);
  });
  PartsEffect effect = {.returned = {state, kStateBytes}, .seen_bytes = input.value.size()};
  if (f.state != Element::kF64) std::memcpy(&effect.integer, state, kStateBytes);
  return effect;
}

PartsEffect FilterParts(const PartsInput& input) {
  const Function& f = *input.function;
  if (const Status s = CheckFilter(f, input.value.size(), input.operand); !s.ok()) {
    return {.status = s};
  }
  std::string all;
  Chunk wanted;
  ForEachChunk(input.value, [&](size_t, std::string_view bytes) {
    const size_t count = f.kernel.filter(f, bytes.data(), input.operand.data(), wanted.data(),
                                         bytes.size() / BytesOf(f.element));
    all.append(wanted.data(), count * BytesOf(f.element));
  });
  return {.returned = input.scratch->Copy(all),
          .integer = static_cast<int64_t>(all.size() / BytesOf(f.element)),
          .seen_bytes = input.value.size()};
}

}  // namespace

PartsBody PartsBodyOf(const Function& function) {
  switch (function.kind) {
    case FunctionKind::kUpdate:
      return UpdateParts;
    case FunctionKind::kReduce:
      return function.reduces_in_order ? ReduceParts : nullptr;
    case FunctionKind::kFilter:
      return FilterParts;
    case FunctionKind::kPlain:
      break;
  }
  return nullptr;
}

}  // namespace skep
