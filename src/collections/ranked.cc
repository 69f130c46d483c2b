#include "collections/ranked.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "base/decimal.h"
#include "base/random.h"
#include "collections/counts.h"
#include "collections/joint_calls.h"
#include "collections/large_scan.h"
#include "types/hash_fields.h"
#include "types/score.h"
#include "types/text.h"

namespace skep::collections {
namespace {

using By = types::RangeRequest::By;

// More draws than this share of the members are cheaper from the whole collection.
constexpr uint64_t kDrawnShare = 8;

// Below all places with a score, and behind them.
std::string BelowScore(double score) { return OrderedScore(score); }
std::string BehindScore(double score) { return OrderedNumber(NumberOf(OrderedScore(score)) + 1); }

const Function* RankFromEnd() {
  static const Function* const function = FindFunction("zset-rank-from-end");
  return function;
}
bool IsRank(const Function& function) {
  static const Function* const from_begin = FindFunction("zset-rank");
  return &function == from_begin || &function == RankFromEnd();
}

// Appends indexes below `members`, distinct and ascending, or for a negative count any.
void AppendDraws(uint64_t members, const types::DrawRequest& request, std::vector<uint64_t>* to) {
  SeededRandom draws(request.seed);
  for (int64_t i = request.count; i < 0; ++i) to->push_back(draws.Below(members));
  if (request.count == 1) return to->push_back(draws.Below(members));
  if (request.count <= 0) return;
  // Floyd: all sets of that size are as likely.
  std::set<uint64_t> chosen;
  const auto wanted = static_cast<uint64_t>(request.count);
  for (uint64_t i = members - wanted; i < members; ++i) {
    const uint64_t at = draws.Below(i + 1);
    chosen.insert(chosen.contains(at) ? i : at);
  }
  to->insert(to->end(), chosen.begin(), chosen.end());
}

}  // namespace

std::optional<Ranks> RanksOf(uint64_t members, const types::RangeRequest& request,
                             std::string_view low, std::string_view high) {
  const auto first = ParseInt64(low);
  const auto last = ParseInt64(high);
  if (!first || !last) return std::nullopt;
  const auto length = static_cast<int64_t>(members);
  const auto at = [&](int64_t rank) { return rank < 0 ? rank + length : rank; };
  const int64_t from = std::max<int64_t>(at(*first), 0);
  const int64_t to = std::min(at(*last), length - 1);
  if (from > to || request.offset < 0) return Ranks{};
  const auto size = static_cast<uint64_t>(to - from + 1);
  const uint64_t skipped = std::min(static_cast<uint64_t>(request.offset), size);
  const uint64_t taken = request.count < 0
                             ? size - skipped
                             : std::min(static_cast<uint64_t>(request.count), size - skipped);
  const uint64_t begin = static_cast<uint64_t>(from) + skipped;
  if (request.reverse == 0) return Ranks{.begin = begin, .end = begin + taken};
  return Ranks{.begin = members - begin - taken, .end = members - begin};
}

bool Ranked::Has(const Function& function) {
  static const std::set<std::string_view> names = {
      "zset-rank", "zset-rank-from-end", "zset-range", "zset-count", "hash-draw",
      "set-draw",  "zset-draw",          "hash-scan",  "set-scan",   "zset-scan"};
  return names.contains(function.name);
}

bool Ranked::Draws(const Function& function) { return function.name.ends_with("-draw"); }

std::optional<Answer> Ranked::Failed() const {
  if (access_.status().ok()) return std::nullopt;
  Answer answer;
  answer.status = access_.status();
  return answer;
}

std::optional<Answer> Ranked::Apply(const Function& function, std::string_view operand) {
  auto view = View::Open(access_, key_, kind_, record_);
  if (!view) return Failed();
  Counts counts(*view, kind_);
  const FunctionCall call = {.function = &function, .operand = operand};
  if (!Expect(*view, counts, std::span(&call, 1))) return Failed();
  return ApplyTo(*view, counts, function, operand);
}

std::optional<Answer> Ranked::ApplyTo(View& view, Counts& counts, const Function& function,
                                      std::string_view operand) {
  counts_ = &counts;
  const std::string_view name = function.name;
  if (name.ends_with("-scan")) return ScanMembers(access_, view, kind_, operand);
  if (IsRank(function)) return Rank(view, operand, &function == RankFromEnd());
  if (Draws(function)) return Draw(view, function, operand);
  return Range(view, function, operand);
}

bool Ranked::Expect(View& view, Counts& counts, std::span<const FunctionCall> calls) {
  return ExpectDraws(view, counts, calls) && ExpectRanks(view, counts, calls);
}

// Draws for calls of few draws each, for the first ones that take kDrawnBytesMax together.
bool Ranked::ExpectDraws(View& view, Counts& counts, std::span<const FunctionCall> calls) {
  std::vector<std::string_view> operands;
  const uint64_t member_bytes = view.record().bytes / view.record().members;
  uint64_t drawn = 0;
  for (const FunctionCall& call : calls) {
    if (!Draws(*call.function) || DrawsMost(view.record(), call.operand)) continue;
    const auto request = types::ReadDrawRequest(call.operand);
    const auto count = static_cast<uint64_t>(std::abs(request->count));
    if (count > kDrawnAheadMax) continue;
    drawn += count;
    if (drawn * member_bytes > kDrawnBytesMax && !operands.empty()) break;
    operands.push_back(call.operand);
  }
  return operands.empty() || DrawFor(view, counts, operands);
}

// Draws for calls with these operands, and notes what each has got. False: the view is gone.
bool Ranked::DrawFor(View& view, Counts& counts, std::span<const std::string_view> operands) {
  std::vector<uint64_t> drawn;
  for (const std::string_view operand : operands) {
    const size_t begin = pieces_.size() + drawn.size();
    AppendDraws(view.record().members, *types::ReadDrawRequest(operand), &drawn);
    drawn_.push_back(
        {.operand = operand.data(), .begin = begin, .end = pieces_.size() + drawn.size()});
  }
  std::vector<size_t> order(drawn.size());  // of the draws, by their ranks
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t draw) { return drawn[draw]; });
  std::vector<uint64_t> ranks;
  ranks.reserve(drawn.size());
  for (const size_t draw : order) ranks.push_back(drawn[draw]);
  const size_t first = pieces_.size();
  pieces_.resize(first + drawn.size());
  return counts.Visit(ranks, [&](size_t index, const Piece& piece, const Item&) {
    pieces_[first + order[index]] = access_.scratch().Copy(piece.bytes);
  });
}

