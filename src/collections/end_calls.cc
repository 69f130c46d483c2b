#include "collections/end_calls.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/decimal.h"
#include "base/varint.h"
#include "types/text.h"

namespace skep::collections {
namespace {

// What a function does with which end. A push that wants a list finds one, so it is like the other.
struct EndFunction {
  const Function* push;  // null: it pops
  bool is_left;
};

const EndFunction* FindEndFunction(const Function& function) {
  static const auto* const functions = [] {
    auto* const made = new std::unordered_map<const Function*, EndFunction>;
    for (const bool is_left : {true, false}) {
      const std::string side = is_left ? "left" : "right";
      const Function* const push = FindFunction("list-push-" + side);
      made->emplace(push, EndFunction{push, is_left});
      made->emplace(FindFunction("list-pushx-" + side), EndFunction{push, is_left});
      made->emplace(FindFunction("list-pop-" + side), EndFunction{nullptr, is_left});
    }
    return made;
  }();
  const auto found = functions->find(&function);
  return found == functions->end() ? nullptr : &found->second;
}

}  // namespace

bool EndCalls::Has(const Function& function) { return FindEndFunction(function) != nullptr; }

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

bool EndCalls::Pop(End& end, const FunctionCall& call, Answer* answer) {
  std::string_view words = call.operand;
  std::string_view text;
  const auto count = types::TakeText(words, &text) ? ParseInt64(text) : std::nullopt;
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(count.value_or(1), 1));
  if (!Reach(end, wanted)) return false;
  std::string_view rest = end.body;
  const uint64_t seen = std::min(wanted, end.elements);
  for (uint64_t i = 0; i < seen; ++i) {
    if (!(end.is_left ? types::TakeElement(rest, &text) : types::TakeLastElement(rest, &text))) {
      answer->status = types::kNoCollection;
      return true;
    }
  }
  const size_t bytes = end.body.size() - rest.size();
  const size_t begin = end.is_left ? 0 : rest.size();
  const std::string value = SmallForm(seen, std::string_view(end.body).substr(begin, bytes));
  const FunctionEffect effect = RunFunction(*call.function, value, call.operand, access_.scratch());
  *answer = LargeCall::AnswerOf(effect);
  if (!effect.status.ok() || effect.action == FunctionEffect::Action::kKeep) return true;
  std::string_view left = effect.action == FunctionEffect::Action::kErase ? "" : effect.value;
  uint64_t left_elements = 0;
  if (!left.empty()) TakeVarint(left, &left_elements);
  end.body.replace(begin, bytes, left);
  end.elements -= seen - left_elements;
  members_ -= seen - left_elements;
  end.is_changed = true;
  return true;
}

bool EndCalls::RunOne(const FunctionCall& call, Answer* answer) {
  const EndFunction& what = *FindEndFunction(*call.function);
  End& end = what.is_left ? left_ : right_;
  return what.push != nullptr ? Push(end, *what.push, call.operand, answer)
                              : Pop(end, call, answer);
}

std::optional<Answer> EndCalls::Write() {
  if (!left_.is_changed && !right_.is_changed) {
    const bool is_same = access_.Record(key_, types::kList) == record_;
    return is_same ? std::optional(Answer()) : std::nullopt;
  }
  ListChange change(access_, key_, record_);
  for (const End* const end : {&left_, &right_}) {
    if (end->is_changed && !change.Replace(end->is_left, end->old, end->body)) return std::nullopt;
  }
  return change.Commit();
}

bool EndCalls::Run(std::span<const FunctionCall> calls, std::vector<Answer>* answers) {
  const size_t answered = answers->size();
  bool is_read = true;
  for (const FunctionCall& call : calls) {
    if (members_ == 0) break;
    is_read = RunOne(call, &answers->emplace_back());
    if (!is_read) break;
  }
  return FinishCalls(access_, is_read ? Write() : std::nullopt, calls.size(), answered, answers);
}

}  // namespace skep::collections
