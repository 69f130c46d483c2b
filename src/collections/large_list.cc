#include "collections/large_list.h"

#include <algorithm>
#include <utility>

#include "base/decimal.h"
#include "base/varint.h"
#include "types/text.h"

namespace skep::collections {
namespace {

std::optional<int64_t> NumberIn(std::string_view& operand) {
  std::string_view text;
  return types::TakeText(operand, &text) ? ParseInt64(text) : std::nullopt;
}

}  // namespace

std::string ElementsKey(uint64_t id, uint64_t number) {
  return SegmentKey(id, Part::kElements, OrderedNumber(number));
}

std::vector<ElementRun> CutElements(const Pieces& pieces, size_t bytes_max, bool from_right) {
  std::vector<ElementRun> runs;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view element = pieces[from_right ? pieces.size() - 1 - i : i].bytes;
    if (runs.empty() || runs.back().body.size() + element.size() > bytes_max) {
      runs.push_back({.body = element, .elements = 1});
      continue;
    }
    ElementRun& run = runs.back();
    const char* const begin = from_right ? element.data() : run.body.data();
    run.body = {begin, run.body.size() + element.size()};
    ++run.elements;
  }
  if (from_right) std::ranges::reverse(runs);
  return runs;
}

// ---- ListChange ----

void ListChange::AddWrite(Batch& batch, const Write& write) const {
  static const Function* const edit = FindFunction("large-segment-edit");
  Scratch& scratch = batch.scratch();
  const std::string_view key = scratch.Copy(ElementsKey(record_.id, write.number));
  if (!write.run) {
    batch.Delete(key);
    return;
  }
  const ElementRun& run = *write.run;
  const auto& old = write.old;
  if (!old) {
    const std::string bytes = types::WriteSegment(
        {.stamp = NextStamp(), .fence = std::nullopt, .pieces = run.elements, .body = run.body});
    batch.Add({.op = Op::kPut, .type = types::kSegment, .key = key, .value = scratch.Copy(bytes)});
    return;
  }
  if (old->body == run.body) return;
  const size_t shorter = std::min(old->body.size(), run.body.size());
  const auto front =
      static_cast<size_t>(std::ranges::mismatch(old->body, run.body).in1 - old->body.begin());
  size_t back = 0;
  while (back < shorter - front &&
         old->body[old->body.size() - 1 - back] == run.body[run.body.size() - 1 - back]) {
    ++back;
  }
  const types::Splice splice = {.stamp = NextStamp(),
                                .pieces = run.elements,
                                .offset = front,
                                .removed = old->body.size() - front - back,
                                .inserted = run.body.substr(front, run.body.size() - front - back)};
  batch.Apply(key, edit, types::SpliceSegment(old->stamp, splice, scratch));
}

bool ListChange::Replace(bool is_left, const std::vector<std::string>& old, std::string_view body) {
  const auto pieces = ReadPieces(Form::kElement, body);
  if (!pieces) return false;
  const auto runs = CutElements(*pieces, access_.segment_bytes(), is_left);
  const uint64_t old_first = is_left ? record_.first : record_.last - old.size() + 1;
  const uint64_t new_first = is_left ? record_.first + old.size() - runs.size() : old_first;
  (is_left ? after_.first : after_.last) = is_left ? new_first : old_first + runs.size() - 1;
  for (size_t i = 0; i < old.size(); ++i) {
    const uint64_t number = is_left ? record_.first + i : record_.last - i;
    const auto segment = types::ReadSegment(old[i]);
    if (!segment) return false;
    after_.members -= segment->pieces;
    after_.bytes -= segment->body.size();
    const bool stays = number >= new_first && number - new_first < runs.size();
    writes_.push_back({.number = number,
                       .old = segment,
                       .run = stays ? std::optional(runs[number - new_first]) : std::nullopt});
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const uint64_t number = new_first + i;
    const bool was_there = number >= old_first && number - old_first < old.size();
    if (!was_there) writes_.push_back({.number = number, .old = std::nullopt, .run = runs[i]});
    after_.members += runs[i].elements;
  }
  after_.bytes += body.size();
  segments_added_ += static_cast<int64_t>(runs.size()) - static_cast<int64_t>(old.size());
  return true;
}

void ListChange::AddTo(Batch& batch) {
  ++after_.writes;
  constexpr uint8_t kType = types::kLargeForm + types::kList;
  Scratch& scratch = batch.scratch();
  batch.Add({.op = Op::kRequireValue,
             .type = kType,
             .key = key_,
             .other = scratch.Copy(types::BytesOf(record_))});
  for (const Write& write : writes_) AddWrite(batch, write);
  record_slot_ = after_.members == 0 ? batch.Delete(key_)
                                     : batch.Apply(key_, RecordFunction(types::kList),
                                                   scratch.Copy(types::BytesOf(after_)));
}

