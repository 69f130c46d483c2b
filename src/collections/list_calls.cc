#include "collections/list_calls.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/varint.h"
#include "collections/large_call.h"
#include "types/collection.h"
#include "types/list.h"
#include "types/text.h"

namespace skep::collections {
namespace {

// A walk through the segments of a list may be so many times the portion.
constexpr uint64_t kWalkShare = 16;

enum class Deed : uint8_t { kPush, kPop, kRotate, kSet, kInsert, kRemove, kTrim };

// A ListFunction tells what a function of lists does, and at which end. A push that requires a list
// (LPUSHX) always finds one here, so it is the same as a push that makes one.
struct ListFunction {
  Deed deed;
  bool is_left = false;
};

const ListFunction* FindListFunction(const Function& function) {
  static const auto* const functions = [] {
    auto* const made = new std::unordered_map<const Function*, ListFunction>;
    for (const bool is_left : {true, false}) {
      const std::string side = is_left ? "left" : "right";
      made->emplace(FindFunction("list-push-" + side), ListFunction{Deed::kPush, is_left});
      made->emplace(FindFunction("list-pushx-" + side), ListFunction{Deed::kPush, is_left});
      made->emplace(FindFunction("list-pop-" + side), ListFunction{Deed::kPop, is_left});
    }
    made->emplace(FindFunction("list-rotate"), ListFunction{Deed::kRotate});
    made->emplace(FindFunction("list-set"), ListFunction{Deed::kSet});
    made->emplace(FindFunction("list-insert"), ListFunction{Deed::kInsert});
    made->emplace(FindFunction("list-remove"), ListFunction{Deed::kRemove});
    made->emplace(FindFunction("list-trim"), ListFunction{Deed::kTrim});
    return made;
  }();
  const auto found = functions->find(&function);
  return found == functions->end() ? nullptr : &found->second;
}

// The elements that a trim keeps: none if to < from.
struct Kept {
  int64_t from;
  int64_t to;
  uint64_t elements() const { return to < from ? 0 : static_cast<uint64_t>(to - from + 1); }
};

// The elements of a list of `members` that a trim keeps; nothing: the operand has no two numbers.
std::optional<Kept> KeptOf(int64_t members, std::string_view operand) {
  const auto first = TakeInteger(operand);
  const auto last = TakeInteger(operand);
  if (!first || !last) return std::nullopt;
  return Kept{.from = std::max<int64_t>(*first < 0 ? *first + members : *first, 0),
              .to = std::min(*last < 0 ? *last + members : *last, members - 1)};
}

}  // namespace

bool ListCalls::Has(const Function& function) { return FindListFunction(function) != nullptr; }

bool ListCalls::IsLong(const Access& access, const types::LargeRecord& record,
                       const FunctionCall& call) {
  std::string_view operand = call.operand;
  switch (FindListFunction(*call.function)->deed) {
    case Deed::kPop: {
      const int64_t wanted = std::max<int64_t>(TakeInteger(operand).value_or(1), 1);
      return access.IsTooLong(record, std::min(static_cast<uint64_t>(wanted), record.members));
    }
    case Deed::kTrim: {
      const auto kept = KeptOf(static_cast<int64_t>(record.members), operand);
      return kept && kept->elements() > 0 &&
             access.IsTooLong(record, record.members - kept->elements());
    }
    case Deed::kInsert:
    case Deed::kRemove:
      return access.IsTooLong(record, record.members / kWalkShare);
    case Deed::kPush:
    case Deed::kRotate:
    case Deed::kSet:
      return false;
  }
  return false;
}

// ---- The ends ----

// Reads segments until the end has so many elements, at least one segment, or all of them. False:
// the list has changed, or a read was refused.
bool ListCalls::Reach(End& end, uint64_t elements) {
  End& other = end.is_left ? right_ : left_;
  const uint64_t segments = record_.last - record_.first + 1;
  const auto take_over = [&](Stretch& inner) {
    end.now.body.insert(end.is_left ? end.now.body.size() : 0, inner.body);
    end.now.elements += inner.elements;
    end.now.read_bytes += inner.read_bytes;
    end.now.is_changed |= inner.is_changed;
  };
  while (end.old.empty() || end.now.elements < elements) {
    if (end.old.size() + other.old.size() == segments) {
      if (other.old.empty()) return true;
      take_over(other.now);
      end.old.insert(end.old.end(), other.old.rbegin(), other.old.rend());
      other = {.is_left = other.is_left};
      return true;
    }
    const uint64_t number =
        end.is_left ? record_.first + end.old.size() : record_.last - end.old.size();
    if (const auto changed = middle_.find(number); changed != middle_.end()) {
      take_over(changed->second.now);
      end.old.push_back(std::move(changed->second.old));
      middle_.erase(changed);
      continue;
    }
    auto bytes = access_.Get(ElementsKey(record_.id, number), types::kSegment);
    const auto segment = bytes ? types::ReadSegment(*bytes) : std::nullopt;
    if (!segment) return false;
    Stretch read = StretchOf(*segment);
    take_over(read);
    end.old.push_back(std::move(*bytes));
  }
  return true;
}

ListCalls::Stretch ListCalls::StretchOf(const Segment& segment) {
  return {.body = std::string(segment.body),
          .elements = segment.pieces,
          .read_bytes = segment.body.size()};
}

bool ListCalls::Push(End& end, const FunctionCall& call, Answer* answer) {
  texts_.clear();
  if (!types::TakeTexts(call.operand, &texts_) || texts_.empty()) {
    AnswerError(call, call.operand, answer);
    return true;
  }
  if (!Reach(end, 0)) return false;
  if (end.is_left) {
    std::string added;
    for (size_t i = texts_.size(); i-- > 0;) types::AppendElement(added, texts_[i]);
    end.now.body.insert(0, added);
  } else {
    for (const std::string_view text : texts_) types::AppendElement(end.now.body, text);
  }
  end.now.elements += texts_.size();
  end.now.is_changed = true;
  members_ += texts_.size();
  answer->integer = static_cast<int64_t>(members_);
  return true;
}

// Views the outermost elements of an end, or all if there are fewer. False: as for Make, or the
// bytes are no elements.
bool ListCalls::Take(End& end, uint64_t elements, std::string_view* taken) {
  if (!Reach(end, elements)) return false;
  std::string_view rest = end.now.body;
  std::string_view text;
  for (uint64_t i = std::min(elements, end.now.elements); i > 0; --i) {
    if (end.is_left ? types::TakeElement(rest, &text) : types::TakeLastElement(rest, &text)) {
      continue;
    }
    access_.set_status(types::kNoCollection);
    return false;
  }
  const size_t bytes = end.now.body.size() - rest.size();
  *taken = std::string_view(end.now.body).substr(end.is_left ? 0 : rest.size(), bytes);
  return true;
}

bool ListCalls::Pop(End& end, const FunctionCall& call, Answer* answer) {
  std::string_view words = call.operand;
  const auto count = TakeInteger(words);
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(count.value_or(1), 1));
  std::string_view taken;
  if (!Take(end, wanted, &taken)) return false;
  const uint64_t seen = std::min(wanted, end.now.elements);
  const std::string value = SmallForm(seen, taken);
  const FunctionEffect effect =
      RunFunction(*call.function, value, call.operand, access_.now_ms(), access_.scratch());
  *answer = LargeCall::AnswerOf(effect);
  if (!effect.status.ok() || effect.action == FunctionEffect::Action::kKeep) return true;
  std::string_view left = effect.action == FunctionEffect::Action::kErase ? "" : effect.value;
  uint64_t left_elements = 0;
  if (!left.empty()) TakeVarint(left, &left_elements);
  end.now.body.replace(end.is_left ? 0 : end.now.body.size() - taken.size(), taken.size(), left);
  end.now.elements -= seen - left_elements;
  members_ -= seen - left_elements;
  end.now.is_changed = true;
  return true;
}

