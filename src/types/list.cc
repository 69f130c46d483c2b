#include "types/list.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>

#include "types/collection.h"
#include "types/function_table.h"

namespace skep::types {
namespace {

constexpr const char* kNotInteger = "value is not an integer or out of range";

size_t ElementBytes(std::string_view text) {
  const size_t bytes = TextBytes(text);
  return bytes + VarintBytes(bytes);
}

// Writes an element; returns where it ends.
char* WriteElement(char* at, std::string_view text) {
  char* const end = WriteText(at, text);
  char* const length_end = WriteVarint(end, static_cast<size_t>(end - at));
  std::reverse(end, length_end);
  return length_end;
}

// The number of an operand's word; nothing if it is none.
std::optional<int64_t> TakeNumber(std::string_view& operand) {
  std::string_view text;
  return TakeText(operand, &text) ? ParseInt64(text) : std::nullopt;
}

// Elements [first, last] of a list of `length`, by indexes that may count from the end; empty if
// first > last.
struct Bounds {
  uint64_t first = 0;
  uint64_t last = 0;
  bool is_empty = false;
};
Bounds BoundsOf(int64_t first, int64_t last, uint64_t length) {
  const auto count = static_cast<int64_t>(length);
  if (first < 0) first = std::max<int64_t>(first + count, 0);
  if (last < 0) last += count;
  if (first > last || first >= count) return {.is_empty = true};
  return {.first = static_cast<uint64_t>(first),
          .last = static_cast<uint64_t>(std::min(last, count - 1))};
}

// The place in the body of the element of this index, at most the number of elements; npos if the
// bytes are wrong. Walks from the nearer end.
size_t PlaceOf(const Counted& list, uint64_t index) {
  std::string_view rest = list.body;
  std::string_view text;
  if (index <= list.members / 2) {
    for (; index > 0; --index) {
      if (!TakeElement(rest, &text)) return std::string_view::npos;
    }
    return list.body.size() - rest.size();
  }
  for (; index < list.members; ++index) {
    if (!TakeLastElement(rest, &text)) return std::string_view::npos;
  }
  return rest.size();
}

// Stores a list of so many elements, whose bytes are these pieces.
FunctionEffect StoreElements(uint64_t elements, std::initializer_list<std::string_view> pieces,
                             int64_t integer, Scratch& scratch) {
  size_t bytes = VarintBytes(elements);
  for (const std::string_view piece : pieces) bytes += piece.size();
  if (const Status s = FormError(bytes); !s.ok()) return Failure(s);
  TextWriter writer(scratch, bytes);
  writer.Number(elements);
  for (const std::string_view piece : pieces) writer.Bytes(piece);
  return Stored(writer.bytes(), elements, integer);
}

std::string_view ElementsOf(std::span<const std::string_view> texts, Scratch& scratch) {
  size_t bytes = 0;
  for (const std::string_view text : texts) bytes += ElementBytes(text);
  char* const begin = scratch.Allocate(bytes);
  char* at = begin;
  for (const std::string_view text : texts) at = WriteElement(at, text);
  return {begin, bytes};
}

template <bool kLeft, bool kOnlyIfThere>
FunctionEffect PushElements(const FunctionInput& input) {
  Texts texts;
  if (!TakeTexts(input.operand, &texts) || texts.empty()) return Failure(kBadOperand);
  if (kOnlyIfThere && !input.value) return Number(0);
  const auto list = ReadCounted(input.value);
  if (!list) return Failure(kNoCollection);
  if (kLeft) std::ranges::reverse(texts);
  const std::string_view added = ElementsOf(texts, *input.scratch);
  const uint64_t length = list->members + texts.size();
  const auto integer = static_cast<int64_t>(length);
  return kLeft ? StoreElements(length, {added, list->body}, integer, *input.scratch)
               : StoreElements(length, {list->body, added}, integer, *input.scratch);
}

template <bool kLeft>
FunctionEffect PopElements(const FunctionInput& input) {
  std::string_view operand = input.operand;
  const auto count = TakeNumber(operand);
  if (!count || *count < 0) return Failure(kBadOperand);
  const auto list = ReadCounted(input.value);
  if (!list) return Failure(kNoCollection);
  const uint64_t taken = std::min<uint64_t>(static_cast<uint64_t>(*count), list->members);
  if (taken == 0) return {};
  Texts texts;
  texts.reserve(taken);
  std::string_view rest = list->body;
  std::string_view text;
  for (uint64_t i = 0; i < taken; ++i) {
    if (!(kLeft ? TakeElement(rest, &text) : TakeLastElement(rest, &text))) {
      return Failure(kNoCollection);
    }
    texts.push_back(text);
  }
  FunctionEffect effect =
      StoreElements(list->members - taken, {rest}, static_cast<int64_t>(taken), *input.scratch);
  effect.returned = JoinTexts(texts, *input.scratch);
  return effect;
}

// Takes an element from one end and puts it at the other one, or the same.
FunctionEffect RotateElements(const FunctionInput& input) {
  Texts ends;
  if (!TakeTexts(input.operand, &ends) || ends.size() != 2) return Failure(kBadOperand);
  if (!input.value) return {};
  const auto list = ReadCounted(input.value);
  if (!list) return Failure(kNoCollection);
  std::string_view rest = list->body;
  std::string_view text;
  if (!(ends[0] == "left" ? TakeElement(rest, &text) : TakeLastElement(rest, &text))) {
    return Failure(kNoCollection);
  }
  const std::string_view moved = ElementsOf(std::span(&text, 1), *input.scratch);
  const auto length = static_cast<int64_t>(list->members);
  FunctionEffect effect = ends[1] == "left"
                              ? StoreElements(list->members, {moved, rest}, length, *input.scratch)
                              : StoreElements(list->members, {rest, moved}, length, *input.scratch);
  effect.returned = JoinTexts(std::span(&text, 1), *input.scratch);
  return effect;
}

FunctionEffect ListLength(const FunctionInput& input) {
  const auto list = ReadCounted(input.value);
  return list ? Number(static_cast<int64_t>(list->members)) : Failure(kNoCollection);
}

FunctionEffect RangeOfElements(const FunctionInput& input) {
  std::string_view operand = input.operand;
  const auto first = TakeNumber(operand);
  const auto last = TakeNumber(operand);
  if (!first || !last) return Failure(kBadOperand);
  const auto list = ReadCounted(input.value);
  if (!list) return Failure(kNoCollection);
  const Bounds bounds = BoundsOf(*first, *last, list->members);
  if (bounds.is_empty) return {};
  const size_t place = PlaceOf(*list, bounds.first);
  if (place == std::string_view::npos) return Failure(kNoCollection);
  std::string_view rest = list->body.substr(place);
  Texts texts;
  texts.reserve(bounds.last - bounds.first + 1);
  std::string_view text;
  for (uint64_t i = bounds.first; i <= bounds.last; ++i) {
    if (!TakeElement(rest, &text)) return Failure(kNoCollection);
    texts.push_back(text);
  }
  return {.returned = JoinTexts(texts, *input.scratch)};
}

// An element by its index.
struct ElementPlace {
  size_t begin, end;  // in the body
  std::string_view text;
};
enum class Lookup : uint8_t { kFound, kOutside, kBad };
Lookup FindElement(const Counted& list, int64_t index, ElementPlace* place) {
  const auto length = static_cast<int64_t>(list.members);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return Lookup::kOutside;
  place->begin = PlaceOf(list, static_cast<uint64_t>(index));
  if (place->begin == std::string_view::npos) return Lookup::kBad;
  std::string_view rest = list.body.substr(place->begin);
  if (!TakeElement(rest, &place->text)) return Lookup::kBad;
  place->end = list.body.size() - rest.size();
  return Lookup::kFound;
}

FunctionEffect ElementAt(const FunctionInput& input) {
  if (!input.value) return {};
  const auto list = ReadCounted(input.value);
  if (!list) return Failure(kNoCollection);
  std::string_view operand = input.operand;
  const auto index = TakeNumber(operand);
  if (!index) return Failure(kNotInteger);
  ElementPlace place;
  switch (FindElement(*list, *index, &place)) {
    case Lookup::kBad:
      return Failure(kNoCollection);
    case Lookup::kOutside:
      return {};
    case Lookup::kFound:
      return {.returned = JoinTexts(std::span(&place.text, 1), *input.scratch)};
  }
  return {};
}

FunctionEffect SetElement(const FunctionInput& input) {
  if (!input.value) return Failure("no such key");
  const auto list = ReadCounted(input.value);
  if (!list) return Failure(kNoCollection);
  std::string_view operand = input.operand;
  const auto index = TakeNumber(operand);
  if (!index) return Failure(kNotInteger);
  std::string_view text;
  if (!TakeText(operand, &text)) return Failure(kBadOperand);
  ElementPlace place;
  const Lookup found = FindElement(*list, *index, &place);
  if (found == Lookup::kBad) return Failure(kNoCollection);
  if (found == Lookup::kOutside) return Failure("index out of range");
  return StoreElements(
      list->members,
      {list->body.substr(0, place.begin), ElementsOf(std::span(&text, 1), *input.scratch),
       list->body.substr(place.end)},
      1, *input.scratch);
}

FunctionEffect InsertElement(const FunctionInput& input) {
  Texts words;
  if (!TakeTexts(input.operand, &words) || words.size() != 3) return Failure(kBadOperand);
  if (!input.value) return Number(0);
  const auto list = ReadCounted(input.value);
  if (!list) return Failure(kNoCollection);
  std::string_view rest = list->body;
  std::string_view text;
  for (uint64_t i = 0; i < list->members; ++i) {
    const size_t before = list->body.size() - rest.size();
    if (!TakeElement(rest, &text)) return Failure(kNoCollection);
    if (text != words[1]) continue;
    const size_t at = words[0] == "before" ? before : list->body.size() - rest.size();
    return StoreElements(
        list->members + 1,
        {list->body.substr(0, at), ElementsOf(std::span(&words[2], 1), *input.scratch),
         list->body.substr(at)},
        static_cast<int64_t>(list->members + 1), *input.scratch);
  }
  return Number(-1);
}

FunctionEffect RemoveElements(const FunctionInput& input) {
  std::string_view operand = input.operand;
  const auto count = TakeNumber(operand);
  std::string_view wanted;
  if (!count || !TakeText(operand, &wanted)) return Failure(kBadOperand);
  const auto list = ReadCounted(input.value);
  if (!list) return Failure(kNoCollection);
  auto texts = ReadListElements(*list);
  if (!texts) return Failure(kNoCollection);
  const uint64_t most = *count == 0  ? UINT64_MAX
                        : *count < 0 ? uint64_t{0} - static_cast<uint64_t>(*count)
                                     : static_cast<uint64_t>(*count);
  uint64_t removed = 0;
  const auto is_removed = [&](std::string_view text) {
    if (text != wanted || removed == most) return false;
    ++removed;
    return true;
  };
  if (*count < 0) std::ranges::reverse(*texts);
  std::erase_if(*texts, is_removed);
  if (*count < 0) std::ranges::reverse(*texts);
  if (removed == 0) return Number(0);
  return StoreElements(texts->size(), {ElementsOf(*texts, *input.scratch)},
                       static_cast<int64_t>(removed), *input.scratch);
}

FunctionEffect TrimElements(const FunctionInput& input) {
  std::string_view operand = input.operand;
  const auto first = TakeNumber(operand);
  const auto last = TakeNumber(operand);
  if (!first || !last) return Failure(kBadOperand);
  if (!input.value) return {};
  const auto list = ReadCounted(input.value);
  if (!list) return Failure(kNoCollection);
  const Bounds bounds = BoundsOf(*first, *last, list->members);
  if (bounds.is_empty) return Stored({}, 0, 0);
  const size_t begin = PlaceOf(*list, bounds.first);
  const size_t end = PlaceOf(*list, bounds.last + 1);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return Failure(kNoCollection);
  }
  return StoreElements(bounds.last - bounds.first + 1, {list->body.substr(begin, end - begin)}, 0,
                       *input.scratch);
}

FunctionEffect FindElements(const FunctionInput& input) {
  const auto request = ReadFindRequest(input.operand);
  if (!request) return Failure(kBadOperand);
  const auto list = ReadCounted(input.value);
  if (!list) return Failure(kNoCollection);
  const bool from_left = request->rank > 0;
  uint64_t to_skip = request->to_skip();
  const uint64_t looks =
      request->most == 0 ? list->members : std::min(request->most, list->members);
  std::string_view rest = list->body;
  std::string_view text;
  std::vector<std::string> found;
  for (uint64_t i = 0; i < looks; ++i) {
    if (!(from_left ? TakeElement(rest, &text) : TakeLastElement(rest, &text))) {
      return Failure(kNoCollection);
    }
    if (text != request->element) continue;
    if (to_skip > 0) {
      --to_skip;
      continue;
    }
    found.push_back(std::to_string(from_left ? i : list->members - 1 - i));
    if (found.size() == request->count) break;
  }
  const Texts texts(found.begin(), found.end());
  return {.returned = JoinTexts(texts, *input.scratch),
          .integer = static_cast<int64_t>(found.size())};
}

constexpr TypeFunction kListFunctions[] = {
    {"list-push-left", PushElements<true, false>, kList},
    {"list-push-right", PushElements<false, false>, kList},
    {"list-pushx-left", PushElements<true, true>, kList},
    {"list-pushx-right", PushElements<false, true>, kList},
    {"list-pop-left", PopElements<true>, kList},
    {"list-pop-right", PopElements<false>, kList},
    {"list-rotate", RotateElements, kList},
    {"list-length", ListLength, kList, true},
    {"list-range", RangeOfElements, kList, true},
    {"list-index", ElementAt, kList, true},
    {"list-set", SetElement, kList},
    {"list-insert", InsertElement, kList},
    {"list-remove", RemoveElements, kList},
    {"list-trim", TrimElements, kList},
    {"list-find", FindElements, kList, true},
};

}  // namespace

