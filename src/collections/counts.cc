#include "collections/counts.h"

#include <algorithm>
#include <utility>

#include "base/varint.h"

namespace skep::collections {
namespace {

using types::CountEntry;
using types::CountNode;

bool IsTooLarge(std::string_view bytes, const CountNode& node) {
  return node.entries.size() > kNodeEntriesMax ||
         (bytes.size() > kNodeBytesMax && node.entries.size() > 1);
}

// ---- Mending ----

// A batch that requires what was read.
class Required {
 public:
  void AddSegment(const Loaded& loaded) {
    static const Function* const edit = FindFunction("large-segment-edit");
    batch_.Apply(batch_.scratch().Copy(loaded.key), edit,
                 types::KeepSegment(loaded.segment.stamp, batch_.scratch()));
  }
  void AddValue(std::string_view key, uint8_t type, std::string_view value) {
    batch_.Add({.op = Op::kRequireValue,
                .type = type,
                .key = batch_.scratch().Copy(key),
                .other = batch_.scratch().Copy(value)});
  }
  void AddAbsence(std::string_view key) { batch_.RequireAbsent(batch_.scratch().Copy(key)); }
  void Put(std::string_view key, uint8_t type, std::string_view value) {
    batch_.Add({.op = Op::kPut,
                .type = type,
                .key = batch_.scratch().Copy(key),
                .value = batch_.scratch().Copy(value),
                .deadline_ms = kKeepDeadline});
  }
  void Delete(std::string_view key) { batch_.Delete(batch_.scratch().Copy(key)); }
  void Apply(std::string_view key, const Function* function, std::string_view operand) {
    batch_.Apply(batch_.scratch().Copy(key), function, batch_.scratch().Copy(operand));
  }
  bool Execute(Access& access) {
    Status unwanted;
    return ExecuteChange(access, batch_, &unwanted) == WriteResult::kDone;
  }

 private:
  Batch batch_{Batch::Kind::kAtomic};
};

class Mender {
 public:
  Mender(Access& access, std::string_view key, uint8_t kind, const types::LargeRecord& record)
      : access_(access), key_(key), kind_(kind), record_(record) {}

  int64_t Mend(std::span<const std::string_view> places) {
    std::optional<std::string> from = std::string();  // no place below it calls for more
    for (const std::string_view place : places) {
      if (!from) break;
      if (place < *from) continue;
      while (MendEntry(place, &from)) {
        for (uint64_t level = 0; level <= record_.first && MendNode(level, place); ++level) {
        }
      }
    }
    return added_;
  }

 private:
  // A node as it was read.
  struct Node {
    std::string_view key;
    std::string_view bytes;
    CountNode node;
    std::string_view separator() const { return SeparatorOf(key); }
  };

  std::optional<Node> Read(uint64_t level, std::string_view place) {
    Segments items(access_, record_.id, CountsPart(level));
    const Loaded* const loaded = items.Find(place);
    auto node = loaded != nullptr ? types::ReadCountNode(loaded->bytes) : std::nullopt;
    if (!node) return std::nullopt;
    return Node{.key = loaded->key, .bytes = loaded->bytes, .node = std::move(*node)};
  }

  // False: the entry of the place needs nothing, or it cannot be mended now. Then *end is where it
  // ends; nothing: at the end.
  bool MendEntry(std::string_view place, std::optional<std::string>* end) {
    const auto found = Read(0, place);
    end->reset();
    if (!found) return false;
    const auto& entries = found->node.entries;
    const size_t at = found->node.Find(place);
    if (const auto fence = EndOf(*found, at)) end->emplace(*fence);
    if (entries[at].count > kEntryMax) return Divide(*found, at);
    if (entries[at].count >= kEntryMax / 8) return false;
    const auto fits = [&](size_t left) {
      return entries[left].count + entries[left + 1].count <= kEntryMax / 2;
    };
    if (at + 1 < entries.size() && fits(at)) return Join(*found, at + 1);
    return at > 0 && fits(at - 1) && Join(*found, at);
  }

  static std::optional<std::string_view> EndOf(const Node& found, size_t at) {
    const auto& entries = found.node.entries;
    return at + 1 < entries.size() ? std::optional(entries[at + 1].separator) : found.node.fence;
  }

  // Joins an entry with the one before it.
  bool Join(const Node& found, size_t at) {
    Required required;
    AddJoin(required, found.key, found.node.entries[at].separator);
    return required.Execute(access_);
  }

