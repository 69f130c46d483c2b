#include "collections/puts_in_place.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/compare_bytes.h"
#include "collections/change.h"
#include "collections/counts.h"
#include "types/large_put.h"

namespace skep::collections {
namespace {

const Function* HashSet() {
  static const Function* const function = FindFunction("hash-set");
  return function;
}
const Function* HashSetNew() {
  static const Function* const function = FindFunction("hash-set-new");
  return function;
}
const Function* SetAdd() {
  static const Function* const function = FindFunction("set-add");
  return function;
}

}  // namespace

// Reads the members that the calls name. False: a call is no put, or malformed.
bool PutsInPlace::ReadMembers(std::span<const FunctionCall> calls) {
  members_.reserve(calls.size());
  for (uint32_t call = 0; call < calls.size(); ++call) {
    const bool is_set_add = calls[call].function == SetAdd();
    const bool only_new = calls[call].function == HashSetNew();
    if (!is_set_add && !only_new && calls[call].function != HashSet()) return false;
    std::string_view rest = calls[call].operand;
    if (rest.empty()) return false;
    const size_t before = members_.size();
    while (!rest.empty()) {
      const char* const begin = rest.data();
      Member member = {.name = {}, .piece = {}, .call = call, .only_new = only_new};
      std::string_view value;
      if (!types::TakeShortText(rest, &member.name)) return false;
      if (!is_set_add && !types::TakeShortText(rest, &value)) return false;
      member.piece = {begin, static_cast<size_t>(rest.data() - begin)};
      if (member.piece.size() > access_.segment_bytes()) return false;
      members_.push_back(member);
    }
    if (only_new && members_.size() != before + 1) return false;
    if (members_.size() > kPutsMax) return false;
  }
  std::ranges::sort(members_, [](const Member& a, const Member& b) {
    const int order = CompareBytes(a.name, b.name);
    // Pieces of one call lie in its operand, one behind the other.
    return order != 0         ? order < 0
           : a.call != b.call ? a.call < b.call
                              : a.piece.data() < b.piece.data();
  });
  return true;
}

// Finds the keys of the segments.
PutsInPlace::Found PutsInPlace::FindSegments(SegmentHints::Reading& hints) {
  hints.BeginPart(Part::kMembers);
  const std::string prefix = SegmentKey(record_.id, Part::kMembers, {});
  const char* last = nullptr;
  size_t of_last = 0;
  for (const Member& member : members_) {
    const auto found = hints.Find(member.name);
    if (!found) return Found::kUnknown;
    of_last = found->data() == last ? of_last + 1 : 1;
    if (of_last > kPutsOfSegmentMax) return Found::kCrowded;
    keys_.push_back(of_last > 1 ? keys_.back() : batch_.scratch().Concat(prefix, *found));
    last = found->data();
  }
  return Found::kAll;
}

// Finds the nodes of a level that count the members.
PutsInPlace::Found PutsInPlace::FindNodes(SegmentHints::Reading& hints, uint64_t level) {
  hints.BeginPart(CountsPart(level));
  const std::string prefix = SegmentKey(record_.id, CountsPart(level), {});
  auto& runs = levels_.emplace_back();
  const char* last = nullptr;
  for (uint32_t put = 0; put < members_.size(); ++put) {
    const auto found = hints.Find(members_[put].name);
    if (!found) return Found::kUnknown;
    if (found->data() != last) {
      runs.push_back({.key = batch_.scratch().Concat(prefix, *found), .first = put, .end = put});
    }
    runs.back().end = put + 1;
    last = found->data();
  }
  return Found::kAll;
}

PutsInPlace::Found PutsInPlace::FindKeysIn(SegmentHints::Reading& hints) {
  keys_.clear();
  levels_.clear();
  Found found = FindSegments(hints);
  for (uint64_t level = 0; level <= record_.first && found == Found::kAll; ++level) {
    found = FindNodes(hints, level);
  }
  return found;
}

// Finds the keys of segments and nodes. False: they are not known, or too many puts are of one
// segment.
bool PutsInPlace::FindKeys() {
  SegmentHints& hints = *access_.hints();
  Found found = Found::kUnknown;
  bool has_hints = false;
  {
    SegmentHints::Reading reading(hints, record_.id);
    has_hints = static_cast<bool>(reading);
    if (has_hints) found = FindKeysIn(reading);
  }
  if (!has_hints) {
    if (!hints.Want(access_, record_.id, members_.size())) return false;
    SegmentHints::Reading reading(hints, record_.id);
    if (reading) found = FindKeysIn(reading);
  } else if (found == Found::kUnknown && !levels_.empty()) {
    // A level of counts was added. Its first node has the empty separator; the others are found as
    // nodes are that were made by a division.
    const std::string first = SegmentKey(record_.id, CountsPart(levels_.size() - 1), {});
    hints.Learn(record_.id, std::span(&first, 1));
  }
  return found == Found::kAll;
}

void PutsInPlace::AddPuts() {
  static const Function* const put = FindFunction("large-segment-put");
  for (uint32_t i = 0; i < members_.size(); ++i) {
    Request request = {
        .op = Op::kApply,
        .key = keys_[i],
        .value = types::WritePut({.stamp = NextStamp(),
                                  .bytes_max = static_cast<uint32_t>(access_.segment_bytes()),
                                  .has_value = kind_ == types::kHash,
                                  .only_new = members_[i].only_new,
                                  .piece = members_[i].piece},
                                 batch_.scratch()),
        .function = put};
    if (i > 0) {
      request.flags = Request::kOperandOfSlot;
      request.limit = i - 1;
    }
    batch_.Add(request);
  }
}

// The slots of each level ascend by their keys, and so do the levels.
void PutsInPlace::AddCounts() {
  static const Function* const tally = FindFunction("large-counts-tally");
  const auto add_level = [&](size_t level) {
    std::string list;
    for (const NodeRun& run : levels_[level]) {
      list.clear();
      for (uint32_t put = run.first; put < run.end; ++put) {
        types::AppendPlace(1, members_[put].name, list);
      }
      batch_.Add({.op = Op::kApply,
                  .flags = Request::kOperandOfSlot,
                  .limit = static_cast<uint32_t>(members_.size() - 1),
                  .key = run.key,
                  .value = types::WriteCountsTally(run.first, level == 0 ? kEntryMax : UINT64_MAX,
                                                   list, batch_.scratch()),
                  .function = tally});
    }
  };
  for (size_t level = 1; level < levels_.size(); ++level) add_level(level);
  add_level(0);
}

void PutsInPlace::AddRecord() {
  static const Function* const of_hash = FindFunction("large-hash-tally");
  static const Function* const of_set = FindFunction("large-set-tally");
  batch_.Add({.op = Op::kApply,
              .flags = Request::kOperandOfSlot,
              .limit = static_cast<uint32_t>(members_.size() - 1),
              .key = key_,
              .value = types::WriteRecordTally(record_.id, record_.first, batch_.scratch()),
              .function = kind_ == types::kHash ? of_hash : of_set});
}

// The member of which a slot looks for the item.
const PutsInPlace::Member& PutsInPlace::MemberOf(uint32_t slot) const {
  if (slot < members_.size()) return members_[slot];
  uint32_t node = slot - static_cast<uint32_t>(members_.size());
  for (size_t i = 1; i <= levels_.size(); ++i) {
    const auto& runs = levels_[i % levels_.size()];
    if (node < runs.size()) return members_[runs[node].end - 1];
    node -= static_cast<uint32_t>(runs.size());
  }
  return members_.back();
}

// False: nothing was written.
bool PutsInPlace::Execute() {
  access_.Execute(batch_);
  is_stale_ = false;
  if (batch_.applied()) return true;
  const auto record = static_cast<uint32_t>(batch_.size() - 1);
  for (uint32_t slot = 0; slot < record; ++slot) {
    is_stale_ |= access_.hints()->CorrectRefused(access_, batch_, slot, MemberOf(slot).name);
  }
  return false;
}

// Mends an entry of each node in which one has become too large.
int64_t PutsInPlace::Mend() const {
  std::vector<std::string_view> places;
  const auto& runs = levels_.front();
  const auto first = static_cast<uint32_t>(batch_.size() - 1 - runs.size());
  for (uint32_t i = 0; i < runs.size(); ++i) {
    const int64_t put = batch_.outcome(first + i).integer;
    if (put > 0) places.push_back(members_[static_cast<size_t>(put) - 1].name);
  }
  return places.empty() ? 0 : MendCounts(access_, key_, kind_, record_.id, places);
}

// Divides the segments that have become long.
int64_t PutsInPlace::DivideLong() {
  std::vector<ToMend> segments;
  for (uint32_t put = 0; put < members_.size(); ++put) {
    if ((batch_.outcome(put).integer & types::kIsLong) == 0) continue;
    segments.push_back({.part = Part::kMembers, .key = keys_[put], .place = members_[put].name});
  }
  return MendSegments(access_, key_, kind_, record_, segments);
}

bool PutsInPlace::Run(std::span<const FunctionCall> calls, std::vector<Answer>* answers) {
  const bool may_be = access_.hints() != nullptr && !access_.wants_newest() &&
                      (kind_ == types::kSet || (kind_ == types::kHash && record_.last == 0));
  if (!may_be || !ReadMembers(calls)) return false;
  bool is_done = false;
  is_stale_ = true;
  for (int tries = 0; tries < kTriesMax && is_stale_; ++tries) {
    batch_.Clear();
    if (!FindKeys()) return false;
    AddPuts();
    AddCounts();
    AddRecord();
    is_done = Execute();
  }
  if (!is_done) return false;
  const size_t first = answers->size();
  const Outcome& record = batch_.outcome(static_cast<uint32_t>(batch_.size() - 1));
  answers->resize(first + calls.size());
  for (Answer& answer : std::span(*answers).subspan(first)) answer.version = record.version;
  for (uint32_t put = 0; put < members_.size(); ++put) {
    (*answers)[first + members_[put].call].integer += batch_.outcome(put).integer & types::kIsNew;
  }
  answers->back().segments_added = Mend() + DivideLong();
  access_.set_deadline_ms(record.deadline_ms);  // mending may have read another state
  return true;
}

}  // namespace skep::collections
