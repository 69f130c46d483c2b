#include "collections/change.h"

#include <algorithm>
#include <utility>

#include "collections/counts.h"

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
      FindFunction("large-list-change"), FindFunction("large-zset-change")};
  return functions[kind - types::kHash];
}

std::string SegmentOf(const Pieces& pieces, size_t begin, size_t end,
                      std::optional<std::string_view> fence) {
  std::string body;
  for (size_t i = begin; i < end; ++i) body += pieces[i].bytes;
  return WriteSegment({.fence = fence, .pieces = end - begin, .body = body});
}

Change::Result ExecuteChange(Access& access, Batch& batch, Status* status) {
  access.Execute(batch);
  if (batch.applied()) return Change::Result::kDone;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Outcome& out = batch.outcome(slot);
    if (out.verdict != Verdict::kRefused) continue;
    // A key with another type, or a record with another id, has changed like one with other bytes.
    const Code code = out.status.code();
    if (code == Code::kAborted || code == Code::kWrongType) continue;
    *status = out.status;
    return Change::Result::kRefused;
  }
  return Change::Result::kAgain;
}

Segments& Change::Of(Part part) {
  return parts_.try_emplace(part, access_, record_.id, part).first->second;
}

bool Change::IsSparse(const Target& target) const {
  return target.shrinks && target.fence && BytesOf(target.pieces) < access_.segment_bytes() / 4;
}

// The segments that the edits are in, with the edits done.
std::optional<std::vector<Change::Target>> Change::Targets(Part part,
                                                           const std::vector<Edit>& edits) {
  const Form form = FormOf(part, kind_);
  std::vector<Target> targets;
  for (size_t i = 0; i < edits.size();) {
    const Loaded* const loaded = Of(part).Find(SortKey(form, edits[i].place));
    if (loaded == nullptr) return std::nullopt;
    const auto& fence = loaded->segment.fence;
    std::vector<Edit> own;
    for (; i < edits.size() && (!fence || SortKey(form, edits[i].place) < *fence); ++i) {
      own.push_back(edits[i]);
    }
    const auto pieces = ReadPieces(form, loaded->segment.body);
    if (!pieces || own.empty()) return std::nullopt;
    Target target = {.first = loaded, .pieces = WithEdits(*pieces, own), .fence = fence};
    target.shrinks = BytesOf(target.pieces) < loaded->segment.body.size();
    target.appends = !fence && !pieces->empty() && pieces->back().place < own.front().place;
    targets.push_back(std::move(target));
  }
  return targets;
}

bool Change::TakeOver(Part part, Target& target, const Loaded& right, const Pieces& pieces,
                      std::optional<std::string_view> fence) {
  const bool is_next = right.key == SegmentKey(record_.id, part, *target.fence);
  if (!is_next || BytesOf(target.pieces) + BytesOf(pieces) > access_.segment_bytes()) return false;
  target.pieces.insert(target.pieces.end(), pieces.begin(), pieces.end());
  target.fence = fence;
  writes_.push_back({.key = right.key, .bytes = std::nullopt});
  --segments_added_;
  return true;
}

bool Change::TakeOverNeighbour(Part part, Target& target) {
  const Loaded* const right = Of(part).Find(std::string(*target.fence));
  if (right == nullptr) return false;
  const auto pieces = ReadPieces(FormOf(part, kind_), right->segment.body);
  return pieces && TakeOver(part, target, *right, *pieces, right->segment.fence);
}

bool Change::EditPart(Part part, const std::vector<Edit>& edits) {
  auto targets = Targets(part, edits);
  if (!targets) return false;
  for (size_t i = 0; i < targets->size();) {
    Target& target = (*targets)[i++];
    while (
        i < targets->size() && IsSparse(target) &&
        TakeOver(part, target, *(*targets)[i].first, (*targets)[i].pieces, (*targets)[i].fence)) {
      ++i;
    }
    // A neighbour that has edits of its own is a target itself.
    const bool is_next_edited =
        i < targets->size() && target.fence &&
        (*targets)[i].first->key == SegmentKey(record_.id, part, *target.fence);
    if (IsSparse(target) && !is_next_edited) TakeOverNeighbour(part, target);
    Store(part, target);
  }
  return true;
}

