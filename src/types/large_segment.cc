#include "types/large_segment.h"

#include "types/collection.h"

namespace skep::types {
namespace {

constexpr Status kChanged(Code::kAborted, "the segment was written");

enum class Action : char { kKeep = 'k', kSplice = 's', kReplace = 'r', kDelete = 'd' };

FunctionEffect SpliceBody(const Segment& old, std::string_view rest, Scratch& scratch) {
  Segment segment = {.stamp = 0, .fence = old.fence, .pieces = 0, .body = {}};
  uint64_t offset = 0;
  uint64_t removed = 0;
  if (!TakeFixed(rest, &segment.stamp) || !TakeVarint(rest, &segment.pieces) ||
      !TakeVarint(rest, &offset) || !TakeVarint(rest, &removed)) {
    return Failure(kBadOperand);
  }
  const size_t bytes = old.body.size();
  if (offset > bytes || removed > bytes - offset) return Failure(kBadOperand);
  const BodyEdit edit = {.at = offset, .removed = removed, .inserted = rest};
  return {.action = FunctionEffect::Action::kReplace,
          .value = SplicedSegment(segment, old.body, edit, scratch)};
}

FunctionEffect EditSegment(const FunctionInput& input) {
  std::string_view operand = input.operand;
  uint64_t seen = 0;
  if (!TakeFixed(operand, &seen) || operand.empty()) return Failure(kBadOperand);
  const auto action = static_cast<Action>(operand.front());
  operand.remove_prefix(1);
  if (!input.value) return Failure(kChanged);
  const auto segment = ReadSegment(*input.value);
  if (!segment) return Failure(kNoCollection);
  if (segment->stamp != seen) return Failure(kChanged);
  switch (action) {
    case Action::kKeep:
      return {};
    case Action::kDelete:
      return {.action = FunctionEffect::Action::kErase};
    case Action::kReplace:
      if (!ReadSegment(operand)) break;
      return {.action = FunctionEffect::Action::kReplace, .value = operand};
    case Action::kSplice:
      return SpliceBody(*segment, operand, *input.scratch);
  }
  return Failure(kBadOperand);
}

std::string_view Operand(uint64_t seen, Action action, std::string_view rest, Scratch& scratch) {
  TextWriter writer(scratch, sizeof(seen) + 1 + rest.size());
  writer.Fixed(seen);
  writer.Fixed(action);
  writer.Bytes(rest);
  return writer.bytes();
}

constexpr TypeFunction kLargeSegmentFunctions[] = {{"large-segment-edit", EditSegment, kSegment}};

}  // namespace

std::optional<Segment> ReadSegment(std::string_view bytes) {
  Segment segment;
  if (!TakeFixed(bytes, &segment.stamp) || !TakeMaybeText(bytes, &segment.fence) ||
      !TakeVarint(bytes, &segment.pieces)) {
    return std::nullopt;
  }
  segment.body = bytes;
  return segment;
}

void WriteHeader(const Segment& segment, TextWriter& writer) {
  writer.Fixed(segment.stamp);
  segment.fence ? writer.Text(*segment.fence) : writer.NoText();
  writer.Number(segment.pieces);
}

size_t HeaderBytes(const Segment& segment) {
  const size_t fence_bytes = segment.fence ? TextBytes(*segment.fence) : 1;
  return sizeof(segment.stamp) + fence_bytes + VarintBytes(segment.pieces);
}

std::string WriteSegment(const Segment& segment) {
  Scratch scratch;
  TextWriter writer(scratch, HeaderBytes(segment));
  WriteHeader(segment, writer);
  std::string bytes;
  bytes.reserve(writer.bytes().size() + segment.body.size());
  bytes += writer.bytes();
  bytes += segment.body;
  return bytes;
}

std::string_view SplicedSegment(const Segment& segment, std::string_view old_body,
                                const BodyEdit& edit, Scratch& scratch) {
  const size_t body_bytes = old_body.size() - edit.removed + edit.inserted.size();
  TextWriter writer(scratch, HeaderBytes(segment) + body_bytes);
  WriteHeader(segment, writer);
  writer.Bytes(old_body.substr(0, edit.at));
  writer.Bytes(edit.inserted);
  writer.Bytes(old_body.substr(edit.at + edit.removed));
  return writer.bytes();
}

std::string_view KeepSegment(uint64_t seen, Scratch& scratch) {
  return Operand(seen, Action::kKeep, {}, scratch);
}

std::string_view SpliceSegment(uint64_t seen, const Splice& splice, Scratch& scratch) {
  const size_t numbers =
      VarintBytes(splice.pieces) + VarintBytes(splice.offset) + VarintBytes(splice.removed);
  constexpr auto kAction = Action::kSplice;
  TextWriter writer(scratch, 2 * sizeof(seen) + 1 + numbers + splice.inserted.size());
  writer.Fixed(seen);
  writer.Fixed(kAction);
  writer.Fixed(splice.stamp);
  writer.Number(splice.pieces);
  writer.Number(splice.offset);
  writer.Number(splice.removed);
  writer.Bytes(splice.inserted);
  return writer.bytes();
}

std::string_view ReplaceSegment(uint64_t seen, std::string_view bytes, Scratch& scratch) {
  return Operand(seen, Action::kReplace, bytes, scratch);
}

std::string_view DeleteSegment(uint64_t seen, Scratch& scratch) {
  return Operand(seen, Action::kDelete, {}, scratch);
}

std::span<const TypeFunction> LargeSegmentFunctions() { return kLargeSegmentFunctions; }

}  // namespace skep::types