  // Divides an entry at the segment that is behind half of its members.
  bool Divide(const Node& found, size_t at) {
    const auto& entries = found.node.entries;
    const std::string_view first = at == 0 ? found.separator() : entries[at].separator;
    const auto fence = EndOf(found, at);
    Segments segments(access_, record_.id, MainPart(kind_));
    Required required;
    uint64_t left = 0;
    for (const Loaded* next = segments.Find(first); next != nullptr;
         next = segments.FindNext(*next)) {
      const std::string_view separator = SeparatorOf(next->key);
      if (fence && separator >= *fence) return false;
      if (left >= entries[at].count / 2 && separator > first) {
        AddDivide(required, found.key, entries[at].separator, separator, left);
        return required.Execute(access_);
      }
      required.AddSegment(*next);
      left += PiecesWithin(FormOf(MainPart(kind_), kind_), separator, next->segment, first, fence)
                  .value_or(0);
    }
    return false;
  }

  // `begin`: the separator of the entry that is divided, so that no other one is that has its place
  // by then. `left` members stay in it.
  static void AddDivide(Required& required, std::string_view key, std::string_view begin,
                        std::string_view separator, uint64_t left) {
    static const Function* const divide = FindFunction("large-counts-divide");
    Scratch scratch;
    const std::string_view texts[] = {begin, separator};
    std::string operand(types::JoinTexts(texts, scratch));
    AppendVarint(operand, left);
    required.Apply(key, divide, operand);
  }
  static void AddJoin(Required& required, std::string_view key, std::string_view separator) {
    static const Function* const join = FindFunction("large-counts-join");
    Scratch scratch;
    required.Apply(key, join, types::JoinTexts(std::span(&separator, 1), scratch));
  }

  // Has the level above follow a change of nodes: `add` gets the node there that has the separator.
  // False: there is none.
  template <class Add>
  bool AddAbove(Required& required, uint64_t level, std::string_view separator, Add add) {
    if (level == kCountLevelsMax) return true;
    if (level == record_.first) {
      required.AddAbsence(SegmentKey(record_.id, CountsPart(level + 1), {}));
      return true;
    }
    const auto above = Read(level + 1, separator);
    if (above) add(*above);
    return above.has_value();
  }

  // False: the node has not changed, so those above have not, either.
  bool MendNode(uint64_t level, std::string_view place) {
    const auto found = Read(level, place);
    if (!found) return false;
    if (IsTooLarge(found->bytes, found->node)) {
      if (!Split(level, *found)) return false;
      if (level == record_.first) AddLevel();
      return true;
    }
    const bool is_small = found->node.entries.size() < kNodeEntriesMax / 8;
    return is_small && found->node.fence && JoinWithNext(level, *found);
  }

  bool Split(uint64_t level, const Node& found) {
    const std::span<const CountEntry> entries = found.node.entries;
    const auto left = entries.first(entries.size() / 2);
    const auto right = entries.subspan(left.size());
    const std::string_view middle = right.front().separator;
    uint64_t members = 0;
    for (const CountEntry& entry : left) members += entry.count;
    Required required;
    required.AddValue(found.key, types::kSegment, found.bytes);
    required.Put(found.key, types::kSegment, types::WriteCountNode(middle, left));
    required.Put(SegmentKey(record_.id, CountsPart(level), middle), types::kSegment,
                 types::WriteCountNode(found.node.fence, right));
    const bool is_followed = AddAbove(required, level, middle, [&](const Node& above) {
      const bool is_first = above.separator() == found.separator();
      AddDivide(required, above.key, is_first ? std::string_view() : found.separator(), middle,
                members);
    });
    if (!is_followed || !required.Execute(access_)) return false;
    TellHints(SegmentKey(record_.id, CountsPart(level), middle), true);
    ++added_;
    return true;
  }

  bool JoinWithNext(uint64_t level, const Node& found) {
    const std::string fence(*found.node.fence);
    const auto next = Read(level, fence);
    if (!next || next->separator() != fence) return false;
    if (found.node.entries.size() + next->node.entries.size() > kNodeEntriesMax / 2) return false;
    std::vector<CountEntry> entries = found.node.entries;
    entries.insert(entries.end(), next->node.entries.begin(), next->node.entries.end());
    entries[found.node.entries.size()].separator = fence;
    Required required;
    required.AddValue(found.key, types::kSegment, found.bytes);
    required.AddValue(next->key, types::kSegment, next->bytes);
    required.Put(found.key, types::kSegment, types::WriteCountNode(next->node.fence, entries));
    required.Delete(next->key);
    const bool is_followed = AddAbove(
        required, level, fence, [&](const Node& above) { AddJoin(required, above.key, fence); });
    if (!is_followed || !required.Execute(access_)) return false;
    TellHints(std::string(next->key), false);
    --added_;
    return true;
  }

