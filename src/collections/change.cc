#include "collections/change.h"

#include <algorithm>
#include <utility>

#include "base/varint.h"
#include "collections/counts.h"
#include "collections/large_call.h"
#include "collections/segment_hints.h"

namespace skep::collections {
namespace {

// If there are more places to look up, every so many-th of them is looked up before the others.
constexpr size_t kPlacesAtOnce = 16;

}  // namespace

Form FormOf(Part part, uint8_t kind) {
  switch (part) {
    case Part::kElements:
      return Form::kElement;
    case Part::kScores:
      return Form::kEntry;
    default:
      return kind == types::kHash  ? Form::kField
             : kind == types::kSet ? Form::kMember
                                   : Form::kMemberScore;
  }
}

const Function* RecordFunction(uint8_t kind) {
  static const Function* const functions[] = {
      FindFunction("large-hash-change"), FindFunction("large-set-change"),
      FindFunction("large-list-store"), FindFunction("large-zset-change")};
  return functions[kind - types::kHash];
}

std::string SegmentOf(const Pieces& pieces, size_t begin, size_t end,
                      std::optional<std::string_view> fence) {
  std::string body;
  for (size_t i = begin; i < end; ++i) body += pieces[i].bytes;
  return types::WriteSegment(
      {.stamp = NextStamp(), .fence = fence, .pieces = end - begin, .body = body});
}

WriteResult ResultOf(const Batch& batch, uint32_t begin, uint32_t end, Status* status) {
  WriteResult result = WriteResult::kDone;
  for (uint32_t slot = begin; slot < end; ++slot) {
    const Outcome& out = batch.outcome(slot);
    if (out.verdict == Verdict::kDone || out.verdict == Verdict::kAborted) continue;
    result = WriteResult::kAgain;
    if (out.verdict != Verdict::kRefused) continue;
    // A key with another type, or a record with another id, has changed like one with other bytes.
    const Code code = out.status.code();
    if (code == Code::kAborted || code == Code::kWrongType) continue;
    *status = out.status;
    return WriteResult::kRefused;
  }
  return result;
}

WriteResult ExecuteChange(Access& access, Batch& batch, Status* status) {
  access.Execute(batch);
  if (batch.applied()) return WriteResult::kDone;
  const WriteResult result = ResultOf(batch, 0, static_cast<uint32_t>(batch.size()), status);
  return result == WriteResult::kRefused ? result : WriteResult::kAgain;
}

size_t Change::Target::bytes() const {
  if (is_joined) return body.size();
  return first->segment.body.size() - edited.removed + edited.inserted.size();
}

std::string Change::Target::Body() const {
  if (is_joined) return body;
  std::string made(first->segment.body);
  return made.replace(edited.offset, edited.removed, edited.inserted);
}

// Whether edits have left so little that the segment should take over its neighbour.
bool Change::IsSparse(const Target& target) const {
  const bool shrinks = target.edited.removed > target.edited.inserted.size();
  return shrinks && target.fence && target.bytes() < access_.segment_bytes() / 4;
}

// The segments that the edits are in, with the edits done.
std::optional<std::vector<Change::Target>> Change::Targets(
    Part part, const std::vector<skep::collections::Edit>& edits) {
  const Form form = FormOf(part, kind_);
  std::vector<Target> targets;
  for (size_t i = 0; i < edits.size();) {
    Loaded* const loaded = Of(part).Find(SortKey(form, edits[i].place, access_.scratch()));
    if (loaded == nullptr) return std::nullopt;
    const Segment& segment = loaded->segment;
    const size_t begin = i;
    do {
      ++i;
    } while (i < edits.size() &&
             (!segment.fence || SortKey(form, edits[i].place, access_.scratch()) < *segment.fence));
    const auto edited = EditBody(form, segment.body, segment.pieces,
                                 std::span(edits).subspan(begin, i - begin), access_.scratch());
    if (!edited) return std::nullopt;
    targets.push_back({.first = loaded, .edited = *edited, .fence = segment.fence});
  }
  return targets;
}

bool Change::TakeOver(Part part, Target& target, const Target& right) {
  const bool is_next = right.first->key == SegmentKey(record_.id, part, *target.fence);
  if (!is_next || target.bytes() + right.bytes() > access_.segment_bytes()) return false;
  target.body = target.Body() + right.Body();
  target.edited.pieces += right.edited.pieces;
  target.fence = right.fence;
  target.is_joined = true;
  right.first->edit = types::DeleteSegment(right.first->segment.stamp, access_.scratch());
  gone_.emplace_back(right.first->key);
  --segments_added_;
  return true;
}

bool Change::TakeOverNeighbour(Part part, Target& target) {
  if (exchanges_.Has(SegmentKey(record_.id, part, *target.fence))) return false;
  Loaded* const right = Of(part).FindAtFence(*target.fence);
  if (right == nullptr || !right->edit.empty()) return false;
  const Segment& segment = right->segment;
  return TakeOver(part, target,
                  {.first = right, .edited = {.pieces = segment.pieces}, .fence = segment.fence});
}

bool Change::EditPart(Part part, const std::vector<skep::collections::Edit>& edits) {
  auto targets = Targets(part, edits);
  if (!targets) return false;
  for (size_t i = 0; i < targets->size();) {
    Target& target = (*targets)[i++];
    for (; i < targets->size() && IsSparse(target); ++i) {
      if (!TakeOver(part, target, (*targets)[i])) break;
    }
    // A neighbour that has edits of its own is a target itself.
    const auto is_next_edited = [&] {
      return i < targets->size() &&
             (*targets)[i].first->key == SegmentKey(record_.id, part, *target.fence);
    };
    if (IsSparse(target) && !is_next_edited()) TakeOverNeighbour(part, target);
    if (!Store(part, target)) return false;
  }
  return true;
}

// Writes a target: as a splice, if its segment stays one; else it may be cut into several. False:
// its bytes are no pieces.
bool Change::Store(Part part, const Target& target) {
  const EditedBody& edited = target.edited;
  const Segment& old = target.first->segment;
  Scratch& scratch = access_.scratch();
  const size_t bytes_max = access_.segment_bytes();
  const size_t bytes = target.bytes();
  if (bytes <= bytes_max && !target.is_joined) {
    const types::Splice splice = {.stamp = NextStamp(),
                                  .pieces = edited.pieces,
                                  .offset = edited.offset,
                                  .removed = edited.removed,
                                  .inserted = edited.inserted};
    target.first->edit = types::SpliceSegment(old.stamp, splice, scratch);
    return true;
  }
  const Form form = FormOf(part, kind_);
  const std::string body = target.Body();
  const auto pieces = ReadPieces(form, body);
  if (!pieces) return false;
  size_t run_bytes = bytes;
  if (bytes > bytes_max) {
    const bool appends = edited.appends && !target.fence;
    run_bytes = appends ? bytes_max - bytes_max / 16 : bytes / (bytes * 2 / bytes_max) + 1;
  }
  const auto runs =
      CutIntoRuns(form, *pieces, run_bytes, std::string(SeparatorOf(target.first->key)));
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool is_last = i + 1 == runs.size();
    const std::optional<std::string_view> end =
        is_last ? target.fence : std::optional<std::string_view>(runs[i + 1].separator);
    std::string segment = SegmentOf(*pieces, runs[i].begin, runs[i].end, end);
    if (i == 0) {
      target.first->edit = types::ReplaceSegment(old.stamp, segment, scratch);
    } else {
      added_.push_back(
          {.key = SegmentKey(record_.id, part, runs[i].separator), .bytes = std::move(segment)});
    }
  }
  segments_added_ += static_cast<int64_t>(runs.size()) - 1;
  return true;
}

