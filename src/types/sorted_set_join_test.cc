// Joins of sorted sets agree with a plain map, collections are read as wholes, and places are kept.
#include "types/sorted_set_join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "types/elements.h"
#include "types/geo.h"
#include "types/value_type.h"

namespace skep::types {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::map<std::string_view, double> MapOf(const std::vector<Entry>& entries) {
  std::map<std::string_view, double> map;
  for (const Entry& entry : entries) map[entry.member] = entry.score;
  return map;
}

// Goal: the members of a join are those that a map finds, and it ascends.
// Method: one to four random sets of few members, all joins.
TEST(SortedSetJoin, AgreesWithAMap) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  const std::string names = "abcdefgh";
  for (int step = 0; step < 500; ++step) {
    std::vector<JoinInput> inputs(1 + rng() % 4);
    for (JoinInput& input : inputs) {
      for (size_t i = 0; i < names.size(); ++i) {
        if (rng() % 2 == 0) {
          input.entries.push_back({static_cast<double>(rng() % 5), {names.data() + i, 1}});
        }
      }
    }
    const auto sum = MapOf(JoinEntries(Join::kUnion, Aggregate::kSum, inputs));
    const auto most = MapOf(JoinEntries(Join::kUnion, Aggregate::kMax, inputs));
    const auto all = MapOf(JoinEntries(Join::kIntersection, Aggregate::kMin, inputs));
    const auto first = MapOf(JoinEntries(Join::kDifference, Aggregate::kSum, inputs));
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string_view name(names.data() + i, 1);
      std::vector<double> scores;
      bool in_first = false;
      for (const JoinInput& input : inputs) {
        const auto map = MapOf(input.entries);
        if (!map.contains(name)) continue;
        scores.push_back(map.at(name));
        in_first |= &input == &inputs[0];
      }
      EXPECT_EQ(sum.contains(name), !scores.empty());
      EXPECT_EQ(all.contains(name), scores.size() == inputs.size());
      EXPECT_EQ(first.contains(name), in_first && scores.size() == 1);
      if (scores.empty()) continue;
      double expected = 0;
      for (const double score : scores) expected += score;
      EXPECT_EQ(sum.at(name), expected);
      EXPECT_EQ(most.at(name), std::ranges::max(scores));
      if (all.contains(name)) EXPECT_EQ(all.at(name), std::ranges::min(scores));
    }
  }
}

// Goal: what would be no number is 0.
TEST(SortedSetJoin, NoNumbers) {
  const std::vector<JoinInput> inputs = {{.entries = {{kInfinity, "m"}}},
                                         {.entries = {{-kInfinity, "m"}}}};
  EXPECT_EQ(JoinEntries(Join::kUnion, Aggregate::kSum, inputs)[0].score, 0);
  EXPECT_EQ(JoinEntries(Join::kIntersection, Aggregate::kSum, inputs)[0].score, 0);
  EXPECT_EQ(
      JoinEntries(Join::kUnion, Aggregate::kSum, {{.entries = {{kInfinity, "m"}}, .weight = 0}})[0]
          .score,
      0);
}

// Goal: what is written is read again, in order; bytes that are cut are not read.
TEST(SortedSetJoin, WritesAndReads) {
  Scratch scratch;
  std::vector<Entry> entries = {{2, "b"}, {-0.0, "z"}, {2, "a"}, {-kInfinity, std::string_view()}};
  SortEntries(entries);
  const std::string value(WriteSortedSet(entries, scratch));
  const auto read = ReadScored(kSortedSet, value);
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->size(), 4u);
  EXPECT_EQ((*read)[0].score, -kInfinity);
  EXPECT_FALSE(std::signbit((*read)[1].score));
  EXPECT_EQ((*read)[2].member, "a");
  EXPECT_EQ(ReadElements(kSortedSet, value)->at(3), "b");
  for (size_t length = 1; length < value.size(); ++length) {
    ReadScored(kSortedSet, std::string_view(value).substr(0, length));
    ReadElements(kList, std::string_view(value).substr(0, length));
  }
  EXPECT_FALSE(ReadElements(kHash, value).has_value());
  EXPECT_TRUE(WriteSortedSet({}, scratch).empty());
}