  // A node with this key was made, or is gone.
  void TellHints(const std::string& key, bool is_made) {
    if (access_.hints() == nullptr) return;
    const std::span changed(&key, 1);
    is_made ? access_.hints()->Learn(record_.id, changed)
            : access_.hints()->Learn(record_.id, {}, changed);
  }

  // Adds a level if the highest one has too many nodes.
  void AddLevel() {
    const auto record = access_.Record(key_, kind_);
    if (!record || record->id != record_.id || record->first != record_.first) return;
    if (record->first == kCountLevelsMax) return;
    const std::string from = SegmentKey(record_.id, CountsPart(record_.first), {});
    Batch batch;
    const Range range = PrefixRange(from, batch.scratch());
    batch.Scan(range, {.any_type = true});
    access_.Execute(batch);
    Required required;
    std::vector<CountEntry> entries;
    for (const Item& item : batch.items(0)) {
      const auto node = types::ReadCountNode(item.value);
      if (!node) return;
      required.AddValue(item.key, types::kSegment, item.value);
      entries.push_back({.separator = SeparatorOf(item.key), .count = node->Total()});
    }
    if (entries.size() <= kTopNodesMax) return;
    types::LargeRecord after = *record;
    ++after.first;
    const auto type = static_cast<uint8_t>(types::kLargeForm + kind_);
    required.AddValue(key_, type, types::BytesOf(*record));
    required.Put(key_, type, types::BytesOf(after));
    required.Put(SegmentKey(record_.id, CountsPart(after.first), {}), types::kSegment,
                 types::WriteCountNode(std::nullopt, entries));
    if (!required.Execute(access_)) return;
    TellHints(SegmentKey(record_.id, CountsPart(after.first), {}), true);
    ++added_;
    record_.first = after.first;
  }

