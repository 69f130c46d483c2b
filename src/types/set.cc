#include "types/set.h"

#include <algorithm>
#include <iterator>

#include "base/compare_bytes.h"
#include "types/collection.h"
#include "types/function_table.h"
#include "types/short_texts.h"

namespace skep::types {
namespace {

bool Ascends(const Texts& members) {
  return std::ranges::adjacent_find(members, std::ranges::greater_equal()) == members.end();
}

std::optional<Texts> ReadMembers(const FunctionInput& input) {
  auto members = ReadTexts(input.value, 1);
  if (members && !Ascends(*members)) return std::nullopt;
  return members;
}

// The strings of an operand, ascending, each once.
std::optional<Texts> SortedOperand(std::string_view operand) {
  Texts texts;
  std::optional<std::string_view> text;
  while (!operand.empty()) {
    if (!TakeMaybeText(operand, &text)) return std::nullopt;
    if (text) texts.push_back(*text);
  }
  std::ranges::sort(texts);
  const auto rest = std::ranges::unique(texts);
  texts.erase(rest.begin(), rest.end());
  return texts;
}

FunctionEffect StoreMembers(const Texts& members, int64_t integer, Scratch& scratch) {
  return Stored(WriteTexts(members, 1, scratch), members.size(), integer);
}

// The answer with these members.
FunctionEffect MembersAnswer(const Texts& members, const FunctionInput& input) {
  size_t bytes = 0;
  for (const std::string_view member : members) bytes += TextBytes(member);
  if (bytes > input.value_bytes_max) {
    return Failure({Code::kTooLarge, "an answer exceeds the maximum size", input.value_bytes_max});
  }
  return {.returned = JoinTexts(members, *input.scratch),
          .integer = static_cast<int64_t>(members.size())};
}

// Adds one member: the bytes before and behind its place are copied as they are.
FunctionEffect AddMember(const FunctionInput& input, std::string_view added) {
  const auto set = ReadCounted(input.value);
  if (!set) return Failure(kNoCollection);
  std::string_view rest = set->body;
  size_t before = 0;  // bytes of members below the one to add
  std::string_view member;
  std::optional<std::string_view> last;
  for (uint64_t i = 0; i < set->members; ++i) {
    if (!TakeText(rest, &member) || (last && CompareBytes(*last, member) >= 0)) {
      return Failure(kNoCollection);
    }
    last = member;
    const int order = CompareBytes(member, added);
    if (order == 0) return Number(0);
    if (order < 0) before = set->body.size() - rest.size();
  }
  if (!rest.empty()) return Failure(kNoCollection);
  const size_t members = set->members + 1;
  TextWriter writer(*input.scratch, VarintBytes(members) + set->body.size() + TextBytes(added));
  writer.Number(members);
  writer.Bytes(set->body.substr(0, before));
  writer.Text(added);
  writer.Bytes(set->body.substr(before));
  return Stored(writer.bytes(), members, 1);
}

FunctionEffect AddMembers(const FunctionInput& input) {
  if (const auto only = OnlyText(input.operand)) return AddMember(input, *only);
  const auto added = SortedOperand(input.operand);
  if (!added) return Failure(kBadOperand);
  const auto members = ReadMembers(input);
  if (!members) return Failure(kNoCollection);
  Texts all;
  all.reserve(members->size() + added->size());
  std::ranges::set_union(*members, *added, std::back_inserter(all));
  const size_t count = all.size() - members->size();
  if (count == 0) return Number(0);
  return StoreMembers(all, static_cast<int64_t>(count), *input.scratch);
}

FunctionEffect RemoveMembers(const FunctionInput& input) {
  const auto removed = SortedOperand(input.operand);
  if (!removed) return Failure(kBadOperand);
  const auto members = ReadMembers(input);
  if (!members) return Failure(kNoCollection);
  Texts left;
  left.reserve(members->size());
  std::ranges::set_difference(*members, *removed, std::back_inserter(left));
  const size_t count = members->size() - left.size();
  if (count == 0) return Number(0);
  return StoreMembers(left, static_cast<int64_t>(count), *input.scratch);
}

FunctionEffect HasMember(const FunctionInput& input, std::string_view wanted) {
  const auto set = ReadCounted(input.value);
  if (!set) return Failure(kNoCollection);
  std::string_view rest = set->body;
  int order = -1;
  for (uint64_t i = 0; i < set->members && order < 0; ++i) {
    if (const size_t bytes = ShortTextBytes(rest); bytes != 0) [[likely]] {
      order = CompareBytes(ShortText(rest, bytes), wanted);
      rest = Behind(rest, bytes);
      continue;
    }
    std::string_view behind = rest;
    std::string_view member;
    if (!TakeText(behind, &member)) return Failure(kNoCollection);
    order = CompareBytes(member, wanted);
    rest = behind;
  }
  static constexpr std::string_view kAnswers[] = {{"\0", 1}, {"\1", 1}};
  const bool has = order == 0;
  return {.returned = kAnswers[has ? 1 : 0], .integer = has ? 1 : 0};
}

FunctionEffect HasMembers(const FunctionInput& input) {
  if (const auto only = OnlyText(input.operand)) return HasMember(input, *only);
  Texts wanted;
  if (!TakeTexts(input.operand, &wanted)) return Failure(kBadOperand);
  const auto members = ReadMembers(input);
  if (!members) return Failure(kNoCollection);
  char* const answer = input.scratch->Allocate(wanted.size());
  int64_t count = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    answer[i] = std::ranges::binary_search(*members, wanted[i]) ? 1 : 0;
    count += answer[i];
  }
  return {.returned = {answer, wanted.size()}, .integer = count};
}

FunctionEffect SetLength(const FunctionInput& input) {
  const auto set = ReadCounted(input.value);
  return set ? Number(static_cast<int64_t>(set->members)) : Failure(kNoCollection);
}

FunctionEffect AllMembers(const FunctionInput& input) {
  const auto set = ReadCounted(input.value);
  if (!set) return Failure(kNoCollection);
  return {.returned = set->body, .integer = static_cast<int64_t>(set->members)};
}

// The members that the operand, a DrawRequest, draws; in `left`, if it is not null, the others.
FunctionEffect DrawOf(const FunctionInput& input, Texts* left) {
  const auto request = ReadDrawRequest(input.operand);
  if (!request || (left != nullptr && request->count < 0)) return Failure(kBadOperand);
  const auto members = ReadMembers(input);
  if (!members) return Failure(kNoCollection);
  if (members->empty()) return {};
  const auto indexes = left == nullptr ? DrawIndexesToRead(members->size(), *request)
                                       : DrawIndexes(members->size(), *request);
  if (!indexes) return Failure(kTooManyDraws);
  Texts drawn;
  drawn.reserve(indexes->size());
  for (const size_t i : *indexes) drawn.push_back((*members)[i]);
  if (left != nullptr) std::ranges::set_difference(*members, drawn, std::back_inserter(*left));
  return MembersAnswer(drawn, input);
}

FunctionEffect DrawMembers(const FunctionInput& input) { return DrawOf(input, nullptr); }

FunctionEffect PopMembers(const FunctionInput& input) {
  Texts left;
  const FunctionEffect drawn = DrawOf(input, &left);
  if (!drawn.status.ok() || drawn.integer == 0) return drawn;
  FunctionEffect effect = StoreMembers(left, drawn.integer, *input.scratch);
  effect.returned = drawn.returned;
  return effect;
}

FunctionEffect TakeMember(const FunctionInput& input) {
  if (!OnlyText(input.operand)) return Failure(kBadOperand);
  if (!input.value) return {};
  FunctionEffect effect = RemoveMembers(input);
  effect.returned = effect.integer == 1 ? input.operand : kNoMember;
  return effect;
}

// The answer of two lists that ascend.
template <typename Join>
FunctionEffect JoinWithOperand(const FunctionInput& input, Join join) {
  Texts operand;
  if (!TakeTexts(input.operand, &operand) || !Ascends(operand)) return Failure(kBadOperand);
  const auto members = ReadMembers(input);
  if (!members) return Failure(kNoCollection);
  Texts joined;
  join(operand, *members, std::back_inserter(joined));
  return MembersAnswer(joined, input);
}

FunctionEffect UniteMembers(const FunctionInput& input) {
  return JoinWithOperand(input, std::ranges::set_union);
}
FunctionEffect IntersectMembers(const FunctionInput& input) {
  return JoinWithOperand(input, std::ranges::set_intersection);
}
FunctionEffect SubtractMembers(const FunctionInput& input) {
  return JoinWithOperand(input, std::ranges::set_difference);
}

FunctionEffect StoreOperand(const FunctionInput& input) {
  Texts members;
  if (!TakeTexts(input.operand, &members) || !Ascends(members)) return Failure(kBadOperand);
  return StoreMembers(members, static_cast<int64_t>(members.size()), *input.scratch);
}

FunctionEffect ScanMembers(const FunctionInput& input) {
  const auto found = ReadCounted(input.value);
  return found ? WholeMemberScan(input, found->body) : Failure(kNoCollection);
}

constexpr TypeFunction kSetFunctions[] = {
    {"set-add", AddMembers, kSet},
    {"set-remove", RemoveMembers, kSet},
    {"set-has", HasMembers, kSet, true},
    {"set-length", SetLength, kSet, true},
    {"set-all", AllMembers, kSet, true},
    {"set-pop", PopMembers, kSet},
    {"set-scan", ScanMembers, kSet, true},
    {"set-draw", DrawMembers, kSet, true},
    {"set-take", TakeMember, kSet},
    {"set-unite", UniteMembers, kSet, true},
    {"set-intersect", IntersectMembers, kSet, true},
    {"set-subtract", SubtractMembers, kSet, true},
    {"set-store", StoreOperand, kSet},
};

}  // namespace

std::span<const TypeFunction> SetFunctions() { return kSetFunctions; }

}  // namespace skep::types