// Takes the element of one end to the other one, or leaves it.
bool ListCalls::Rotate(const FunctionCall& call, Answer* answer) {
  std::string_view words = call.operand;
  std::string_view from;
  std::string_view to;
  std::string_view taken;
  End& source = types::TakeText(words, &from) && from == "left" ? left_ : right_;
  if (!Take(source, 1, &taken)) return false;
  // A list of this one element says what the function returns, and whether its operand is right.
  const std::string value = SmallForm(1, taken);
  const FunctionEffect effect =
      RunFunction(*call.function, value, call.operand, access_.now_ms(), access_.scratch());
  *answer = LargeCall::AnswerOf(effect);
  if (!effect.status.ok()) return true;
  answer->integer = static_cast<int64_t>(members_);
  Touch();
  if (!types::TakeText(words, &to) || to == from) return true;
  const std::string element(taken);
  End& target = source.is_left ? right_ : left_;
  source.now.body.erase(source.is_left ? 0 : source.now.body.size() - element.size(),
                        element.size());
  --source.now.elements;
  source.now.is_changed = true;
  if (!Reach(target, 0)) return false;
  target.now.body.insert(target.is_left ? 0 : target.now.body.size(), element);
  ++target.now.elements;
  target.now.is_changed = true;
  return true;
}

