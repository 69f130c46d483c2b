#include "base/span_region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/random.h"

namespace skep {
namespace {

constexpr size_t kBlocks = 6;

std::unique_ptr<SpanRegion> Reserve() {
  auto region = SpanRegion::Reserve(kBlocks * SpanRegion::kBlockBytes, Pages::kHuge);
  EXPECT_TRUE(region);
  return std::move(*region);
}

enum class State : uint8_t { kFresh, kUsed, kKept };

// Returns the first of `count` spans in a row that are not used.
std::optional<uint32_t> FirstFree(const std::vector<State>& model, uint32_t count) {
  const auto at = std::search_n(model.begin(), model.end(), count, true,
                                [](State s, bool) { return s != State::kUsed; });
  if (at == model.end()) return std::nullopt;
  return static_cast<uint32_t>(at - model.begin());
}

// Goal: the region agrees with an array of states, whatever is taken, kept and given back; runs of
// any length are found where they first fit.
// Method: six blocks, so that runs cross blocks and often do not fit at all.
TEST(SpanRegion, AgreesWithModel) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  const auto region = Reserve();
  ASSERT_EQ(region->span_count(), kBlocks * SpanRegion::kBlockSpans);
  std::vector<State> model(region->span_count());
  std::vector<std::pair<uint32_t, uint32_t>> runs;
  const auto set = [&](uint32_t first, uint32_t count, State state) {
    std::fill_n(model.begin() + first, count, state);
  };

  for (int step = 0; step < 20000; ++step) {
    const uint64_t choice = random.Below(100);
    if (choice < 50) {
      const auto count = static_cast<uint32_t>(1 + random.Below(random.Chance(1, 20)  ? 100
                                                                : random.Chance(1, 2) ? 1
                                                                                      : 8));
      const auto first = region->FindFree(count);
      ASSERT_EQ(first, FirstFree(model, count)) << count;
      if (!first) continue;
      const auto fresh =
          std::count(model.begin() + *first, model.begin() + *first + count, State::kFresh);
      ASSERT_EQ(region->FreshIn(*first, count), static_cast<uint32_t>(fresh));
      region->Take(*first, count);
      set(*first, count, State::kUsed);
      runs.emplace_back(*first, count);
    } else if (choice < 55) {
      const auto block = region->FindFreshBlock();
      const auto fresh = std::ranges::find(model, State::kFresh);
      ASSERT_EQ(block.has_value(), fresh != model.end());
      if (!block) continue;
      const auto first = model.begin() + *block * SpanRegion::kBlockSpans;
      ASSERT_EQ(*block, (fresh - model.begin()) / SpanRegion::kBlockSpans);
      const auto last = first + SpanRegion::kBlockSpans;
      ASSERT_EQ(region->KeepFresh(*block), std::count(first, last, State::kFresh));
      std::replace(first, last, State::kFresh, State::kKept);
    } else if (choice < 95 && !runs.empty()) {
      std::swap(runs[random.Below(runs.size())], runs.back());
      region->Keep(runs.back().first, runs.back().second);
      set(runs.back().first, runs.back().second, State::kKept);
      runs.pop_back();
    } else if (region->kept_count() > 0) {
      const auto returning = region->BeginReturn();
      region->GiveBack(returning);
      region->EndReturn(returning);
      for (uint32_t bit = 0; bit < SpanRegion::kBlockSpans; ++bit) {
        State& state = model[returning.block * SpanRegion::kBlockSpans + bit];
        ASSERT_EQ(returning.spans >> bit & 1, state != State::kUsed ? 1u : 0u);
        if (state == State::kKept) state = State::kFresh;
      }
    }
    const auto kept = std::ranges::find(model, State::kKept);
    ASSERT_EQ(region->FindKept(), kept == model.end()
                                      ? std::nullopt
                                      : std::optional(static_cast<uint32_t>(kept - model.begin())));
    ASSERT_EQ(region->kept_count(), std::ranges::count(model, State::kKept));
    ASSERT_EQ(region->used_count(), std::ranges::count(model, State::kUsed));
    ASSERT_STREQ(region->Verify(), nullptr);
  }
}

// Goal: a span on its way back is not handed out until it is back, and is zero then.
// Method: one thread plays both roles.
TEST(SpanRegion, ReturningSpansAreNobodys) {
  const auto region = Reserve();
  region->Take(0, region->span_count());
  std::byte* const begin = region->begin();
  begin[5 * SpanRegion::kSpanBytes] = std::byte{1};
  region->Keep(5, 2);
  const auto returning = region->BeginReturn();
  EXPECT_EQ(returning.block, 0u);
  EXPECT_EQ(returning.spans, 0b1100000u);
  EXPECT_EQ(returning.kept, 2u);
  EXPECT_EQ(region->FindFree(1), std::nullopt);
  EXPECT_EQ(region->FindKept(), std::nullopt);
  region->Keep(7, 1);
  EXPECT_EQ(region->FindFree(1), 7u);
  EXPECT_EQ(region->FindFree(2), std::nullopt);
  region->GiveBack(returning);
  EXPECT_EQ(region->FindFree(2), std::nullopt);
  region->EndReturn(returning);
  EXPECT_EQ(region->FindFree(3), 5u);
  EXPECT_EQ(region->FreshIn(5, 3), 2u);
  EXPECT_EQ(begin[5 * SpanRegion::kSpanBytes], std::byte{0});
  EXPECT_STREQ(region->Verify(), nullptr);
}

// Goal: a block that is wholly free goes first, as a whole; else the highest block that keeps
// spans.
TEST(SpanRegion, WholeBlocksGoFirst) {
  constexpr uint32_t kBlock = SpanRegion::kBlockSpans;
  const auto region = Reserve();
  region->Take(0, region->span_count());
  region->Keep(2 * kBlock, kBlock);
  region->Keep(4 * kBlock + 3, 1);
  const auto whole = region->BeginReturn();
  EXPECT_EQ(whole.block, 2u);
  EXPECT_EQ(whole.spans, ~uint32_t{0});
  region->Keep(3 * kBlock, 1);
  const auto part = region->BeginReturn();
  EXPECT_EQ(part.block, 4u);
  EXPECT_EQ(part.spans, 8u);
}

}  // namespace
}  // namespace skep