Answer ListChange::Done(const Batch& batch) const {
  Answer answer;
  answer.version = batch.outcome(record_slot_).version;
  answer.is_erased = after_.members == 0;
  answer.segments_added = segments_added_;
  return answer;
}

std::optional<Answer> ListChange::Commit() {
  Batch batch(Batch::Kind::kAtomic);
  AddTo(batch);
  return AnswerOfWrite(access_, batch, [&] { return Done(batch); });
}

// ---- LargeList ----

std::optional<Answer> LargeList::Apply(const Function& function, std::string_view operand) {
  const std::string_view name = function.name;
  if (name == "list-range" || name == "list-index") return OfRange(function, operand);
  return All(function, operand);
}

std::optional<Answer> LargeList::All(const Function& function, std::string_view operand) {
  auto view = View::Open(access_, key_, types::kList, record_);
  std::vector<std::string> old;
  std::string body;
  const auto keep = [&](std::string_view, const Segment& segment) {
    old.push_back(types::WriteSegment(segment));
    body += segment.body;
    return true;
  };
  if (!view || !view->ForEach(Part::kElements, std::nullopt, false, keep)) {
    if (access_.status().ok()) return std::nullopt;
    Answer answer;
    answer.status = access_.status();
    return answer;
  }
  const std::string value = SmallForm(view->record().members, body);
  Scratch scratch;
  const FunctionEffect effect = RunFunction(function, value, operand, scratch);
  if (!effect.status.ok() || effect.action == FunctionEffect::Action::kKeep) {
    return LargeCall::AnswerOf(effect);
  }
  std::string_view after = effect.action == FunctionEffect::Action::kErase ? "" : effect.value;
  uint64_t count = 0;
  if (!after.empty()) TakeVarint(after, &count);
  ListChange change(access_, key_, view->record());
  Answer answer;
  answer.status = types::kNoCollection;
  if (!change.Replace(true, old, after)) return answer;
  auto written = change.Commit();
  if (!written || !written->status.ok()) return written;
  written->integer = effect.integer;
  written->value = effect.returned;
  return written;
}

// list-range and list-index, whose operand's words are indexes: with the segments between them and
// the nearer end.
std::optional<Answer> LargeList::OfRange(const Function& function, std::string_view operand) {
  std::string_view words = operand;
  const auto first = NumberIn(words);
  const auto last = words.empty() ? first : NumberIn(words);
  if (!first || !last) return All(function, operand);
  auto view = View::Open(access_, key_, types::kList, record_);
  Answer answer;
  answer.status = access_.status();
  if (!view) return answer.status.ok() ? std::nullopt : std::optional(answer);
  const auto members = static_cast<int64_t>(view->record().members);
  const int64_t from = std::max<int64_t>(*first < 0 ? *first + members : *first, 0);
  const int64_t to = std::min(*last < 0 ? *last + members : *last, members - 1);
  const bool is_before = *first == *last && *first < -members;  // an index of no element
  if (from > to || is_before) return answer;
  const bool reverse = members - to < from;
  int64_t passed = 0;  // elements between the end and the next segment
  int64_t base = 0;    // the index of the first element of `bodies`
  std::vector<std::string> bodies;
  const auto keep = [&](std::string_view, const Segment& segment) {
    const auto pieces = static_cast<int64_t>(segment.pieces);
    const int64_t begin = reverse ? members - passed - pieces : passed;
    passed += pieces;
    if (begin > to || begin + pieces <= from) return reverse ? begin > to : begin <= to;
    if (bodies.empty() || reverse) base = begin;
    bodies.emplace_back(segment.body);
    return reverse ? begin > from : begin + pieces <= to;
  };
  if (!view->ForEach(Part::kElements, std::nullopt, reverse, keep)) {
    answer.status = access_.status();
    return answer;
  }
  if (reverse) std::ranges::reverse(bodies);
  std::string body;
  for (const std::string& part : bodies) body += part;
  uint64_t count = 0;
  if (const auto pieces = ReadPieces(Form::kElement, body)) count = pieces->size();
  Scratch scratch;
  const std::string from_text = std::to_string(from - base);
  const std::string to_text = std::to_string(to - base);
  const std::string_view both[] = {from_text, to_text};
  const size_t texts = function.name == "list-index" ? 1 : 2;
  return LargeCall::AnswerOf(RunFunction(function, SmallForm(count, body),
                                         types::JoinTexts(std::span(both).first(texts), scratch),
                                         scratch));
}

}  // namespace skep::collections