void Change::Store(Part part, const Target& target) {
  const size_t bytes = BytesOf(target.pieces);
  size_t run_bytes = bytes;
  if (const size_t bytes_max = access_.segment_bytes(); bytes > bytes_max) {
    run_bytes = target.appends ? bytes_max - bytes_max / 16 : bytes / (bytes * 2 / bytes_max) + 1;
  }
  const auto runs = CutIntoRuns(FormOf(part, kind_), target.pieces, run_bytes,
                                std::string(SeparatorOf(target.first->key)));
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool is_last = i + 1 == runs.size();
    const std::optional<std::string_view> end =
        is_last ? target.fence : std::optional<std::string_view>(runs[i + 1].separator);
    writes_.push_back({.key = SegmentKey(record_.id, part, runs[i].separator),
                       .bytes = SegmentOf(target.pieces, runs[i].begin, runs[i].end, end)});
  }
  segments_added_ += static_cast<int64_t>(runs.size()) - 1;
}

bool Change::CountEdits(const std::vector<Edit>& edits, const Pieces& before) {
  const Form form = FormOf(MainPart(kind_), kind_);
  for (const Edit& edit : edits) {
    const bool was_there =
        std::ranges::binary_search(before, Piece{.place = edit.place, .bytes = {}}, IsBefore);
    if (was_there == edit.bytes.has_value()) continue;
    std::string place = SortKey(form, edit.place);
    std::string unread;
    const auto block = access_.FindSegment(record_.id, Part::kCounts, place, &unread);
    if (!block) return false;
    Count& count = counts_[*block];
    count.delta += was_there ? -1 : 1;
    count.place = std::max(count.place, place);
  }
  return true;
}

Change::Result Change::Commit(int64_t members, int64_t bytes) {
  Batch batch(Batch::Kind::kAtomic);
  for (const auto& [part, segments] : parts_) {
    for (const auto& [separator, loaded] : segments.all()) {
      batch.Add({.op = Op::kRequireValue,
                 .type = types::kSegment,
                 .key = loaded.key,
                 .other = loaded.bytes});
    }
  }
  for (const Write& write : writes_) {
    if (write.bytes) {
      batch.Add({.op = Op::kPut, .type = types::kSegment, .key = write.key, .value = *write.bytes});
    } else {
      batch.Delete(write.key);
    }
  }
  static const Function* const add = FindFunction("large-count-add");
  const auto first_count = static_cast<uint32_t>(batch.size());
  for (const auto& [key, count] : counts_) {
    const std::string_view delta(reinterpret_cast<const char*>(&count.delta), sizeof(count.delta));
    batch.Apply(key, add, batch.scratch().Concat(delta, count.place));
  }
  if (requires_record_) {
    batch.Add({.op = Op::kRequireValue,
               .type = static_cast<uint8_t>(types::kLargeForm + kind_),
               .key = key_,
               .other = types::BytesOf(record_)});
  }
  const types::RecordChange change = {.id = record_.id, .members = members, .bytes = bytes};
  const uint32_t record = batch.Apply(key_, RecordFunction(kind_),
                                      {reinterpret_cast<const char*>(&change), sizeof(change)});
  const Result result = ExecuteChange(access_, batch, &status_);
  if (result != Result::kDone) return result;
  version_ = batch.outcome(record).version;
  has_erased_ = batch.outcome(record).integer == 0;
  uint32_t slot = first_count;
  for (const auto& [key, count] : counts_) {
    const auto now = static_cast<uint64_t>(batch.outcome(slot++).integer);
    if (now > kBlockMax || (count.delta < 0 && now < kBlockMax / 8)) {
      segments_added_ += MendBlock(access_, record_.id, kind_, count.place);
    }
  }
  return result;
}

}  // namespace skep::collections