bool Ranked::ExpectRanks(View& view, Counts& counts, std::span<const FunctionCall> calls) {
  std::vector<std::string_view> members;
  for (const FunctionCall& call : calls) {
    const auto member = IsRank(*call.function) ? types::OnlyText(call.operand) : std::nullopt;
    if (member && !ranks_.contains(*member)) members.push_back(*member);
  }
  if (members.empty()) return true;
  const Form form = Form::kMemberScore;
  std::vector<View::Walk> walks;
  for (const std::string_view member : members) {
    walks.push_back({.from = member, .extent = {.segments = 1}});
  }
  std::vector<std::string> keys;
  std::vector<std::string_view> found;  // the members of the keys
  const auto look = [&](size_t walk, const Item&, const Segment& segment) {
    const auto find = [&](size_t, const char*, const Piece* piece) {
      if (piece == nullptr) return;
      double score = 0;
      std::memcpy(&score, piece->bytes.data() + piece->bytes.size() - sizeof(score), sizeof(score));
      const Place place = {.score = score, .member = members[walk]};
      found.push_back(members[walk]);
      keys.push_back(SortKey(Form::kEntry, place));
    };
    FindPieces(form, segment.body, std::span(&members[walk], 1), find);
    return false;
  };
  if (!view.ForEachOf(Part::kMembers, walks, look)) return false;
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const auto below = counts.CountBelow(views);
  if (!below) return false;
  for (size_t i = 0; i < found.size(); ++i) ranks_[found[i]] = (*below)[i];
  return true;
}

std::optional<Answer> Ranked::Rank(View& view, std::string_view operand, bool from_end) {
  Answer answer;
  answer.integer = -1;
  const auto member = types::OnlyText(operand);
  if (!member) {
    answer.status = types::kBadOperand;
    return answer;
  }
  const auto at = ranks_.find(*member);
  if (at == ranks_.end()) return answer;
  const auto before = static_cast<int64_t>(at->second);
  answer.integer = from_end ? static_cast<int64_t>(view.record().members) - 1 - before : before;
  return answer;
}