// Goal: a place is kept to a metre, and a geohash is that of others.
TEST(Geo, PlacesAreKept) {
  std::mt19937 rng(1);
  for (int i = 0; i < 1000; ++i) {
    const Place place = {.longitude = static_cast<double>(rng() % 360'000) / 1000 - 180,
                         .latitude = static_cast<double>(rng() % 170'000) / 1000 - 85};
    const double score = ScoreOfPlace(place);
    EXPECT_EQ(score, std::floor(score));
    EXPECT_TRUE(IsPlaceScore(score));
    EXPECT_LT(DistanceOf(place, PlaceOfScore(score)), 1);
  }
  const Place palermo = PlaceOfScore(ScoreOfPlace({13.361389, 38.115556}));
  const Place catania = PlaceOfScore(ScoreOfPlace({15.087269, 37.502669}));
  EXPECT_EQ(GeohashText(palermo), "sqc8b49rny0");
  EXPECT_NEAR(DistanceOf(palermo, catania), 166274.15, 0.01);
  EXPECT_FALSE(IsPlace({.longitude = 180.001, .latitude = 0}));
  EXPECT_FALSE(IsPlace({.longitude = 0, .latitude = -85.06}));
  for (const double score : {-1.0, -kInfinity, kInfinity, 1e300}) {
    EXPECT_TRUE(IsPlace(PlaceOfScore(score)));
  }
  // Scores of no place are what Redis makes of them.
  for (const double score : {-1.0, -1e17, 9.3e18, 1e19}) {
    EXPECT_EQ(GeohashText(PlaceOfScore(score)), "bp05b5048p0") << score;
  }
  for (const double score : {-9.3e18, -kInfinity}) {
    EXPECT_GT(PlaceOfScore(score).longitude, 179) << score;
    EXPECT_LT(PlaceOfScore(score).latitude, -85) << score;
  }
  for (const double score : {-0.5, 0.0, 1.9e19, kInfinity}) {
    EXPECT_LT(PlaceOfScore(score).longitude, -179) << score;
    EXPECT_LT(PlaceOfScore(score).latitude, -85) << score;
  }
}

// Goal: a box is bounded by its sides, a circle by its radius.
TEST(Geo, Areas) {
  const Area circle = {.centre = {0, 0}, .radius = 120'000};
  const Area box = {.centre = {0, 0}, .is_box = true, .width = 240'000, .height = 100'000};
  EXPECT_TRUE(DistanceWithin(circle, {1, 0}));
  EXPECT_TRUE(DistanceWithin(circle, {0, 1}));
  EXPECT_FALSE(DistanceWithin(circle, {1, 1}));
  EXPECT_TRUE(DistanceWithin(box, {1, 0}));
  EXPECT_FALSE(DistanceWithin(box, {0, 1}));
}

// Goal: the cells of an area have all places that are in it, and no score is in two of them.
// Method: areas from a metre to more than the earth around places everywhere, at the edges of the
// grid too, and places near them and anywhere.
TEST(Geo, CellsHaveThePlacesOfAnArea) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  const auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(rng);
  };
  const auto draw_coordinate = [&](double max) {
    return rng() % 4 == 0 ? (rng() % 2 == 0 ? max : -max) : draw(-max, max);
  };
  size_t found = 0;
  for (int step = 0; step < 20'000; ++step) {
    const Place centre = {draw_coordinate(kLongitudeMax), draw_coordinate(kLatitudeMax)};
    const double size = std::pow(10, draw(0, 7.7));
    const Area area = {.centre = centre,
                       .is_box = rng() % 2 == 0,
                       .radius = size,
                       .width = size,
                       .height = size * std::pow(10, draw(-2, 1))};
    const auto cells = CellsOf(area);
    ASSERT_FALSE(cells.empty());
    ASSERT_LE(cells.size(), 19u);
    for (int i = 0; i < 20; ++i) {
      const double degrees = size / 111'000 * (rng() % 2 == 0 ? 1 : 10);
      Place place = {draw(-kLongitudeMax, kLongitudeMax), draw(-kLatitudeMax, kLatitudeMax)};
      if (i % 4 != 0) {
        place.longitude =
            std::remainder(centre.longitude + draw(-degrees, degrees), 2 * kLongitudeMax);
        place.latitude =
            std::clamp(centre.latitude + draw(-degrees, degrees), -kLatitudeMax, kLatitudeMax);
      }
      const double score = ScoreOfPlace(place);
      const auto has_it = [&](const ScoreRange& cell) {
        return cell.first <= score && score < cell.end;
      };
      const bool is_inside = DistanceWithin(area, PlaceOfScore(score)).has_value();
      const auto count = std::ranges::count_if(cells, has_it);
      ASSERT_LE(count, 1);
      if (is_inside && IsPlaceScore(score)) {
        ++found;
        ASSERT_EQ(count, 1) << centre.longitude << " " << centre.latitude << " box " << area.is_box
                            << " " << size << " " << area.height << ": " << place.longitude << " "
                            << place.latitude;
      }
    }
  }
  EXPECT_GT(found, 10'000u);
}

}  // namespace
}  // namespace skep::types