bool ListCalls::Drop(End& end, uint64_t elements) {
  while (elements > 0) {
    if (!Reach(end, 1)) return false;
    const uint64_t dropped = std::min(elements, end.now.elements);
    std::string_view taken;
    if (dropped == 0 || !Take(end, dropped, &taken)) return false;
    end.now.body.erase(end.is_left ? 0 : end.now.body.size() - taken.size(), taken.size());
    end.now.elements -= dropped;
    end.now.is_changed = true;
    members_ -= dropped;
    elements -= dropped;
  }
  return true;
}

// ---- What lies between ----

// Visits the segments between the ends, until `visit` returns false. False: as for Make.
bool ListCalls::WalkMiddle(bool from_left, const VisitStretch& visit) {
  const uint64_t first = record_.first + left_.old.size();
  const uint64_t last = record_.last - right_.old.size();
  if (first > last) return true;
  auto view = View::Open(access_, key_, types::kList, record_);
  if (!view || view->record() != record_) return false;
  return VisitMiddle(*view, from_left ? first : last, from_left, visit);
}

// Visits the segments between the ends from that of a number on. False: as for Make.
bool ListCalls::VisitMiddle(View& view, uint64_t from, bool from_left, const VisitStretch& visit) {
  const uint64_t first = record_.first + left_.old.size();
  const uint64_t last = record_.last - right_.old.size();
  return view.ForEach(Part::kElements, OrderedNumber(from), !from_left,
                      [&](std::string_view separator, const Segment& segment) {
                        const uint64_t number = NumberOf(separator);
                        if (number < first || number > last) return false;
                        const auto changed = middle_.find(number);
                        if (changed != middle_.end()) return visit(changed->second.now);
                        Stretch stretch = StretchOf(segment);
                        const bool goes_on = visit(stretch);
                        if (stretch.is_changed) {
                          middle_.emplace(number, Middle{.old = types::WriteSegment(segment),
                                                         .now = std::move(stretch)});
                        }
                        return goes_on;
                      });
}

// Visits all elements, until `visit` returns false. False: as for Make.
bool ListCalls::Walk(bool from_left, const VisitStretch& visit) {
  bool goes_on = visit((from_left ? left_ : right_).now);
  const auto visit_middle = [&](Stretch& stretch) {
    goes_on = visit(stretch);
    return goes_on;
  };
  if (goes_on && !WalkMiddle(from_left, visit_middle)) return false;
  if (goes_on) visit((from_left ? right_ : left_).now);
  return true;
}

// Gives the function a list of these elements.
FunctionEffect ListCalls::Edit(Stretch& stretch, const Function& function,
                               std::string_view operand) {
  if (stretch.elements == 0) return {};
  const std::string value = SmallForm(stretch.elements, stretch.body);
  FunctionEffect effect =
      RunFunction(function, value, operand, access_.now_ms(), access_.scratch());
  if (!effect.status.ok() || effect.action == FunctionEffect::Action::kKeep) return effect;
  std::string_view after = effect.action == FunctionEffect::Action::kErase ? "" : effect.value;
  stretch.elements = 0;
  if (!after.empty()) TakeVarint(after, &stretch.elements);
  stretch.body = after;
  stretch.is_changed = true;
  return effect;
}

// The answer of the function to this operand, which is an error whatever the list has.
void ListCalls::AnswerError(const FunctionCall& call, std::string_view operand, Answer* answer) {
  std::string element;
  types::AppendElement(element, {});
  *answer = LargeCall::AnswerOf(RunFunction(*call.function, SmallForm(1, element), operand,
                                            access_.now_ms(), access_.scratch()));
}

