#include "collections/set_calls.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collections/large_call.h"
#include "types/collection.h"

namespace skep::collections {
namespace {

// Members that are drawn ahead for the pops of a group, at most.
constexpr uint64_t kDrawnAheadMax = 1024;

uint64_t CountOf(const FunctionCall& call) {
  const auto request = types::ReadDrawRequest(call.operand);
  return request ? static_cast<uint64_t>(std::max<int64_t>(request->count, 0)) : 0;
}

}  // namespace

bool SetCalls::IsPop(const Function& function) {
  static const Function* const pop = FindFunction("set-pop");
  return &function == pop;
}

uint64_t SetCalls::Taken(const types::LargeRecord& record, const FunctionCall& call) {
  return IsPop(*call.function) ? std::min(CountOf(call), record.members) : 0;
}

// Draws members of the view that were not drawn before, or all if there are fewer. False: the view
// is gone.
bool SetCalls::DrawAhead(Random& draws, uint64_t count) {
  if (!counts_) {
    auto view = View::Open(access_, key_, types::kSet, record_);
    if (!view) return false;
    counts_.emplace(view_.emplace(std::move(*view)), types::kSet);
  }
  const uint64_t members = view_->record().members;
  const uint64_t left = members - drawn_.size();
  count = std::min(count, left);
  std::vector<uint64_t> ranks;
  if (count > left / 2 || drawn_.size() > members / 2) {
    for (uint64_t rank = 0; rank < members; ++rank) {
      if (!drawn_.contains(rank)) ranks.push_back(rank);
    }
    for (uint64_t i = 0; i < count; ++i) std::swap(ranks[i], ranks[i + draws.Below(left - i)]);
    ranks.resize(count);
    drawn_.insert(ranks.begin(), ranks.end());
  } else {
    while (ranks.size() < count) {
      const uint64_t rank = draws.Below(members);
      if (drawn_.insert(rank).second) ranks.push_back(rank);
    }
  }
  std::vector<size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t draw) { return ranks[draw]; });
  std::ranges::sort(ranks);
  const size_t first = ahead_.size();
  ahead_.resize(first + ranks.size());
  // What is drawn from the state of the record need not be read again.
  const bool keeps = !access_.wants_newest() && view_->record() == record_;
  Segments& read = SegmentsOf(Part::kMembers);
  Scratch& scratch = access_.scratch();
  const bool is_drawn =
      counts_->Visit(ranks, [&](size_t index, const Piece& piece, const Item& at) {
        ahead_[first + order[index]] = scratch.Copy(piece.place.member);
        if (!keeps || read.FindRead(piece.place.member) != nullptr) return;
        read.Keep(scratch.Copy(at.key), scratch.Copy(at.value));
      });
  if (!is_drawn) ahead_.resize(first);
  return is_drawn;
}

// Takes the next member that was drawn and that no call has removed; `wanted` more are wanted with
// it. False: as for Make.
bool SetCalls::TakeNext(Random& draws, uint64_t wanted, std::string_view* name) {
  while (true) {
    if (ahead_.empty() && (!DrawAhead(draws, wanted) || ahead_.empty())) return false;
    *name = ahead_.front();
    ahead_.pop_front();
    passed_.insert(*name);
    const Member* const named = Find(*name);
    if (named == nullptr || named->now) return true;
  }
}

bool SetCalls::Pop(const FunctionCall& call, Answer* answer) {
  const auto request = types::ReadDrawRequest(call.operand);
  if (!request || request->count < 0) {
    answer->status = types::kBadOperand;
    return true;
  }
  // Not the numbers by which Expect has drawn: what is taken would depend on what is drawn.
  SeededRandom draws(~request->seed);
  std::vector<std::string_view> added;
  for (const Member& member : adds_ ? named() : std::span<const Member>()) {
    if (member.now && (!member.before || passed_.contains(member.name))) {
      added.push_back(member.name);
    }
  }
  std::vector<std::string_view> names;
  const uint64_t wanted = std::min(CountOf(call), members());
  // A member that is added meanwhile would be one of those that are all taken.
  if (wanted < CountOf(call)) RequireRecord();
  while (names.size() < wanted) {
    const uint64_t at = added.empty() ? 0 : draws.Below(members() - names.size());
    std::string_view& name = names.emplace_back();
    if (at < added.size()) {
      name = std::exchange(added[at], added.back());
      added.pop_back();
    } else if (!TakeNext(draws, wanted - names.size() + 1, &name)) {
      return false;
    }
  }
  answer->integer = static_cast<int64_t>(names.size());
  answer->value = types::JoinTexts(names, access_.scratch());
  std::ranges::sort(names);
  return Remove(names);
}

bool SetCalls::Make(const FunctionCall& call, Answer* answer) {
  static const Function* const add = FindFunction("set-add");
  if (IsPop(*call.function)) return Pop(call, answer);
  adds_ |= call.function == add;
  return MemberCalls::Make(call, answer);
}

void SetCalls::Expect(std::span<const FunctionCall> calls) {
  static const Function* const remove = FindFunction("set-remove");
  if (access_.wants_newest()) return;
  std::vector<FunctionCall> about_members;
  for (const FunctionCall& call : calls) {
    const auto request = types::ReadDrawRequest(call.operand);
    if (!IsPop(*call.function)) {
      about_members.push_back(call);
    } else if (request && ahead_.size() < kDrawnAheadMax) {
      SeededRandom draws(request->seed);
      if (!DrawAhead(draws, std::min(CountOf(call), kDrawnAheadMax))) return;
    }
  }
  if (!ahead_.empty()) {
    const std::vector<std::string_view> names(ahead_.begin(), ahead_.end());
    about_members.push_back(
        {.function = remove, .operand = types::JoinTexts(names, access_.scratch())});
  }
  MemberCalls::Expect(about_members);
}

}  // namespace skep::collections