bool Ranked::AppendEntries(View& view, Counts& counts, const Ranks& ranks, std::string* to,
                           bool* is_too_long) {
  if (ranks.begin >= ranks.end) return true;
  const auto found = counts.FindRank(ranks.begin);
  if (!found) return false;
  const Form form = FormOf(MainPart(kind_), kind_);
  uint64_t at = found->begin;
  const auto visit = [&](std::string_view separator, const Segment& segment) {
    if (is_too_long != nullptr && ranks.end - ranks.begin > 1 && access_.IsFarTooLong(to->size())) {
      *is_too_long = true;
      return false;
    }
    // The first segment may have pieces of the range before.
    const bool is_partly_before = separator < found->from;
    const uint64_t behind = at + segment.pieces;
    if (!is_partly_before && (behind <= ranks.begin || at >= ranks.begin) && behind <= ranks.end) {
      if (at >= ranks.begin) *to += segment.body;
      at = behind;
      return at < ranks.end;
    }
    std::string_view body = segment.body;
    Piece piece;
    const Below is_before(form, found->from);
    while (at < ranks.end && TakePiece(form, body, &piece)) {
      if (is_partly_before && is_before(piece.place)) continue;
      if (at++ >= ranks.begin) *to += piece.bytes;
    }
    return at < ranks.end;
  };
  const Extent extent = {.segments = view.SegmentsOf(ranks.end - at)};
  return view.ForEach(MainPart(kind_), found->from, false, visit, extent) && at >= ranks.end;
}

// The lowest or the highest score. Nothing: the view is gone.
std::optional<double> Ranked::EndScore(View& view, bool is_highest) {
  std::optional<double> score;
  const auto visit = [&](std::string_view, const Segment& segment) {
    std::string_view body = segment.body;
    Piece piece;
    while (TakePiece(Form::kEntry, body, &piece)) {
      score = piece.place.score;
      if (!is_highest) break;
    }
    return !score;
  };
  const bool is_read =
      view.ForEach(Part::kScores, std::nullopt, is_highest, visit, {.segments = 1});
  return is_read ? score : std::nullopt;
}

std::optional<Answer> Ranked::Range(View& view, const Function& function,
                                    std::string_view operand) {
  types::RangeRequest request;
  types::Texts bounds;
  Answer bad;
  bad.status = types::kBadOperand;
  if (operand.size() < sizeof(request)) return bad;
  std::memcpy(&request, operand.data(), sizeof(request));
  if (!types::TakeTexts(operand.substr(sizeof(request)), &bounds) || bounds.size() != 2) return bad;
  if (request.by == By::kRank) return ByRank(view, function, request, bounds[0], bounds[1]);
  std::string low;
  std::string high;  // behind the range
  if (request.by == By::kScore) {
    const auto from = types::ParseScoreBound(bounds[0]);
    const auto to = types::ParseScoreBound(bounds[1]);
    if (!from || !to) return bad;
    low = from->is_open ? BehindScore(from->score) : BelowScore(from->score);
    high = to->is_open ? BelowScore(to->score) : BehindScore(to->score);
  } else {
    // Where all scores are equal the members ascend, and only there a range of them is one.
    const auto from = types::ParseMemberBound(bounds[0]);
    const auto to = types::ParseMemberBound(bounds[1]);
    if (!from || !to) return bad;
    const auto lowest = EndScore(view, false);
    const auto highest = EndScore(view, true);
    if (!lowest || !highest) return Failed();
    if (*lowest != *highest) {
      return LargeCall(access_, key_, kind_, view.record()).All(function, operand);
    }
    const double score = *lowest;
    using Kind = types::MemberBound::Kind;
    const auto key = [&](const types::MemberBound& bound, Kind behind) {
      if (bound.kind == Kind::kLowest) return BelowScore(score);
      if (bound.kind == Kind::kHighest) return BehindScore(score);
      std::string bytes = OrderedScore(score).append(bound.member);
      return bound.kind == behind ? bytes + '\0' : bytes;
    };
    low = key(*from, Kind::kOpen);
    high = key(*to, Kind::kClosed);
  }
  if (function.name == "zset-count") return Count(request, low, high);
  // Behind the segment that has the end, so many pieces are enough.
  const bool is_bounded = request.count >= 0 && request.offset >= 0;
  const uint64_t enough =
      is_bounded ? static_cast<uint64_t>(request.offset) + static_cast<uint64_t>(request.count)
                 : UINT64_MAX;
  const bool reverse = request.reverse != 0;
  std::vector<std::string> bodies;
  uint64_t count = 0;
  uint64_t behind_first = 0;
  bool is_too_long = false;
  const auto visit = [&](std::string_view separator, const Segment& segment) {
    if (!reverse && separator >= high) return false;
    behind_first += bodies.empty() ? 0 : segment.pieces;
    bodies.emplace_back(segment.body);
    count += segment.pieces;
    is_too_long = function.reads_only && access_.IsTooLong(view.record(), count);
    return !is_too_long && behind_first < enough && !(reverse && separator <= low);
  };
  if (low < high && !view.ForEach(Part::kScores, reverse ? high : low, reverse, visit)) {
    return Failed();
  }
  if (is_too_long) return LargeCall::TooLong();
  if (reverse) std::ranges::reverse(bodies);
  std::string body;
  for (const std::string& part : bodies) body += part;
  return Finish(function, operand, count > 0 ? SmallForm(count, body) : std::string());
}