  Access& access_;
  const std::string_view key_;
  const uint8_t kind_;
  types::LargeRecord record_;
  int64_t added_ = 0;
};

}  // namespace

// A separator may have some of the bytes of a score only: those that it has not are zeros, and no
// place with that score is below it.
Below::Below(Form form, std::string_view key) : has_score_(form == Form::kEntry) {
  if (!has_score_) {
    member_ = key;
    return;
  }
  std::string score(key.substr(0, sizeof(score_)));
  score.resize(sizeof(score_));
  score_ = NumberOf(score);
  if (key.size() > sizeof(score_)) member_ = key.substr(sizeof(score_));
}

std::optional<uint64_t> PiecesWithin(Form form, std::string_view separator, const Segment& segment,
                                     std::string_view lo, std::optional<std::string_view> fence) {
  const bool ends_within = !fence || (segment.fence && *segment.fence <= *fence);
  if (separator >= lo && ends_within) return segment.pieces;
  std::string_view body = segment.body;
  Piece piece;
  uint64_t count = 0;
  const Below is_before(form, lo);
  const Below is_within(form, fence.value_or(std::string_view()));
  const bool may_begin_before = separator < lo;
  while (!body.empty()) {
    if (!TakePiece(form, body, &piece)) return std::nullopt;
    if (may_begin_before && is_before(piece.place)) continue;
    if (fence && !is_within(piece.place)) break;
    ++count;
  }
  return count;
}

int64_t MendCounts(Access& access, std::string_view key, uint8_t kind, uint64_t id,
                   std::span<const std::string_view> places) {
  const auto record = access.Record(key, kind);
  if (!record || record->id != id) return 0;
  return Mender(access, key, kind, *record).Mend(places);
}

uint64_t MakeCounts(uint64_t id, std::vector<CountEntry> entries, const PutItem& put) {
  constexpr size_t kFill = kNodeEntriesMax * 3 / 4;
  for (uint64_t level = 0;; ++level) {
    std::vector<CountEntry> nodes;
    for (size_t begin = 0; begin < entries.size();) {
      size_t end = begin;
      for (size_t bytes = 0; end < entries.size() && end - begin < kFill; ++end) {
        bytes += entries[end].separator.size();
        if (end > begin && bytes > kNodeBytesMax / 2) break;
      }
      const auto own = std::span(entries).subspan(begin, end - begin);
      const bool is_last = end == entries.size();
      const auto fence = is_last ? std::nullopt : std::optional(entries[end].separator);
      CountEntry& node = nodes.emplace_back(CountEntry{.separator = own.front().separator});
      for (const CountEntry& entry : own) node.count += entry.count;
      put(SegmentKey(id, CountsPart(level), node.separator), types::WriteCountNode(fence, own));
      begin = end;
    }
    if (nodes.size() <= kTopNodesMax || level == kCountLevelsMax) return level;
    entries = std::move(nodes);
  }
}

// ---- Ranks ----

const Counts::Node* Counts::Keep(std::string_view separator, const Segment& item) {
  auto& read = *nodes_.emplace_back(std::make_unique<Node>());
  read.separator = separator;
  read.bytes = item.body;
  auto node = types::ReadCountNode(read.bytes);
  if (!node) return nullptr;
  read.node = std::move(*node);
  read.total = read.node.Total();
  return &read;
}

bool Counts::ReadTop() {
  const auto visit = [&](std::string_view separator, const Segment& item) {
    const Node* const node = Keep(separator, item);
    if (node != nullptr) top_.push_back(node);
    return node != nullptr;
  };
  return !top_.empty() || (view_.ForEach(CountsPart(view_.record().first), std::string_view(),
                                         false, visit, {.segments = kTopNodesMax}) &&
                           !top_.empty());
}

bool Counts::ReadChildren(uint64_t level, std::vector<std::string_view> separators) {
  std::erase_if(separators,
                [&](std::string_view separator) { return children_.contains({level, separator}); });
  std::ranges::sort(separators);
  const auto rest = std::ranges::unique(separators);
  separators.erase(rest.begin(), rest.end());
  std::vector<View::Walk> walks;
  for (const std::string_view separator : separators) {
    walks.push_back({.from = separator, .extent = {.segments = 1}});
  }
  const auto visit = [&](size_t, const Item& item, const Segment& segment) {
    const Node* const node = Keep(SeparatorOf(item.key), segment);
    if (node != nullptr) children_.emplace(NodeOfLevel{level, node->separator}, node);
    return false;
  };
  return view_.ForEachOf(CountsPart(level), walks, visit);
}

std::optional<std::vector<Counts::RankRange>> Counts::Descend(size_t targets,
                                                              const Choose& choose) {
  struct Way {
    const Node* node = nullptr;
    size_t entry = 0;
    uint64_t before = 0;
  };
  std::vector<Way> ways(targets);
  if (!ReadTop()) return std::nullopt;
  for (size_t target = 0; target < targets; ++target) {
    Way& way = ways[target];
    for (const Node* const node : top_) {
      const auto entry = choose(target, *node, way.before);
      if (entry) way = {.node = node, .entry = *entry, .before = way.before};
      if (entry) break;
      way.before += node->total;
    }
    if (way.node == nullptr) return std::nullopt;
  }
  for (uint64_t level = view_.record().first;; --level) {
    for (Way& way : ways) {
      for (size_t i = 0; i < way.entry; ++i) way.before += way.node->node.entries[i].count;
    }
    if (level == 0) break;
    std::vector<std::string_view> separators;
    for (const Way& way : ways) separators.push_back(way.node->SeparatorAt(way.entry));
    if (!ReadChildren(level - 1, separators)) return std::nullopt;
    for (size_t target = 0; target < targets; ++target) {
      Way& way = ways[target];
      const auto child = children_.find({level - 1, separators[target]});
      if (child == children_.end()) return std::nullopt;
      const auto entry = choose(target, *child->second, way.before);
      if (!entry) return std::nullopt;
      way = {.node = child->second, .entry = *entry, .before = way.before};
    }
  }
  std::vector<RankRange> ranges;
  for (const Way& way : ways) {
    const auto& entries = way.node->node.entries;
    const bool is_last = way.entry + 1 == entries.size();
    ranges.push_back(
        {.from = way.node->SeparatorAt(way.entry),
         .until = is_last ? way.node->node.fence : std::optional(entries[way.entry + 1].separator),
         .begin = way.before,
         .end = way.before + entries[way.entry].count});
  }
  return ranges;
}

std::optional<std::vector<Counts::RankRange>> Counts::FindRanks(std::span<const uint64_t> ranks) {
  return Descend(ranks.size(),
                 [&](size_t target, const Node& node, uint64_t before) -> std::optional<size_t> {
                   const auto& entries = node.node.entries;
                   if (ranks[target] >= before + node.total) return std::nullopt;
                   for (size_t i = 0; i < entries.size(); before += entries[i++].count) {
                     if (ranks[target] < before + entries[i].count) return i;
                   }
                   return std::nullopt;
                 });
}

std::optional<Counts::RankRange> Counts::FindRank(uint64_t rank) {
  auto ranges = FindRanks(std::span(&rank, 1));
  return ranges ? std::optional(ranges->front()) : std::nullopt;
}

std::optional<std::vector<uint64_t>> Counts::CountBelow(std::span<const std::string_view> keys) {
  const auto ranges =
      Descend(keys.size(), [&](size_t target, const Node& node, uint64_t) -> std::optional<size_t> {
        if (node.node.fence && keys[target] >= *node.node.fence) return std::nullopt;
        return node.node.Find(keys[target]);
      });
  if (!ranges) return std::nullopt;
  const Form form = FormOf(MainPart(kind_), kind_);
  std::vector<View::Walk> walks;
  std::vector<size_t> targets;  // of the walks
  std::vector<uint64_t> counts;
  for (size_t target = 0; target < keys.size(); ++target) {
    const RankRange& range = (*ranges)[target];
    counts.push_back(range.begin);
    if (range.from >= keys[target]) continue;
    targets.push_back(target);
    walks.push_back({.from = range.from,
                     .extent = {.until = keys[target], .segments = view_.SegmentsOf(kEntryMax)}});
  }
  bool is_whole = true;
  const auto visit = [&](size_t walk, const Item& item, const Segment& segment) {
    const size_t target = targets[walk];
    const auto pieces =
        PiecesWithin(form, SeparatorOf(item.key), segment, (*ranges)[target].from, keys[target]);
    is_whole &= pieces.has_value();
    counts[target] += pieces.value_or(0);
    return is_whole;
  };
  const bool is_read = view_.ForEachOf(MainPart(kind_), walks, visit);
  return is_read && is_whole ? std::optional(std::move(counts)) : std::nullopt;
}

bool Counts::Visit(std::span<const uint64_t> ranks, const VisitPiece& visit) {
  const Form form = FormOf(MainPart(kind_), kind_);
  // The ranks of one range are one walk.
  struct Wanted {
    RankRange range;
    size_t next;    // the first index of `ranks` that is not visited
    size_t end;     // behind the last one
    uint64_t rank;  // of the next piece
  };
  std::vector<Wanted> wanted;
  std::vector<View::Walk> walks;
  const auto ranges = FindRanks(ranks);
  if (!ranges) return false;
  for (size_t next = 0; next < ranks.size(); next = wanted.back().end) {
    const RankRange& range = (*ranges)[next];
    const auto behind = std::ranges::lower_bound(ranks.subspan(next), range.end);
    const auto end = static_cast<size_t>(behind - ranks.begin());
    wanted.push_back({.range = range, .next = next, .end = end, .rank = range.begin});
    const uint64_t pieces = ranks[end - 1] - range.begin + 1;
    walks.push_back({.from = range.from,
                     .extent = {.until = range.until, .segments = view_.SegmentsOf(pieces)}});
  }
  const auto visit_segment = [&](size_t walk, const Item& item, const Segment& segment) {
    Wanted& own = wanted[walk];
    const bool is_partly_before = SeparatorOf(item.key) < own.range.from;
    if (!is_partly_before && own.rank + segment.pieces <= ranks[own.next]) {
      own.rank += segment.pieces;
      return true;
    }
    const Below is_before(form, own.range.from);
    WithForm(form, [&](auto of) {
      std::string_view body = segment.body;
      Piece piece;
      while (own.next < own.end && !body.empty() && TakePiece(of, body, &piece)) {
        if (is_partly_before && is_before(piece.place)) continue;
        for (; own.next < own.end && ranks[own.next] == own.rank; ++own.next) {
          visit(own.next, piece, item);
        }
        ++own.rank;
      }
    });
    return own.next < own.end;
  };
  return view_.ForEachOf(MainPart(kind_), walks, visit_segment) &&
         std::ranges::all_of(wanted, [](const Wanted& own) { return own.next == own.end; });
}

}  // namespace skep::collections
