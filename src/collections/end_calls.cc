#include "collections/end_calls.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/decimal.h"
#include "base/varint.h"
#include "collections/large_call.h"
#include "types/text.h"

namespace skep::collections {
namespace {

enum class Deed : uint8_t { kPush, kPop, kRotate };

// What a function does with which end. A push that wants a list finds one, so it is like the other.
struct EndFunction {
  Deed deed;
  bool is_left = false;
  const Function* push = nullptr;
};

const EndFunction* FindEndFunction(const Function& function) {
  static const auto* const functions = [] {
    auto* const made = new std::unordered_map<const Function*, EndFunction>;
    for (const bool is_left : {true, false}) {
      const std::string side = is_left ? "left" : "right";
      const Function* const push = FindFunction("list-push-" + side);
      made->emplace(push, EndFunction{Deed::kPush, is_left, push});
      made->emplace(FindFunction("list-pushx-" + side), EndFunction{Deed::kPush, is_left, push});
      made->emplace(FindFunction("list-pop-" + side), EndFunction{Deed::kPop, is_left});
    }
    made->emplace(FindFunction("list-rotate"), EndFunction{Deed::kRotate});
    return made;
  }();
  const auto found = functions->find(&function);
  return found == functions->end() ? nullptr : &found->second;
}

}  // namespace

bool EndCalls::IsAboutEnds(const Function& function) {
  return FindEndFunction(function) != nullptr;
}

// Reads segments until the end has so many elements, at least one segment, or all of them. False:
// the list has changed, or a read was refused.
bool EndCalls::Reach(End& end, uint64_t elements) {
  End& other = end.is_left ? right_ : left_;
  const uint64_t segments = record_.last - record_.first + 1;
  while (end.old.empty() || end.elements < elements) {
    if (end.old.size() + other.old.size() == segments) {
      if (other.old.empty()) return true;
      end.body = end.is_left ? end.body + other.body : other.body + end.body;
      end.old.insert(end.old.end(), other.old.rbegin(), other.old.rend());
      end.elements += other.elements;
      end.is_changed |= other.is_changed;
      other = {.is_left = other.is_left};
      return true;
    }
    const uint64_t number =
        end.is_left ? record_.first + end.old.size() : record_.last - end.old.size();
    auto bytes = access_.Get(ElementsKey(record_.id, number), types::kSegment);
    const auto segment = bytes ? types::ReadSegment(*bytes) : std::nullopt;
    if (!segment) return false;
    end.body.insert(end.is_left ? end.body.size() : 0, segment->body);
    end.elements += segment->pieces;
    end.old.push_back(std::move(*bytes));
  }
  return true;
}

bool EndCalls::Push(End& end, const Function& push, std::string_view operand, Answer* answer) {
  const FunctionEffect effect = RunFunction(push, std::nullopt, operand, access_.scratch());
  *answer = LargeCall::AnswerOf(effect);
  if (!effect.status.ok()) return true;
  std::string_view added = effect.value;
  uint64_t count = 0;
  if (!Reach(end, 0) || !TakeVarint(added, &count)) return false;
  end.body.insert(end.is_left ? 0 : end.body.size(), added);
  end.elements += count;
  end.is_changed = true;
  members_ += count;
  answer->integer = static_cast<int64_t>(members_);
  return true;
}

// Views the outermost elements of an end, or all if there are fewer. False: as for Make, or the
// bytes are no elements.
bool EndCalls::Take(End& end, uint64_t elements, std::string_view* taken) {
  if (!Reach(end, elements)) return false;
  std::string_view rest = end.body;
  std::string_view text;
  for (uint64_t i = std::min(elements, end.elements); i > 0; --i) {
    if (end.is_left ? types::TakeElement(rest, &text) : types::TakeLastElement(rest, &text)) {
      continue;
    }
    access_.set_status(types::kNoCollection);
    return false;
  }
  const size_t bytes = end.body.size() - rest.size();
  *taken = std::string_view(end.body).substr(end.is_left ? 0 : rest.size(), bytes);
  return true;
}

bool EndCalls::Pop(End& end, const FunctionCall& call, Answer* answer) {
  std::string_view words = call.operand;
  std::string_view text;
  const auto count = types::TakeText(words, &text) ? ParseInt64(text) : std::nullopt;
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(count.value_or(1), 1));
  std::string_view taken;
  if (!Take(end, wanted, &taken)) return false;
  const uint64_t seen = std::min(wanted, end.elements);
  const std::string value = SmallForm(seen, taken);
  const FunctionEffect effect = RunFunction(*call.function, value, call.operand, access_.scratch());
  *answer = LargeCall::AnswerOf(effect);
  if (!effect.status.ok() || effect.action == FunctionEffect::Action::kKeep) return true;
  std::string_view left = effect.action == FunctionEffect::Action::kErase ? "" : effect.value;
  uint64_t left_elements = 0;
  if (!left.empty()) TakeVarint(left, &left_elements);
  end.body.replace(end.is_left ? 0 : end.body.size() - taken.size(), taken.size(), left);
  end.elements -= seen - left_elements;
  members_ -= seen - left_elements;
  end.is_changed = true;
  return true;
}

// Takes the element of one end to the other one, or leaves it.
bool EndCalls::Rotate(const FunctionCall& call, Answer* answer) {
  std::string_view words = call.operand;
  std::string_view from;
  std::string_view to;
  std::string_view taken;
  End& source = types::TakeText(words, &from) && from == "left" ? left_ : right_;
  if (!Take(source, 1, &taken)) return false;
  // A list of this one element says what the function returns, and whether its operand is right.
  const std::string value = SmallForm(1, taken);
  const FunctionEffect effect = RunFunction(*call.function, value, call.operand, access_.scratch());
  *answer = LargeCall::AnswerOf(effect);
  if (!effect.status.ok()) return true;
  answer->integer = static_cast<int64_t>(members_);
  if (!types::TakeText(words, &to) || to == from) return true;
  const std::string element(taken);
  End& target = source.is_left ? right_ : left_;
  source.body.erase(source.is_left ? 0 : source.body.size() - element.size(), element.size());
  --source.elements;
  source.is_changed = true;
  if (!Reach(target, 0)) return false;
  target.body.insert(target.is_left ? 0 : target.body.size(), element);
  ++target.elements;
  target.is_changed = true;
  return true;
}

bool EndCalls::Make(const FunctionCall& call, Answer* answer) {
  const EndFunction& what = *FindEndFunction(*call.function);
  End& end = what.is_left ? left_ : right_;
  switch (what.deed) {
    case Deed::kPush:
      return Push(end, *what.push, call.operand, answer);
    case Deed::kPop:
      return Pop(end, call, answer);
    case Deed::kRotate:
      return Rotate(call, answer);
  }
  return false;
}

bool EndCalls::AddTo(Batch& batch) {
  for (const End* const end : {&left_, &right_}) {
    if (end->is_changed && !change_.Replace(end->is_left, end->old, end->body)) return false;
  }
  change_.AddTo(batch);
  return true;
}

}  // namespace skep::collections