// The places of the main part where members come or go, ascending.
std::vector<Change::Counted> Change::ListCounted(
    const std::vector<skep::collections::Edit>& edits) {
  const Form form = FormOf(MainPart(kind_), kind_);
  std::vector<Counted> counted;
  counted.reserve(edits.size());
  for (const auto& edit : edits) {
    if (edit.was_there == edit.bytes.has_value()) continue;
    counted.push_back({.place = SortKey(form, edit.place, access_.scratch()),
                       .members = edit.was_there ? -1 : 1});
  }
  return counted;
}

// Finds the keys of the nodes that count the places, where hints tell them.
void Change::HintNodes(std::span<const Counted> counted) {
  nodes_.assign(levels_.size(), {});
  if (access_.hints() == nullptr || access_.wants_newest()) return;
  std::optional<size_t> unknown;  // a level whose first node no hint knows
  {
    SegmentHints::Reading hints(*access_.hints(), record_.id);
    if (!hints) return;
    for (size_t level = 0; level < levels_.size(); ++level) {
      const Segments& nodes = levels_[level];
      auto& keys = nodes_[level];
      keys.reserve(counted.size());
      hints.BeginPart(nodes.part());
      const char* last = nullptr;
      for (const Counted& one : counted) {
        const auto found = hints.Find(one.place);
        if (!found) {
          keys.clear();
          unknown = level;
          break;
        }
        const bool is_same = found->data() == last;
        last = found->data();
        keys.push_back(is_same ? keys.back() : access_.scratch().Concat(nodes.prefix(), *found));
      }
    }
  }
  // The hints may lack the first node of a new level: another thread read them when it was told.
  if (!unknown) return;
  const std::string first(levels_[*unknown].prefix());
  access_.hints()->Learn(record_.id, std::span(&first, 1));
}