std::optional<Answer> Ranked::Count(const types::RangeRequest& request, std::string_view low,
                                    std::string_view high) {
  Answer answer;
  if (low >= high) return answer;
  const std::string_view bounds[] = {low, high};
  const auto below = counts_->CountBelow(bounds);
  if (!below) return Failed();
  const uint64_t size = below->back() - below->front();
  uint64_t taken =
      request.offset < 0 ? 0 : size - std::min(static_cast<uint64_t>(request.offset), size);
  if (request.count >= 0) taken = std::min(taken, static_cast<uint64_t>(request.count));
  answer.integer = static_cast<int64_t>(taken);
  return answer;
}

std::optional<Answer> Ranked::ByRank(View& view, const Function& function,
                                     types::RangeRequest request, std::string_view first,
                                     std::string_view last) {
  const uint64_t members = view.record().members;
  const auto ranks = RanksOf(members, request, first, last);
  Answer answer;
  if (!ranks) {
    answer.status = types::kBadOperand;
    return answer;
  }
  if (ranks->begin >= ranks->end) return answer;
  if (function.name == "zset-count") {
    answer.integer = static_cast<int64_t>(ranks->end - ranks->begin);
    return answer;
  }
  if (function.reads_only && access_.IsTooLong(view.record(), ranks->end - ranks->begin)) {
    return LargeCall::TooLong();
  }
  std::string body;
  bool is_too_long = false;
  if (!AppendEntries(view, *counts_, *ranks, &body, function.reads_only ? &is_too_long : nullptr)) {
    return is_too_long ? LargeCall::TooLong() : Failed();
  }
  request.offset = 0;
  request.count = -1;
  Scratch scratch;
  const std::string_view all = types::WriteRangeRequest(request, "0", "-1", scratch);
  return Finish(function, all, SmallForm(ranks->end - ranks->begin, body));
}

Answer Ranked::Finish(const Function& function, std::string_view operand, std::string_view slice) {
  Scratch scratch;
  const auto value = slice.empty() ? std::nullopt : std::optional(slice);
  return LargeCall::AnswerOf(RunFunction(function, value, operand, access_.now_ms(), scratch));
}

bool Ranked::DrawsMost(const types::LargeRecord& record, std::string_view operand) {
  const auto request = types::ReadDrawRequest(operand);
  if (!request || request->count < -types::kDrawsMax) return true;  // which is an error
  return static_cast<uint64_t>(std::abs(request->count)) > record.members / kDrawnShare;
}

std::optional<Answer> Ranked::Draw(View& view, const Function& function, std::string_view operand) {
  if (DrawsMost(view.record(), operand)) {
    return LargeCall(access_, key_, kind_, view.record()).All(function, operand);
  }
  const bool is_ahead =
      next_drawn_ < drawn_.size() && drawn_[next_drawn_].operand == operand.data();
  if (!is_ahead && !DrawFor(view, *counts_, std::span(&operand, 1))) return Failed();
  const Drawn drawn = is_ahead ? drawn_[next_drawn_++] : drawn_.back();
  if (!is_ahead) drawn_.pop_back();
  Answer answer;
  for (size_t i = drawn.begin; i < drawn.end; ++i) {
    std::string_view field = pieces_[i];
    uint64_t deadline_ms = 0;
    if (kind_ == types::kHash && types::TakeFieldDeadline(field, &deadline_ms) &&
        deadline_ms <= access_.now_ms()) {
      return LargeCall(access_, key_, kind_, view.record()).All(function, operand);
    }
    answer.value += field;
  }
  if (kind_ == types::kSet) answer.integer = static_cast<int64_t>(drawn.end - drawn.begin);
  return answer;
}

}  // namespace skep::collections
