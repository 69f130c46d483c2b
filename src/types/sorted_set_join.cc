#include "types/sorted_set_join.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "types/collection.h"
#include "types/function_table.h"

namespace skep::types {
namespace {

double Weighted(double score, double weight) {
  const double product = score * weight;
  return std::isnan(product) ? 0 : product;
}

double Combine(Aggregate aggregate, double a, double b) {
  switch (aggregate) {
    case Aggregate::kSum: {
      const double sum = a + b;
      return std::isnan(sum) ? 0 : sum;
    }
    case Aggregate::kMin:
      return b < a ? b : a;
    case Aggregate::kMax:
      return b > a ? b : a;
  }
  return a;
}

using Scores = std::unordered_map<std::string_view, double>;

Scores ScoreMapOf(const JoinInput& input) {
  Scores scores;
  scores.reserve(input.entries.size());
  for (const Entry& entry : input.entries) scores.emplace(entry.member, entry.score);
  return scores;
}

std::vector<Entry> Unite(Aggregate aggregate, const std::vector<JoinInput>& inputs) {
  Scores scores;
  for (const JoinInput& input : inputs) {
    for (const Entry& entry : input.entries) {
      const double score = Weighted(entry.score, input.weight);
      const auto [at, is_new] = scores.emplace(entry.member, score);
      if (!is_new) at->second = Combine(aggregate, at->second, score);
    }
  }
  std::vector<Entry> entries;
  entries.reserve(scores.size());
  for (const auto& [member, score] : scores) entries.push_back({score, member});
  return entries;
}

std::vector<Entry> Intersect(Aggregate aggregate, const std::vector<JoinInput>& inputs) {
  std::vector<Scores> others;
  for (const JoinInput& input : std::span(inputs).subspan(1)) others.push_back(ScoreMapOf(input));
  std::vector<Entry> entries;
  for (const Entry& entry : inputs[0].entries) {
    double score = Weighted(entry.score, inputs[0].weight);
    bool is_in_all = true;
    for (size_t i = 0; i < others.size() && is_in_all; ++i) {
      const auto at = others[i].find(entry.member);
      is_in_all = at != others[i].end();
      if (is_in_all) score = Combine(aggregate, score, at->second * inputs[i + 1].weight);
    }
    if (is_in_all) entries.push_back({score, entry.member});
  }
  return entries;
}

std::vector<Entry> Subtract(const std::vector<JoinInput>& inputs) {
  Scores others;
  for (const JoinInput& input : std::span(inputs).subspan(1)) others.merge(ScoreMapOf(input));
  std::vector<Entry> entries;
  for (const Entry& entry : inputs[0].entries) {
    if (!others.contains(entry.member)) entries.push_back(entry);
  }
  return entries;
}

FunctionEffect StoreSortedSet(const FunctionInput& input) {
  std::vector<Entry> entries;
  std::unordered_set<std::string_view> seen;
  std::string_view rest = input.operand;
  Entry entry;
  while (!rest.empty()) {
    if (!TakeEntry(rest, &entry) || !seen.insert(entry.member).second) return Failure(kBadOperand);
    entries.push_back(entry);
  }
  SortEntries(entries);
  const size_t members = entries.size();
  return Stored(WriteSortedSet(std::move(entries), *input.scratch), members,
                static_cast<int64_t>(members));
}

constexpr TypeFunction kJoinFunctions[] = {{"zset-store", StoreSortedSet, kSortedSet}};

}  // namespace

void SortEntries(std::vector<Entry>& entries) { std::ranges::sort(entries, IsBelow); }

std::vector<Entry> JoinEntries(Join join, Aggregate aggregate, std::vector<JoinInput> inputs) {
  const auto size = [](const JoinInput& input) { return input.entries.size(); };
  if (join != Join::kDifference) std::ranges::stable_sort(inputs, {}, size);
  std::vector<Entry> entries = join == Join::kUnion          ? Unite(aggregate, inputs)
                               : join == Join::kIntersection ? Intersect(aggregate, inputs)
                                                             : Subtract(inputs);
  SortEntries(entries);
  return entries;
}

std::string_view WriteSortedSet(std::vector<Entry> entries, Scratch& scratch) {
  if (entries.empty()) return {};
  for (Entry& entry : entries) entry.score += 0.0;  // minus zero becomes zero
  TextWriter count(scratch, VarintBytes(entries.size()));
  count.Number(entries.size());
  return scratch.Concat(count.bytes(), WriteEntries(entries, scratch));
}

std::span<const TypeFunction> SortedSetJoinFunctions() { return kJoinFunctions; }

}  // namespace skep::types