// Counts the members that come and go (counts.h).
bool Change::CountEdits(std::span<const Counted> counted) {
  for (size_t level = 0; level < levels_.size(); ++level) {
    Segments& nodes = levels_[level];
    const bool is_lowest = &nodes == &levels_.back();
    const auto& keys = nodes_[level];
    for (size_t i = 0; i < counted.size(); ++i) {
      const auto& [place, members] = counted[i];
      const Loaded* const node = keys.empty() ? nodes.Find(place) : nullptr;
      if (keys.empty() && node == nullptr) return false;
      const std::string_view key = keys.empty() ? node->key : keys[i];
      if (counts_.empty() || counts_.back().node != key) counts_.push_back({.node = key});
      Count& count = counts_.back();
      count.operand.append(reinterpret_cast<const char*>(&members), sizeof(members));
      AppendVarint(count.operand, place.size() + 1);
      count.operand += place;
      count.last = place;
      count.has_less |= members < 0;
      if (is_lowest) count.places.push_back(place);
    }
  }
  return true;
}

const Segments& Change::HighestLevel() const {
  return levels_[record_.first == 0 ? 0 : record_.first - 1];  // the lowest one is the last
}

// Asks for the nodes that have the places, which ascend. A scan of all nodes between the places
// costs less than a search for each, where the nodes are few.
void Change::LookUpNodes(Lookup& lookup, Segments& nodes, std::span<const Counted> counted) const {
  if (counted.size() > kTopNodesMax && &nodes == &HighestLevel()) {
    lookup.AddRange(nodes, counted.front().place, counted.back().place, 2 * kTopNodesMax);
  } else {
    for (const Counted& one : counted) lookup.Add(nodes, one.place);
  }
}

// Reads what the edits need, in one batch, unless the newest state is wanted. Many places are often
// neighbours, which lie in one item, and a batch reads that for each: so some are looked up before
// the others.
void Change::LookUp(const std::vector<skep::collections::Edit>& edits,
                    const std::vector<skep::collections::Edit>& by_member,
                    std::span<const Counted> counted) {
  if (access_.wants_newest()) return;
  const Part main = MainPart(kind_);
  std::vector<std::string_view> places;
  for (const auto& edit : edits) {
    if (edit.at != nullptr) continue;
    places.push_back(SortKey(FormOf(main, kind_), edit.place, access_.scratch()));
  }
  if (std::max(places.size(), counted.size()) > kPlacesAtOnce) {
    Lookup some(access_);
    for (size_t i = 0; i < places.size(); i += kPlacesAtOnce) some.Add(Of(main), places[i]);
    for (size_t level = 0; level < levels_.size(); ++level) {
      if (!nodes_[level].empty() || &levels_[level] == &HighestLevel()) continue;
      for (size_t i = 0; i < counted.size(); i += kPlacesAtOnce) {
        some.Add(levels_[level], counted[i].place);
      }
    }
    if (!some.IsEmpty()) some.Run(key_, kind_);
  }
  Lookup lookup(access_);
  for (const std::string_view place : places) lookup.Add(Of(main), place);
  for (size_t level = 0; level < levels_.size(); ++level) {
    if (nodes_[level].empty()) LookUpNodes(lookup, levels_[level], counted);
  }
  for (const auto& edit : by_member) {
    if (edit.at == nullptr) lookup.Add(members_, edit.place.member);
  }
  if (!lookup.IsEmpty()) lookup.Run(key_, kind_);
}

bool Change::Edit(const Pieces& before, const Pieces& after) {
  const auto edits = Difference(before, after);
  std::vector<skep::collections::Edit> by_member;
  if (kind_ == types::kSortedSet) {
    Scratch& scratch = access_.scratch();
    by_member = Difference(ByMember(before, scratch), ByMember(after, scratch));
  }
  const auto added = [&](auto of) {
    return static_cast<int64_t>(of(after)) - static_cast<int64_t>(of(before));
  };
  const int64_t deadlines = kind_ == types::kHash ? added(CountDeadlines) : 0;
  return EditParts(edits, by_member, added([](const Pieces& pieces) { return BytesOf(pieces); }),
                   deadlines);
}