// Has the whole list written anew if a segment is too long, or too many have too little.
bool ListCalls::Balance() {
  const size_t segment_bytes = access_.segment_bytes();
  uint64_t bytes = record_.bytes;
  bool is_long = false;
  const auto count = [&](const Stretch& stretch) {
    bytes += stretch.body.size() - stretch.read_bytes;
  };
  for (const auto& [number, middle] : middle_) {
    count(middle.now);
    is_long |= middle.now.body.size() > kGrowthMax * segment_bytes && middle.now.elements > 1;
  }
  count(left_.now);
  count(right_.now);
  const uint64_t segments = record_.last - record_.first + 1;
  if (!is_long && segments <= kSparsity * (bytes / segment_bytes + 1)) return true;
  left_.now.is_changed = true;
  return Reach(left_, UINT64_MAX);
}

bool ListCalls::Set(const FunctionCall& call, Answer* answer) {
  std::string_view operand = call.operand;
  const auto index = TakeInteger(operand);
  const auto members = static_cast<int64_t>(members_);
  std::string_view element;
  if (!index || !types::TakeText(operand, &element)) {
    AnswerError(call, call.operand, answer);
    return true;
  }
  Scratch& scratch = access_.scratch();
  const auto operand_of = [&](uint64_t at) {
    const std::string text = std::to_string(at);
    const std::string_view words[] = {text, element};
    return types::JoinTexts(words, scratch);
  };
  if (*index < -members || *index >= members) {
    AnswerError(call, operand_of(1), answer);
    return true;
  }
  const auto at = static_cast<uint64_t>(*index < 0 ? *index + members : *index);
  bool is_done = false;
  if (!SetInCounted(call, at, &is_done, answer)) return false;
  if (is_done) return Balance();
  const bool from_left = at < members_ / 2;
  uint64_t begin = from_left ? 0 : members_;  // of the stretch, or from the right its end
  const auto visit = [&](Stretch& stretch) {
    if (!from_left) begin -= stretch.elements;
    const bool is_within = at >= begin && at - begin < stretch.elements;
    if (is_within) {
      *answer = LargeCall::AnswerOf(Edit(stretch, *call.function, operand_of(at - begin)));
    }
    if (from_left) begin += stretch.elements;
    return !is_within;
  };
  return Walk(from_left, visit) && Balance();
}

// Does LSET of an element between the ends that lies in a counted block (list_counts.h), if the
// calls before have left it where it was in its segment and by its index. False: as for Make.
bool ListCalls::SetInCounted(const FunctionCall& call, uint64_t at, bool* is_done, Answer* answer) {
  const bool are_ends_unread = left_.old.empty() && right_.old.empty();
  const bool have_middles_stayed = std::ranges::all_of(middle_, [](const auto& entry) {
    const auto old = types::ReadSegment(entry.second.old);
    return old && old->pieces == entry.second.now.elements;
  });
  if (!are_ends_unread || !have_middles_stayed) return true;
  auto view = View::Open(access_, key_, types::kList, record_);
  if (!view || view->record() != record_) return false;
  const auto place = FindInCounted(*view, at);
  if (!place) return true;
  uint64_t begin = place->begin;
  const auto visit = [&](Stretch& stretch) {
    const bool is_within = at - begin < stretch.elements;
    if (is_within) {
      std::string_view operand = call.operand;
      std::string_view element;
      TakeInteger(operand);
      types::TakeText(operand, &element);
      const std::string index = std::to_string(at - begin);
      const std::string_view words[] = {index, element};
      *answer = LargeCall::AnswerOf(
          Edit(stretch, *call.function, types::JoinTexts(words, access_.scratch())));
      *is_done = true;
    }
    begin += stretch.elements;
    return !is_within;
  };
  return VisitMiddle(*view, place->segment, true, visit);
}

