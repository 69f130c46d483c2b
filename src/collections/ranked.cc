#include "collections/ranked.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/decimal.h"
#include "base/random.h"
#include "collections/counts.h"
#include "collections/large_scan.h"
#include "types/score.h"
#include "types/text.h"

namespace skep::collections {
namespace {

using By = types::RangeRequest::By;

// More draws than that are cheaper from the whole collection.
constexpr size_t kDrawsMax = 256;

// Below all places with a score, and behind them.
std::string BelowScore(double score) { return OrderedScore(score); }
std::string BehindScore(double score) { return OrderedNumber(NumberOf(OrderedScore(score)) + 1); }

// Ranks [begin, end) from the lowest score.
struct Ranks {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// As sorted_set.cc has it for a collection in one value.
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

// Indexes below `members`, distinct and ascending, or for a negative count any.
std::vector<uint64_t> DrawRanks(uint64_t members, const types::DrawRequest& request) {
  SeededRandom draws(request.seed);
  std::vector<uint64_t> drawn;
  for (int64_t i = request.count; i < 0; ++i) drawn.push_back(draws.Below(members));
  if (request.count < 0) return drawn;
  // Floyd: all sets of that size are as likely.
  std::set<uint64_t> chosen;
  const auto wanted = static_cast<uint64_t>(request.count);
  for (uint64_t i = members - wanted; i < members; ++i) {
    const uint64_t at = draws.Below(i + 1);
    chosen.insert(chosen.contains(at) ? i : at);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace

bool Ranked::Has(const Function& function) {
  static const std::set<std::string_view> names = {
      "zset-rank",  "zset-rank-from-end", "zset-range", "zset-cut",
      "zset-count", "hash-draw",          "set-draw",   "set-pop",
      "zset-draw",  "hash-scan",          "set-scan",   "zset-scan"};
  return names.contains(function.name);
}

std::optional<Answer> Ranked::Failed() const {
  if (access_.status().ok()) return std::nullopt;
  Answer answer;
  answer.status = access_.status();
  return answer;
}

std::optional<Answer> Ranked::Apply(const Function& function, std::string_view operand) {
  auto view = View::Open(access_, key_, kind_, record_);
  if (!view) return Failed();
  const std::string_view name = function.name;
  if (name.ends_with("-scan")) return ScanMembers(access_, *view, kind_, operand);
  if (name == "zset-rank") return Rank(*view, operand, false);
  if (name == "zset-rank-from-end") return Rank(*view, operand, true);
  if (name.ends_with("-draw") || name == "set-pop") return Draw(*view, function, operand);
  return Range(*view, function, operand);
}

std::optional<Answer> Ranked::Rank(View& view, std::string_view operand, bool from_end) {
  Answer answer;
  answer.integer = -1;
  const auto member = types::OnlyText(operand);
  if (!member) {
    answer.status = types::kBadOperand;
    return answer;
  }
  std::optional<double> score;
  const auto look = [&](std::string_view, const Segment& segment) {
    std::string_view body = segment.body;
    Piece piece;
    while (!score && TakePiece(Form::kMemberScore, body, &piece)) {
      if (piece.place.member != *member) continue;
      std::memcpy(&score.emplace(), piece.bytes.data() + piece.bytes.size() - sizeof(double),
                  sizeof(double));
    }
    return false;
  };
  if (!view.ForEach(Part::kMembers, *member, false, look)) return Failed();
  if (!score) return answer;
  const auto before =
      CountBelow(view, kind_, SortKey(Form::kEntry, {.score = *score, .member = *member}));
  if (!before) return Failed();
  answer.integer = static_cast<int64_t>(from_end ? view.record().members - 1 - *before : *before);
  return answer;
}

std::optional<Slice> Ranked::SliceOfRanks(View& view, uint64_t begin, uint64_t end) {
  Slice slice;
  const auto found = begin < end ? FindRank(view, begin) : std::nullopt;
  if (!found) return access_.status().ok() ? std::optional(slice) : std::nullopt;
  const Form form = FormOf(MainPart(kind_), kind_);
  uint64_t at = found->before;
  uint64_t count = 0;
  std::string body;
  bool is_first = true;
  const auto visit = [&](std::string_view separator, const Segment& segment) {
    // The first segment may have pieces of the block before.
    const uint64_t within =
        is_first ? PiecesWithin(form, separator, segment, found->block, std::nullopt).value_or(0)
                 : segment.pieces;
    is_first = false;
    const uint64_t from = at + within - segment.pieces;
    at += within;
    if (at > begin && from < end && segment.pieces > 0) {
      if (count == 0) slice.begin = from;
      body += segment.body;
      count += segment.pieces;
    }
    return at < end;
  };
  const Extent extent = {.segments = view.SegmentsOf(end - at)};
  if (!view.ForEach(MainPart(kind_), found->block, false, visit, extent)) return std::nullopt;
  slice.end = slice.begin + count;
  if (count > 0) slice.value = SmallForm(count, body);
  return slice;
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
    const auto first = SliceOfRanks(view, 0, 1);
    const auto last = SliceOfRanks(view, view.record().members - 1, view.record().members);
    if (!first || !last) return Failed();
    const auto first_pieces = PiecesOf(kind_, first->value);
    const auto last_pieces = PiecesOf(kind_, last->value);
    const auto from = types::ParseMemberBound(bounds[0]);
    const auto to = types::ParseMemberBound(bounds[1]);
    if (!from || !to) return bad;
    if (!first_pieces || !last_pieces || first_pieces->empty() || last_pieces->empty() ||
        first_pieces->front().place.score != last_pieces->back().place.score) {
      return LargeCall(access_, key_, kind_, view.record()).All(function, operand);
    }
    const double score = first_pieces->front().place.score;
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
  if (function.name == "zset-count") return Count(view, request, low, high);
  // Behind the segment that has the end, so many pieces are enough.
  const bool is_bounded = request.count >= 0 && request.offset >= 0;
  const uint64_t enough =
      is_bounded ? static_cast<uint64_t>(request.offset) + static_cast<uint64_t>(request.count)
                 : UINT64_MAX;
  const bool reverse = request.reverse != 0;
  std::vector<std::string> bodies;
  uint64_t count = 0;
  uint64_t behind_first = 0;
  const auto visit = [&](std::string_view separator, const Segment& segment) {
    if (!reverse && separator >= high) return false;
    behind_first += bodies.empty() ? 0 : segment.pieces;
    bodies.emplace_back(segment.body);
    count += segment.pieces;
    return behind_first < enough && !(reverse && separator <= low);
  };
  if (low < high && !view.ForEach(Part::kScores, reverse ? high : low, reverse, visit)) {
    return Failed();
  }
  if (reverse) std::ranges::reverse(bodies);
  std::string body;
  for (const std::string& part : bodies) body += part;
  Slice slice;
  if (count > 0) slice.value = SmallForm(count, body);
  return Finish(view, function, operand, slice);
}

std::optional<Answer> Ranked::Count(View& view, const types::RangeRequest& request,
                                    std::string_view low, std::string_view high) {
  Answer answer;
  if (low >= high) return answer;
  const auto before = CountBelow(view, kind_, low);
  const auto with = CountBelow(view, kind_, high);
  if (!before || !with) return Failed();
  const uint64_t size = *with - *before;
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
  const auto slice = SliceOfRanks(view, ranks->begin, ranks->end);
  if (!slice) return Failed();
  const uint64_t from =
      request.reverse != 0 ? slice->end - ranks->end : ranks->begin - slice->begin;
  const std::string from_text = std::to_string(from);
  const std::string to_text = std::to_string(from + (ranks->end - ranks->begin) - 1);
  request.offset = 0;
  request.count = -1;
  Scratch scratch;
  const std::string_view operand = types::WriteRangeRequest(request, from_text, to_text, scratch);
  return Finish(view, function, operand, *slice);
}

// Runs the function on the slice, and removes what it has cut.
std::optional<Answer> Ranked::Finish(View& view, const Function& function, std::string_view operand,
                                     const Slice& slice) {
  Scratch scratch;
  const auto value =
      slice.value.empty() ? std::nullopt : std::optional<std::string_view>(slice.value);
  const FunctionEffect effect = RunFunction(function, value, operand, scratch);
  if (!effect.status.ok() || effect.action == FunctionEffect::Action::kKeep) {
    return LargeCall::AnswerOf(effect);
  }
  const auto before = PiecesOf(kind_, slice.value);
  Change change(access_, key_, kind_, view.record());
  change.RequireRecord();
  LargeCall call(access_, key_, kind_, view.record());
  if (effect.integer == static_cast<int64_t>(view.record().members)) return call.Erase(effect);
  return before ? call.Write(change, *before, effect) : std::nullopt;
}

std::optional<Answer> Ranked::Draw(View& view, const Function& function, std::string_view operand) {
  const auto request = types::ReadDrawRequest(operand);
  const uint64_t members = view.record().members;
  const bool is_pop = function.name == "set-pop";
  const bool is_few =
      request && request->count >= -static_cast<int64_t>(kDrawsMax) &&
      request->count <= static_cast<int64_t>(kDrawsMax) &&
      (request->count < 0 || static_cast<uint64_t>(request->count) <= members / 8) &&
      !(is_pop && request->count < 0);
  if (!is_few) return LargeCall(access_, key_, kind_, view.record()).All(function, operand);
  Answer answer;
  std::vector<std::string> bytes;
  for (const uint64_t rank : DrawRanks(members, *request)) {
    const auto slice = SliceOfRanks(view, rank, rank + 1);
    const auto pieces = slice ? PiecesOfMain(slice->value) : std::nullopt;
    if (!pieces || pieces->size() <= rank - slice->begin) return Failed();
    bytes.emplace_back((*pieces)[rank - slice->begin].bytes);
    answer.value += bytes.back();
  }
  if (kind_ == types::kSet) answer.integer = static_cast<int64_t>(bytes.size());
  if (!is_pop || bytes.empty()) return answer;
  Pieces drawn;
  Piece piece;
  for (const std::string& member : bytes) {
    std::string_view rest = member;
    if (TakePiece(Form::kMember, rest, &piece)) drawn.push_back(piece);
  }
  return Pop(drawn, std::move(answer));
}

// The pieces in the order in which the segments have them, which is that of ranks.
std::optional<Pieces> Ranked::PiecesOfMain(std::string_view value) const {
  return PiecesOf(kind_, value);
}

// Removes members of a set, all of which must still be there.
std::optional<Answer> Ranked::Pop(const Pieces& drawn, Answer answer) {
  Change change(access_, key_, kind_, record_);
  Segments& segments = change.Of(Part::kMembers);
  for (const Piece& piece : drawn) {
    const Loaded* const loaded = segments.Find(piece.place.member);
    bool is_there = false;
    if (loaded != nullptr) {
      FindPieces(Form::kMember, loaded->segment.body, std::span(&piece.place.member, 1),
                 [&](size_t, const Piece&) { is_there = true; });
    }
    if (!is_there) return Failed();
  }
  FunctionEffect effect;
  effect.action = FunctionEffect::Action::kErase;
  effect.integer = answer.integer;
  effect.returned = answer.value;
  return LargeCall(access_, key_, kind_, record_).Write(change, drawn, effect);
}

}  // namespace skep::collections