std::optional<std::vector<std::string_view>> ReadListElements(const Counted& list) {
  Texts texts;
  texts.reserve(list.members);
  std::string_view rest = list.body;
  std::string_view text;
  for (uint64_t i = 0; i < list.members; ++i) {
    if (!TakeElement(rest, &text)) return std::nullopt;
    texts.push_back(text);
  }
  return texts;
}

std::optional<FindRequest> ReadFindRequest(std::string_view operand) {
  FindRequest request;
  if (!TakeText(operand, &request.element)) return std::nullopt;
  const auto rank = TakeNumber(operand);
  const auto count = TakeNumber(operand);
  const auto most = TakeNumber(operand);
  if (!rank || *rank == 0 || !count || *count < 0 || !most || *most < 0) return std::nullopt;
  request.rank = *rank;
  request.count = static_cast<uint64_t>(*count);
  request.most = static_cast<uint64_t>(*most);
  return request;
}

bool TakeLastElement(std::string_view& from, std::string_view* text) {
  uint64_t bytes = 0;
  uint32_t shift = 0;
  size_t at = from.size();
  while (true) {
    if (at == 0 || shift > 28) return false;
    const auto byte = static_cast<uint8_t>(from[--at]);
    bytes |= uint64_t{byte & 0x7fu} << shift;
    shift += 7;
    if (byte < 0x80) break;
  }
  if (bytes > at) return false;
  std::string_view element = from.substr(at - bytes, bytes);
  if (!TakeText(element, text) || !element.empty()) return false;
  from = from.substr(0, at - bytes);
  return true;
}

void AppendElement(std::string& to, std::string_view text) {
  const size_t before = to.size();
  to.resize(before + ElementBytes(text));
  WriteElement(to.data() + before, text);
}

std::span<const TypeFunction> ListFunctions() { return kListFunctions; }

}  // namespace skep::types
