#include "collections/large_list.h"

#include <algorithm>
#include <utility>

#include "base/decimal.h"
#include "base/varint.h"
#include "types/text.h"

namespace skep::collections {
namespace {

std::string KeyOf(uint64_t id, uint64_t number) {
  return SegmentKey(id, Part::kElements, OrderedNumber(number));
}

std::optional<int64_t> NumberIn(std::string_view& operand) {
  std::string_view text;
  return types::TakeText(operand, &text) ? ParseInt64(text) : std::nullopt;
}

}  // namespace

std::vector<std::string> CutElements(const Pieces& pieces, size_t bytes_max, bool from_right) {
  std::vector<std::pair<size_t, size_t>> runs;
  size_t bytes = 0;
  const size_t count = pieces.size();
  size_t begin = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t own = pieces[from_right ? count - 1 - i : i].bytes.size();
    if (i > begin && bytes + own > bytes_max) {
      runs.emplace_back(begin, i);
      begin = i;
      bytes = 0;
    }
    bytes += own;
  }
  if (begin < count) runs.emplace_back(begin, count);
  std::vector<std::string> segments;
  for (const auto& [from, to] : runs) {
    segments.push_back(from_right ? SegmentOf(pieces, count - to, count - from, std::nullopt)
                                  : SegmentOf(pieces, from, to, std::nullopt));
  }
  if (from_right) std::ranges::reverse(segments);
  return segments;
}

std::optional<Answer> LargeList::Apply(const Function& function, std::string_view operand) {
  const std::string_view name = function.name;
  const End end = name.ends_with("left") ? End::kLeft : End::kRight;
  if (name.starts_with("list-push")) return AtEnd(function, operand, end, 1);
  if (name.starts_with("list-pop")) {
    std::string_view words = operand;
    const int64_t count = NumberIn(words).value_or(0);
    return AtEnd(function, operand, end, static_cast<uint64_t>(std::max<int64_t>(count, 0)));
  }
  if (name == "list-range" || name == "list-index") return OfRange(function, operand);
  return All(function, operand);
}

// Gives the function the elements at an end: at least so many, or all, of whole segments.
std::optional<Answer> LargeList::AtEnd(const Function& function, std::string_view operand, End end,
                                       uint64_t elements) {
  std::vector<std::string> old;
  std::vector<Segment> segments;
  const uint64_t segments_max = record_.last - record_.first + 1;
  uint64_t count = 0;
  while (old.size() < segments_max && (old.empty() || count < elements)) {
    const uint64_t number =
        end == End::kLeft ? record_.first + old.size() : record_.last - old.size();
    auto found = access_.Get(KeyOf(record_.id, number), types::kSegment);
    if (!found) return std::nullopt;
    old.push_back(std::move(*found));
    const auto segment = ReadSegment(old.back());
    if (!segment) return std::nullopt;
    count += segment->pieces;
  }
  if (end == End::kRight) std::ranges::reverse(old);
  std::string body;
  for (const std::string& bytes : old) body += ReadSegment(bytes)->body;
  const std::string value = SmallForm(count, body);
  Scratch scratch;
  FunctionEffect effect = RunFunction(function, value, operand, scratch);
  if (!effect.status.ok() || effect.action == FunctionEffect::Action::kKeep) {
    if (access_.Record(key_, types::kList) != record_) return std::nullopt;
    return LargeCall::AnswerOf(effect);
  }
  if (std::string_view(function.name).starts_with("list-push")) {
    effect.integer += static_cast<int64_t>(record_.members - count);
  }
  return Replace(end, old, effect);
}

// Replaces the segments at an end, as they were read, by what the function has made of them.
std::optional<Answer> LargeList::Replace(End end, const std::vector<std::string>& old,
                                         const FunctionEffect& effect) {
  uint64_t before = 0;
  size_t before_bytes = 0;
  for (const std::string& bytes : old) {
    before += ReadSegment(bytes)->pieces;
    before_bytes += ReadSegment(bytes)->body.size();
  }
  std::string_view value = effect.action == FunctionEffect::Action::kErase ? "" : effect.value;
  uint64_t count = 0;
  if (!value.empty()) TakeVarint(value, &count);
  const auto pieces = ReadPieces(Form::kElement, value);
  if (!pieces) {
    Answer answer;
    answer.status = types::kNoCollection;
    return answer;
  }
  const bool is_left = end == End::kLeft;
  const auto segments = CutElements(*pieces, access_.segment_bytes(), is_left);
  types::LargeRecord record = record_;
  record.members += pieces->size() - before;
  record.bytes += BytesOf(*pieces) - before_bytes;
  ++record.writes;
  const uint64_t old_first = is_left ? record_.first : record_.last - old.size() + 1;
  const uint64_t new_first = is_left ? record_.first + old.size() - segments.size() : old_first;
  if (is_left) {
    record.first = new_first;
  } else {
    record.last = old_first + segments.size() - 1;
  }
  Batch batch(Batch::Kind::kAtomic);
  const uint8_t type = types::kLargeForm + types::kList;
  batch.Add({.op = Op::kRequireValue, .type = type, .key = key_, .other = types::BytesOf(record_)});
  Scratch& scratch = batch.scratch();
  for (size_t i = 0; i < segments.size(); ++i) {
    const uint64_t number = new_first + i;
    const bool is_same = number >= old_first && number < old_first + old.size() &&
                         old[number - old_first] == segments[i];
    if (is_same) continue;
    batch.Add({.op = Op::kPut,
               .type = types::kSegment,
               .key = scratch.Copy(KeyOf(record_.id, number)),
               .value = segments[i]});
  }
  for (uint64_t number = old_first; number < old_first + old.size(); ++number) {
    if (number >= new_first && number < new_first + segments.size()) continue;
    batch.Delete(scratch.Copy(KeyOf(record_.id, number)));
  }
  const uint32_t stored = record.members == 0 ? batch.Delete(key_)
                                              : batch.Add({.op = Op::kPut,
                                                           .type = type,
                                                           .key = key_,
                                                           .value = types::BytesOf(record),
                                                           .deadline_ms = kKeepDeadline});
  Answer answer = LargeCall::AnswerOf(effect);
  if (ExecuteChange(access_, batch, &answer.status) == Change::Result::kAgain) return std::nullopt;
  answer.version = batch.outcome(stored).version;
  answer.is_erased = record.members == 0;
  answer.segments_added = static_cast<int64_t>(segments.size()) - static_cast<int64_t>(old.size());
  return answer;
}

std::optional<Answer> LargeList::All(const Function& function, std::string_view operand) {
  auto view = View::Open(access_, key_, types::kList, record_);
  std::vector<std::string> old;
  std::string body;
  const auto keep = [&](std::string_view, const Segment& segment) {
    old.push_back(WriteSegment(segment));
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
  return LargeList(access_, key_, view->record()).Replace(End::kLeft, old, effect);
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
  const bool is_index = *first == *last && *first + members < 0;
  if (from > to || is_index) return answer;
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