bool Change::EditParts(std::vector<skep::collections::Edit> edits,
                       std::vector<skep::collections::Edit> by_member, int64_t bytes,
                       int64_t deadlines) {
  const Part main = MainPart(kind_);
  const auto counted = ListCounted(edits);
  for (const Counted& one : counted) members_added_ += one.members;
  bytes_added_ += bytes;
  deadlines_added_ += deadlines;
  HintNodes(counted);
  if (kind_ == types::kSortedSet && access_.hints() != nullptr && !access_.wants_newest()) {
    exchanges_.Take(members_, FormOf(Part::kMembers, kind_), by_member);
    exchanges_.Take(scores_, FormOf(Part::kScores, kind_), edits);
  }
  LookUp(edits, by_member, counted);
  return EditPart(main, edits) && CountEdits(counted) && EditPart(Part::kMembers, by_member);
}

// Adds the new segments and the exchanges whose keys are below `key`.
void Change::AddOthers(Batch& batch, std::string_view key, Others* next) {
  for (; next->added < added_.size() && added_[next->added].key < key; ++next->added) {
    const Added& segment = added_[next->added];
    exchanges_.AddBelow(batch, segment.key, &next->exchange);
    batch.Add(
        {.op = Op::kPut, .type = types::kSegment, .key = segment.key, .value = segment.bytes});
  }
  exchanges_.AddBelow(batch, key, &next->exchange);
}

// Adds what becomes of segments that were read: those that nobody writes are required to stay. The
// others come between them.
void Change::AddSegments(Batch& batch) {
  static const Function* const edit = FindFunction("large-segment-edit");
  std::ranges::sort(added_, {}, &Added::key);
  Others next;
  for (const Segments* const part : {&members_, &scores_}) {
    for (const Loaded* const loaded : part->all()) {
      AddOthers(batch, loaded->key, &next);
      batch.Apply(loaded->key, edit,
                  loaded->edit.empty() ? types::KeepSegment(loaded->segment.stamp, batch.scratch())
                                       : loaded->edit);
    }
  }
  AddOthers(batch, KeysOf(record_.id + 1), &next);
}

// The slots ascend by their keys, so that the engine need not sort them.
void Change::AddTo(Batch& batch, int64_t fewest) {
  if (requires_record_) collections::RequireRecord(batch, key_, kind_, record_);
  Scratch& scratch = batch.scratch();
  const types::RecordChange change = {.id = record_.id,
                                      .members = members_added_,
                                      .bytes = bytes_added_,
                                      .fewest = fewest,
                                      .levels = record_.first};
  std::string_view operand(reinterpret_cast<const char*>(&change), sizeof(change));
  if (deadlines_added_ != 0) {
    operand = scratch.Concat(
        operand, {reinterpret_cast<const char*>(&deadlines_added_), sizeof(deadlines_added_)});
  }
  record_slot_ = batch.Apply(key_, RecordFunction(kind_), scratch.Copy(operand));
  static const Function* const add = FindFunction("large-counts-add");
  first_count_ = static_cast<uint32_t>(batch.size());
  for (const Count& count : counts_) batch.Apply(count.node, add, count.operand);
  AddSegments(batch);
}

// Tells the hints of the segments that were made, and of those that are gone.
void Change::TellHints() const {
  if (access_.hints() == nullptr || (added_.empty() && gone_.empty())) return;
  std::vector<std::string> keys;
  for (const Added& segment : added_) keys.push_back(segment.key);
  access_.hints()->Learn(record_.id, keys, gone_);
}

bool Change::CorrectHints(const Batch& batch) const {
  if (access_.hints() == nullptr) return false;
  bool was_wrong = exchanges_.Correct(batch);
  for (size_t i = 0; i < counts_.size(); ++i) {
    const auto slot = first_count_ + static_cast<uint32_t>(i);
    was_wrong |= access_.hints()->CorrectRefused(access_, batch, slot, counts_[i].last);
  }
  return was_wrong;
}