bool ListCalls::Insert(const FunctionCall& call, Answer* answer) {
  types::Texts words;
  if (!types::TakeTexts(call.operand, &words) || words.size() != 3) {
    AnswerError(call, call.operand, answer);
    return true;
  }
  answer->integer = -1;
  const auto visit = [&](Stretch& stretch) {
    const FunctionEffect effect = Edit(stretch, *call.function, call.operand);
    answer->status = effect.status;
    if (!effect.status.ok()) return false;
    if (effect.action == FunctionEffect::Action::kKeep) return true;
    answer->integer = static_cast<int64_t>(++members_);
    return false;
  };
  return Walk(true, visit) && Balance();
}

bool ListCalls::Remove(const FunctionCall& call, Answer* answer) {
  std::string_view operand = call.operand;
  const auto count = TakeInteger(operand);
  std::string_view element;
  if (!count || !types::TakeText(operand, &element)) {
    AnswerError(call, call.operand, answer);
    return true;
  }
  int64_t left = *count;  // to be removed, from the right if it is negative
  const auto visit = [&](Stretch& stretch) {
    const std::string text = std::to_string(left);
    const std::string_view words[] = {text, element};
    const FunctionEffect effect =
        Edit(stretch, *call.function, types::JoinTexts(words, access_.scratch()));
    answer->status = effect.status;
    answer->integer += effect.integer;
    members_ -= static_cast<uint64_t>(effect.integer);
    if (*count != 0) left += *count > 0 ? -effect.integer : effect.integer;
    return effect.status.ok() && (*count == 0 || left != 0);
  };
  return Walk(*count >= 0, visit) && (answer->integer == 0 || members_ == 0 || Balance());
}

bool ListCalls::Trim(const FunctionCall& call, Answer* answer) {
  const auto members = static_cast<int64_t>(members_);
  const auto kept = KeptOf(members, call.operand);
  if (!kept) {
    AnswerError(call, call.operand, answer);
    return true;
  }
  if (kept->elements() == 0) {
    members_ = 0;
    return true;
  }
  Touch();
  return Drop(left_, static_cast<uint64_t>(kept->from)) &&
         Drop(right_, static_cast<uint64_t>(members - 1 - kept->to));
}

bool ListCalls::Make(const FunctionCall& call, Answer* answer) {
  const ListFunction& what = *FindListFunction(*call.function);
  End& end = what.is_left ? left_ : right_;
  switch (what.deed) {
    case Deed::kPush:
      return Push(end, call, answer);
    case Deed::kPop:
      return Pop(end, call, answer);
    case Deed::kRotate:
      return Rotate(call, answer);
    case Deed::kSet:
      return Set(call, answer);
    case Deed::kInsert:
      return Insert(call, answer);
    case Deed::kRemove:
      return Remove(call, answer);
    case Deed::kTrim:
      return Trim(call, answer);
  }
  return false;
}

bool ListCalls::has_changes() {
  return members_ == 0 || is_touched() || left_.now.is_changed || right_.now.is_changed ||
         !middle_.empty();
}

// Adds the conditions that the segments of an end are as they were read.
void ListCalls::RequireEnd(Batch& batch, const End& end) const {
  for (size_t i = 0; i < end.old.size(); ++i) {
    const uint64_t number = end.is_left ? record_.first + i : record_.last - i;
    batch.Add({.op = Op::kRequireValue,
               .type = types::kSegment,
               .key = batch.scratch().Copy(ElementsKey(record_.id, number)),
               .other = end.old[i]});
  }
}

bool ListCalls::RequireRead(Batch& batch) {
  RequireEnd(batch, left_);
  RequireEnd(batch, right_);
  return true;
}

bool ListCalls::IsNewest() {
  const bool are_ends_read = !left_.old.empty() || !right_.old.empty();
  return !are_ends_read || IsOfOneVersion(key_, types::kList, record_);
}

bool ListCalls::AddTo(Batch& batch) {
  if (members_ == 0) {
    RequireRead(batch);
    change_.Erase();
  } else {
    for (const End* const end : {&left_, &right_}) {
      const Stretch& now = end->now;
      if (!now.is_changed) {
        RequireEnd(batch, *end);
      } else if (!change_.Replace(end->is_left, end->old, now.body)) {
        return false;
      }
    }
    for (const auto& [number, middle] : middle_) {
      if (!change_.Edit(number, middle.old, middle.now.body, middle.now.elements)) return false;
    }
  }
  change_.AddTo(batch);
  return true;
}

}  // namespace skep::collections
