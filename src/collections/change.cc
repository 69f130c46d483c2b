#include "collections/change.h"

#include <algorithm>
#include <utility>

#include "collections/counts.h"
#include "collections/large_call.h"

namespace skep::collections {
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
  --segments_added_;
  return true;
}

bool Change::TakeOverNeighbour(Part part, Target& target) {
  Loaded* const right = Of(part).Find(*target.fence);
  if (right == nullptr) return false;
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

// Counts the members that edits of the main part add and remove (counts.h).
bool Change::CountEdits(const std::vector<skep::collections::Edit>& edits) {
  const Form form = FormOf(MainPart(kind_), kind_);
  for (const auto& edit : edits) {
    if (edit.was_there == edit.bytes.has_value()) continue;
    const std::string_view place = SortKey(form, edit.place, access_.scratch());
    const Loaded* const block = blocks_.Find(place);
    if (block == nullptr) return false;
    if (counts_.empty() || counts_.back().block != block->key) {
      counts_.push_back({.block = block->key});
    }
    counts_.back().delta += edit.was_there ? -1 : 1;
    counts_.back().place = place;
  }
  return true;
}

// Asks for the blocks that have the places, which ascend. The items of blocks are short, so a scan
// of all blocks between the places costs less than a search for each, unless they are many.
void Change::LookUpBlocks(Lookup& lookup, const std::vector<std::string_view>& places) {
  constexpr uint64_t kBlocksForAPlace = 8;
  const uint64_t blocks = record_.members / (kBlockMax / 4) + 1;
  const uint64_t most = places.size() * kBlocksForAPlace;
  if (places.size() > 1 && blocks <= most) {
    lookup.AddRange(blocks_, places.front(), places.back(), static_cast<uint32_t>(most));
  } else {
    for (const std::string_view place : places) lookup.Add(blocks_, place);
  }
}

// Reads what the edits need, in one batch, unless the newest state is wanted.
void Change::LookUp(const std::vector<skep::collections::Edit>& edits,
                    const std::vector<skep::collections::Edit>& by_member) {
  if (access_.wants_newest()) return;
  Lookup lookup(access_);
  const Part main = MainPart(kind_);
  std::vector<std::string_view> counted;
  for (const auto& edit : edits) {
    const std::string_view place = SortKey(FormOf(main, kind_), edit.place, access_.scratch());
    lookup.Add(Of(main), place);
    if (edit.was_there != edit.bytes.has_value()) counted.push_back(place);
  }
  LookUpBlocks(lookup, counted);
  for (const auto& edit : by_member) lookup.Add(members_, edit.place.member);
  lookup.Run(key_, kind_);
}

bool Change::Edit(const Pieces& before, const Pieces& after) {
  const auto edits = Difference(before, after);
  std::vector<skep::collections::Edit> by_member;
  if (kind_ == types::kSortedSet) {
    Scratch& scratch = access_.scratch();
    by_member = Difference(ByMember(before, scratch), ByMember(after, scratch));
  }
  LookUp(edits, by_member);
  members_added_ += static_cast<int64_t>(after.size()) - static_cast<int64_t>(before.size());
  bytes_added_ += static_cast<int64_t>(BytesOf(after)) - static_cast<int64_t>(BytesOf(before));
  return EditPart(MainPart(kind_), edits) && CountEdits(edits) &&
         (by_member.empty() || EditPart(Part::kMembers, by_member));
}

// Adds the new segments whose keys are below `key`, from `added` on.
void Change::AddNew(Batch& batch, std::string_view key, size_t* added) const {
  for (; *added < added_.size() && added_[*added].key < key; ++*added) {
    const Added& segment = added_[*added];
    batch.Add(
        {.op = Op::kPut, .type = types::kSegment, .key = segment.key, .value = segment.bytes});
  }
}

// Adds what becomes of segments that were read: those that nobody writes are required to stay. New
// segments come between them.
void Change::AddSegments(Batch& batch, const Segments& segments, size_t* added) const {
  static const Function* const edit = FindFunction("large-segment-edit");
  for (const Loaded* const loaded : segments.all()) {
    AddNew(batch, loaded->key, added);
    batch.Apply(loaded->key, edit,
                loaded->edit.empty() ? types::KeepSegment(loaded->segment.stamp, batch.scratch())
                                     : loaded->edit);
  }
}

// The slots ascend by their keys, so that the engine need not sort them.
void Change::AddTo(Batch& batch, int64_t fewest) {
  if (requires_record_) {
    batch.Add({.op = Op::kRequireValue,
               .type = static_cast<uint8_t>(types::kLargeForm + kind_),
               .key = key_,
               .other = types::BytesOf(record_)});
  }
  Scratch& scratch = batch.scratch();
  const types::RecordChange change = {
      .id = record_.id, .members = members_added_, .bytes = bytes_added_, .fewest = fewest};
  record_slot_ =
      batch.Apply(key_, RecordFunction(kind_),
                  scratch.Copy({reinterpret_cast<const char*>(&change), sizeof(change)}));
  static const Function* const add = FindFunction("large-count-add");
  first_count_ = static_cast<uint32_t>(batch.size());
  for (const Count& count : counts_) {
    const std::string_view delta(reinterpret_cast<const char*>(&count.delta), sizeof(count.delta));
    batch.Apply(count.block, add, scratch.Concat(delta, count.place));
  }
  std::ranges::sort(added_, {}, &Added::key);
  size_t added = 0;
  AddSegments(batch, members_, &added);
  AddSegments(batch, scores_, &added);
  AddNew(batch, KeysOf(record_.id + 1), &added);
}

Answer Change::Done(const Batch& batch) {
  const Outcome& out = batch.outcome(record_slot_);
  Answer answer;
  answer.version = out.version;
  answer.is_erased = out.integer == 0;
  uint32_t slot = first_count_;
  for (const Count& count : counts_) {
    const auto now = static_cast<uint64_t>(batch.outcome(slot++).integer);
    if (now > kBlockMax || (count.delta < 0 && now < kBlockMax / 8)) {
      segments_added_ += MendBlock(access_, record_.id, kind_, count.place);
    }
  }
  answer.segments_added = segments_added_;
  return answer;
}

std::optional<Answer> Change::Commit() {
  Batch batch(Batch::Kind::kAtomic);
  AddTo(batch);
  return AnswerOfWrite(access_, batch, [&] { return Done(batch); });
}

}  // namespace skep::collections
