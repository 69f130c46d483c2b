#include "collections/large_list.h"

#include <algorithm>
#include <utility>

#include "base/decimal.h"
#include "base/varint.h"
#include "types/text.h"

namespace skep::collections {
namespace {

// Appends the texts of some elements of a segment. False: its bytes are no elements.
bool AppendTexts(const Segment& segment, int64_t begin, int64_t end, std::string& to) {
  std::string_view rest = segment.body;
  std::string_view text;
  for (int64_t i = 0; i < begin; ++i) {
    if (!types::TakeElement(rest, &text)) return false;
  }
  const size_t before = to.size();
  bool is_sound = true;
  // An element has its text, and more.
  to.resize_and_overwrite(before + rest.size(), [&](char* bytes, size_t) {
    char* at = bytes + before;
    for (int64_t i = begin; i < end && is_sound; ++i) {
      const char* const element = rest.data();
      is_sound = types::TakeElement(rest, &text);
      if (!is_sound) break;
      const auto text_bytes = static_cast<size_t>(text.data() + text.size() - element);
      CopyBytes(at, element, text_bytes);
      at += text_bytes;
    }
    return static_cast<size_t>(at - bytes);
  });
  return is_sound;
}

}  // namespace

std::optional<int64_t> TakeInteger(std::string_view& operand) {
  std::string_view text;
  return types::TakeText(operand, &text) ? ParseInt64(text) : std::nullopt;
}

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
  const auto& old = write.old;
  if (!write.run) {
    batch.Apply(key, edit, types::DeleteSegment(old->stamp, scratch));
    return;
  }
  const ElementRun& run = *write.run;
  if (!old) {
    const std::string bytes = types::WriteSegment(
        {.stamp = NextStamp(), .fence = std::nullopt, .pieces = run.elements, .body = run.body});
    batch.Add({.op = Op::kPut, .type = types::kSegment, .key = key, .value = scratch.Copy(bytes)});
    return;
  }
  if (old->body == run.body) {
    batch.Apply(key, edit, types::KeepSegment(old->stamp, scratch));
    return;
  }
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

bool ListChange::Edit(uint64_t number, std::string_view old, std::string_view body,
                      uint64_t elements) {
  const auto segment = types::ReadSegment(old);
  if (!segment) return false;
  after_.members += elements - segment->pieces;
  after_.bytes += body.size() - segment->body.size();
  writes_.push_back(
      {.number = number, .old = segment, .run = ElementRun{.body = body, .elements = elements}});
  return true;
}

void ListChange::AddTo(Batch& batch) {
  ++after_.writes;
  if (after_.members > 0) {
    std::vector<ListCounts::Delta> deltas;
    deltas.reserve(writes_.size());
    for (const Write& write : writes_) {
      const uint64_t elements = write.run ? write.run->elements : 0;
      const uint64_t old = write.old ? write.old->pieces : 0;
      deltas.push_back({.segment = write.number, .elements = static_cast<int64_t>(elements - old)});
    }
    counts_.Follow(record_, deltas, &after_);
  }
  constexpr uint8_t kType = types::kLargeForm + types::kList;
  Scratch& scratch = batch.scratch();
  batch.Add({.op = Op::kRequireValue,
             .type = kType,
             .key = key_,
             .other = scratch.Copy(types::BytesOf(record_))});
  for (const Write& write : writes_) AddWrite(batch, write);
  if (after_.members > 0) segments_added_ += counts_.AddTo(batch, record_.id);
  record_slot_ = after_.members == 0 ? batch.Delete(key_)
                                     : batch.Apply(key_, RecordFunction(types::kList),
                                                   scratch.Copy(types::BytesOf(after_)));
}

Answer ListChange::Done(const Batch& batch) const {
  Answer answer;
  answer.version = batch.outcome(record_slot_).version;
  answer.is_erased = after_.members == 0;
  answer.segments_added = segments_added_;
  if (!answer.is_erased && NeedsListCounts(after_)) {
    answer.segments_added += MendListCounts(access_, key_, record_.id);
  }
  access_.set_deadline_ms(batch.outcome(record_slot_).deadline_ms);  // mending reads another state
  return answer;
}

// ---- LargeList ----

// Elements of the list as texts, with the segments of a block before them, or between them and the
// nearer end.
Answer LargeList::Range(View& view, int64_t first, int64_t last) {
  Answer answer;
  const auto members = static_cast<int64_t>(view.record().members);
  const int64_t from = std::max<int64_t>(first < 0 ? first + members : first, 0);
  const int64_t to = std::min(last < 0 ? last + members : last, members - 1);
  const bool is_before = first == last && first < -members;  // an index of no element
  if (from > to || is_before) return answer;
  if (access_.IsTooLong(view.record(), static_cast<uint64_t>(to + 1 - from))) {
    return LargeCall::TooLong();
  }
  const auto place = FindInCounted(view, static_cast<uint64_t>(from));
  const bool reverse = !place && members - to < from;
  // `begin` is the index at which the next segment begins, or with `reverse` ends.
  int64_t begin = place ? static_cast<int64_t>(place->begin) : reverse ? members : 0;
  const auto passed = static_cast<uint64_t>(reverse ? members - from : to + 1 - begin);
  std::vector<std::string> parts;  // of the answer, the last one first; with `reverse` only
  size_t parts_bytes = 0;
  bool is_too_long = false;
  const auto visit = [&](std::string_view, const Segment& segment) {
    is_too_long = to > from && access_.IsFarTooLong(answer.value.size() + parts_bytes);
    if (is_too_long) return false;
    const auto pieces = static_cast<int64_t>(segment.pieces);
    if (reverse) begin -= pieces;
    const int64_t begin_within = std::max<int64_t>(from - begin, 0);
    const int64_t end_within = std::min(to + 1 - begin, pieces);
    if (begin_within < end_within) {
      std::string& texts = reverse ? parts.emplace_back() : answer.value;
      if (!AppendTexts(segment, begin_within, end_within, texts)) {
        access_.set_status(types::kNoCollection);
        return false;
      }
      if (reverse) parts_bytes += texts.size();
    }
    if (!reverse) begin += pieces;
    return reverse ? begin > from : begin <= to;
  };
  std::optional<std::string> first_segment;
  if (place) first_segment = OrderedNumber(place->segment);
  view.ForEach(Part::kElements, first_segment, reverse, visit,
               {.segments = view.SegmentsOf(passed)});
  if (is_too_long) return LargeCall::TooLong();
  for (; !parts.empty(); parts.pop_back()) answer.value += parts.back();
  return answer;
}

// The indexes of elements as texts, with the segments up to the last one.
Answer LargeList::Find(View& view, const types::FindRequest& request) {
  Answer answer;
  const uint64_t members = view.record().members;
  const bool reverse = request.rank < 0;
  uint64_t to_skip = request.to_skip();
  const uint64_t looks = request.most == 0 ? members : std::min(request.most, members);
  uint64_t looked = 0;
  const auto visit = [&](std::string_view, const Segment& segment) {
    std::string_view rest = segment.body;
    std::string_view text;
    for (uint64_t i = 0; i < segment.pieces; ++i) {
      if (looked == looks) return false;
      if (!(reverse ? types::TakeLastElement(rest, &text) : types::TakeElement(rest, &text))) {
        access_.set_status(types::kNoCollection);
        return false;
      }
      const uint64_t index = reverse ? members - 1 - looked : looked;
      ++looked;
      if (text != request.element || (to_skip > 0 && to_skip-- > 0)) continue;
      const std::string digits = std::to_string(index);
      AppendVarint(answer.value, digits.size() + 1);
      answer.value += digits;
      if (static_cast<uint64_t>(++answer.integer) == request.count) return false;
    }
    return true;
  };
  view.ForEach(Part::kElements, std::nullopt, reverse, visit);
  return answer;
}

bool LargeList::Has(const Function& function) {
  return function.name == "list-range" || function.name == "list-index" ||
         function.name == "list-find";
}

std::optional<Answer> LargeList::Apply(const Function& function, std::string_view operand) {
  if (auto view = View::Open(access_, key_, types::kList, record_)) {
    return ApplyTo(*view, function, operand);
  }
  if (access_.status().ok()) return std::nullopt;
  Answer answer;
  answer.status = access_.status();
  return answer;
}

std::optional<Answer> LargeList::ApplyTo(View& view, const Function& function,
                                         std::string_view operand) {
  const bool finds = function.name == "list-find";
  const auto request = finds ? types::ReadFindRequest(operand) : std::nullopt;
  std::string_view words = finds ? std::string_view() : operand;
  const auto first = TakeInteger(words);
  const auto last = words.empty() ? first : TakeInteger(words);
  if (!request && (!first || !last)) {
    // The error is the same for every list.
    Scratch scratch;
    std::string element;
    types::AppendElement(element, {});
    return LargeCall::AnswerOf(
        RunFunction(function, SmallForm(1, element), operand, access_.now_ms(), scratch));
  }
  Answer answer = request ? Find(view, *request) : Range(view, *first, *last);
  answer.status = access_.status();
  return answer;
}

}  // namespace skep::collections