bool Change::Mend(Part part, std::string_view place) {
  Loaded* const loaded = Of(part).FindRead(place);
  if (loaded == nullptr || !loaded->edit.empty()) return true;
  const Segment& segment = loaded->segment;
  Target target = {.first = loaded, .edited = {.pieces = segment.pieces}, .fence = segment.fence};
  if (segment.body.size() > access_.segment_bytes()) return Store(part, target);
  // The segments ascend, so one that is joined with an empty one goes on with what follows that.
  while (target.fence && target.bytes() < access_.segment_bytes() / 4) {
    Loaded* const next = Of(part).FindRead(*target.fence);
    if (next == nullptr || !next->edit.empty()) break;
    const Target right = {
        .first = next, .edited = {.pieces = next->segment.pieces}, .fence = next->segment.fence};
    if (!TakeOver(part, target, right)) break;
  }
  return !target.is_joined || Store(part, target);
}

WriteResult Change::CommitMended(int64_t* added) {
  *added = 0;
  if (added_.empty() && gone_.empty()) return WriteResult::kDone;
  Batch batch(Batch::Kind::kAtomic);
  AddSegments(batch);
  Status unwanted;
  const WriteResult result = ExecuteChange(access_, batch, &unwanted);
  if (result != WriteResult::kDone) return result;
  TellHints();
  *added = segments_added_;
  return result;
}

namespace {

// Tries once. kAgain: a segment has changed since it was read.
WriteResult TryMend(Access& access, std::string_view key, uint8_t kind,
                    const types::LargeRecord& record, std::span<const ToMend> segments,
                    int64_t* added) {
  *added = 0;
  Change change(access, key, kind, record);
  // Reads items of parts by their keys.
  using PartKey = std::pair<Part, std::string_view>;
  const auto read = [&](const std::vector<PartKey>& keys) {
    Batch& reads = access.KeptBatch(Batch::Kind::kUnordered);
    for (const auto& [part, of_segment] : keys) {
      reads.Add({.op = Op::kGet,
                 .flags = Request::kIfOfType,
                 .type = types::kSegment,
                 .key = of_segment});
    }
    access.Execute(reads);
    for (uint32_t i = 0; i < keys.size(); ++i) {
      const Outcome& out = reads.outcome(i);
      const bool is_there = out.present && out.type == types::kSegment;
      if (is_there) change.Of(keys[i].first).Keep(keys[i].second, out.value);
    }
  };
  std::vector<PartKey> keys;
  for (const ToMend& segment : segments) keys.emplace_back(segment.part, segment.key);
  read(keys);
  keys.clear();
  for (const ToMend& segment : segments) {
    const Loaded* const loaded = change.Of(segment.part).FindRead(segment.place);
    if (loaded == nullptr || !loaded->segment.fence) continue;
    if (loaded->segment.body.size() >= access.segment_bytes() / 4) continue;
    const std::string next = SegmentKey(record.id, segment.part, *loaded->segment.fence);
    keys.emplace_back(segment.part, access.scratch().Copy(next));
  }
  if (!keys.empty()) read(keys);
  const bool are_mended = std::ranges::all_of(
      segments, [&](const ToMend& segment) { return change.Mend(segment.part, segment.place); });
  return are_mended ? change.CommitMended(added) : WriteResult::kRefused;
}

}  // namespace

int64_t MendSegments(Access& access, std::string_view key, uint8_t kind,
                     const types::LargeRecord& record, std::span<const ToMend> segments) {
  constexpr int kTriesMax = 4;
  if (segments.empty()) return 0;
  int64_t added = 0;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    if (TryMend(access, key, kind, record, segments, &added) != WriteResult::kAgain) break;
  }
  return added;
}

Answer Change::Done(const Batch& batch) {
  TellHints();
  const Outcome& out = batch.outcome(record_slot_);
  Answer answer;
  answer.version = out.version;
  answer.is_erased = out.integer == 0;
  uint32_t slot = first_count_;
  std::vector<std::string_view> to_mend;
  for (const Count& count : counts_) {
    std::string_view counts = batch.outcome(slot++).value;
    uint64_t now = 0;
    for (const std::string_view place : count.places) {
      if (!TakeVarint(counts, &now)) break;
      if (now > kEntryMax || (count.has_less && now < kEntryMax / 8)) to_mend.push_back(place);
    }
  }
  if (!to_mend.empty()) {
    segments_added_ += MendCounts(access_, key_, kind_, record_.id, to_mend);
  }
  segments_added_ += MendSegments(access_, key_, kind_, record_, exchanges_.LongOrSparse(batch));
  answer.segments_added = segments_added_;
  access_.set_deadline_ms(out.deadline_ms);  // mending may have read another state
  return answer;
}

std::optional<Answer> Change::Commit() {
  Batch batch(Batch::Kind::kAtomic);
  AddTo(batch);
  return AnswerOfWrite(access_, batch, [&] { return Done(batch); });
}

}  // namespace skep::collections
