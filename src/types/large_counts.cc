#include "types/large_counts.h"

#include <algorithm>
#include <cstring>

#include "types/collection.h"

namespace skep::types {
namespace {

constexpr size_t kEntriesExpected = 64;  // of a node, at most

constexpr Status kNotMine(Code::kAborted, "the members are of another entry");

size_t NodeBytes(std::optional<std::string_view> fence, std::span<const CountEntry> entries) {
  size_t bytes = (fence ? TextBytes(*fence) : 1) + VarintBytes(entries.front().count);
  for (const CountEntry& entry : entries.subspan(1)) {
    bytes += TextBytes(entry.separator) + VarintBytes(entry.count);
  }
  return bytes;
}

// Writes a node into bytes of which there are NodeBytes.
char* WriteNode(char* at, std::optional<std::string_view> fence,
                std::span<const CountEntry> entries) {
  at = fence ? WriteText(at, *fence) : WriteNoText(at);
  at = WriteVarint(at, entries.front().count);
  for (const CountEntry& entry : entries.subspan(1)) {
    at = WriteVarint(WriteText(at, entry.separator), entry.count);
  }
  return at;
}

FunctionEffect Stored(const CountNode& node, Scratch& scratch) {
  const size_t bytes = NodeBytes(node.fence, node.entries);
  char* const at = scratch.Allocate(bytes);
  WriteNode(at, node.fence, node.entries);
  return {.action = FunctionEffect::Action::kReplace, .value = {at, bytes}};
}

// Gives the node of the input to `edit`, which returns the error, and stores it.
template <class Edit>
FunctionEffect EditNode(const FunctionInput& input, Edit edit) {
  if (!input.value) return Failure(kNotMine);
  auto node = ReadCountNode(*input.value);
  if (!node) return Failure(kNoCollection);
  if (const Status s = edit(*node); !s.ok()) return Failure(s);
  return Stored(*node, *input.scratch);
}

FunctionEffect AddToCounts(const FunctionInput& input) {
  if (!input.value) return Failure(kNotMine);
  std::string_view rest = input.operand;
  int64_t delta = 0;
  std::string_view place;
  std::string_view before;
  CountsCopy node(*input.value, rest.size() / sizeof(delta), *input.scratch);
  if (!node.Begin()) return Failure(kNoCollection);
  const size_t additions_max = rest.size() / (sizeof(delta) + TextBytes({}));
  TextWriter counts(*input.scratch, additions_max * kVarintBytesMax);
  while (!rest.empty()) {
    if (!TakeFixed(rest, &delta) || !TakeShortText(rest, &place)) return Failure(kBadOperand);
    if (CompareBytes(place, before) < 0) return Failure(kBadOperand);
    if (node.EndsBefore(place)) return Failure(kNotMine);
    if (!node.GoTo(place)) return Failure(kNoCollection);
    *node.count() += static_cast<uint64_t>(delta);
    counts.Number(*node.count());
    before = place;
  }
  return {
      .action = FunctionEffect::Action::kReplace, .value = node.End(), .returned = counts.bytes()};
}

FunctionEffect DivideEntry(const FunctionInput& input) {
  return EditNode(input, [&](CountNode& node) {
    std::string_view rest = input.operand;
    std::string_view begin;
    std::string_view separator;
    uint64_t left = 0;
    if (!TakeText(rest, &begin) || !TakeText(rest, &separator) || !TakeVarint(rest, &left) ||
        !rest.empty()) {
      return kBadOperand;
    }
    if (node.fence && separator >= *node.fence) return kNotMine;
    const size_t at = node.Find(separator);
    CountEntry& entry = node.entries[at];
    const bool is_meant = entry.separator == begin && entry.separator != separator;
    if (!is_meant || entry.count < left) return kNotMine;
    const uint64_t right = entry.count - left;
    entry.count = left;
    node.entries.insert(node.entries.begin() + static_cast<ptrdiff_t>(at) + 1,
                        {.separator = separator, .count = right});
    return Status();
  });
}

FunctionEffect JoinEntries(const FunctionInput& input) {
  return EditNode(input, [&](CountNode& node) {
    const auto separator = OnlyText(input.operand);
    if (!separator) return kBadOperand;
    const size_t at = node.Find(*separator);
    if (at == 0 || node.entries[at].separator != *separator) return kNotMine;
    node.entries[at - 1].count += node.entries[at].count;
    node.entries.erase(node.entries.begin() + static_cast<ptrdiff_t>(at));
    return Status();
  });
}

FunctionEffect AddToBlocks(const FunctionInput& input) {
  struct [[gnu::packed]] Addition {
    uint32_t index;
    int64_t elements;
  };
  if (input.operand.size() % sizeof(Addition) != 0) return Failure(kBadOperand);
  if (!input.value) return Failure(kNotMine);
  std::string counts(*input.value);
  for (std::string_view rest = input.operand; !rest.empty(); rest.remove_prefix(sizeof(Addition))) {
    Addition addition;
    uint32_t count = 0;
    std::memcpy(&addition, rest.data(), sizeof(addition));
    const size_t at = size_t{addition.index} * sizeof(count);
    if (at + sizeof(count) > counts.size()) return Failure(kNotMine);
    std::memcpy(&count, counts.data() + at, sizeof(count));
    count += static_cast<uint32_t>(addition.elements);
    std::memcpy(counts.data() + at, &count, sizeof(count));
  }
  return {.action = FunctionEffect::Action::kReplace, .value = input.scratch->Copy(counts)};
}

constexpr TypeFunction kLargeCountsFunctions[] = {
    {"large-blocks-add", AddToBlocks, kSegment},
    {"large-counts-add", AddToCounts, kSegment},
    {"large-counts-divide", DivideEntry, kSegment},
    {"large-counts-join", JoinEntries, kSegment},
};

}  // namespace

uint64_t CountNode::Total() const {
  uint64_t total = 0;
  for (const CountEntry& entry : entries) total += entry.count;
  return total;
}

size_t CountNode::Find(std::string_view place) const {
  const auto behind = std::ranges::upper_bound(entries.begin() + 1, entries.end(), place, {},
                                               &CountEntry::separator);
  return static_cast<size_t>(behind - entries.begin()) - 1;
}

std::optional<CountNode> ReadCountNode(std::string_view bytes) {
  CountNode node;
  CountEntry entry;
  if (!TakeMaybeText(bytes, &node.fence)) return std::nullopt;
  node.entries.reserve(std::min(bytes.size() / 2 + 1, kEntriesExpected));
  do {
    if (!node.entries.empty() && !TakeText(bytes, &entry.separator)) return std::nullopt;
    if (!TakeVarint(bytes, &entry.count)) return std::nullopt;
    const bool ascends = node.entries.empty() || node.entries.back().separator < entry.separator;
    if (!ascends) return std::nullopt;
    node.entries.push_back(entry);
  } while (!bytes.empty());
  return node;
}

std::string WriteCountNode(std::optional<std::string_view> fence,
                           std::span<const CountEntry> entries) {
  std::string bytes(NodeBytes(fence, entries), '\0');
  WriteNode(bytes.data(), fence, entries);
  return bytes;
}

bool CountsCopy::Begin() { return TakeMaybeText(rest_, &fence_) && TakeCount(); }

bool CountsCopy::TakeCount() {
  count_at_ = rest_.data();
  if (!TakeVarint(rest_, &count_)) return false;
  count_before_ = count_;
  return true;
}

bool CountsCopy::GoTo(std::string_view place) {
  while (!rest_.empty()) {
    std::string_view behind = rest_;
    std::string_view separator;
    if (!TakeShortText(behind, &separator)) return false;
    if (CompareBytes(separator, place) > 0) return true;
    WriteCount();
    rest_ = behind;
    if (!TakeCount()) return false;
  }
  return true;
}

std::string_view CountsCopy::End() {
  WriteCount();
  CopyUpTo(rest_.data() + rest_.size());
  return {begin_, static_cast<size_t>(to_ - begin_)};
}

// Writes the count of the entry, if it has changed, and what lies before it.
void CountsCopy::WriteCount() {
  if (count_ == count_before_) return;
  CopyUpTo(count_at_);
  to_ = WriteVarint(to_, count_);
  copied_ = rest_.data();
}

void CountsCopy::CopyUpTo(const char* end) {
  const auto bytes = static_cast<size_t>(end - copied_);
  CopyBytes(to_, copied_, bytes);
  to_ += bytes;
}

std::span<const TypeFunction> LargeCountsFunctions() { return kLargeCountsFunctions; }

}  // namespace skep::types
