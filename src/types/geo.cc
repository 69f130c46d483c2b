#include "types/geo.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

#include "base/ascii.h"

namespace skep::types {
namespace {

constexpr int kBits = 26;  // of a coordinate
constexpr double kCells = uint64_t{1} << kBits;
constexpr double kEarthRadiusMetres = 6372797.560856;

double RadiansOf(double degrees) { return degrees * (std::numbers::pi / 180.0); }
double DegreesOf(double radians) { return radians / (std::numbers::pi / 180.0); }

// The bits of `low` at the even places, and those of `high` at the odd ones.
uint64_t Interleave(uint32_t low, uint32_t high) {
  uint64_t bits = 0;
  for (int i = 0; i < 32; ++i) {
    bits |= uint64_t{(low >> i) & 1} << (2 * i) | uint64_t{(high >> i) & 1} << (2 * i + 1);
  }
  return bits;
}
// The bits at the even places.
uint32_t EvenBits(uint64_t bits) {
  uint32_t low = 0;
  for (int i = 0; i < 32; ++i) low |= static_cast<uint32_t>((bits >> (2 * i)) & 1) << i;
  return low;
}

// The number of a coordinate's cell in [-max, max].
uint32_t CellOf(double coordinate, double max) {
  return static_cast<uint32_t>((coordinate + max) / (max + max) * kCells);
}
double MiddleOf(uint32_t cell, double max) {
  const double scale = max + max;
  const double low = -max + (cell / kCells) * scale;
  const double high = -max + ((cell + 1) / kCells) * scale;
  return std::clamp((low + high) / 2, -max, max);
}

uint64_t HashOf(const Place& place, double latitude_max) {
  return Interleave(CellOf(place.latitude, latitude_max), CellOf(place.longitude, kLongitudeMax));
}

// The cells of a score, also of one that no place has: what Redis's conversion gives on x86-64.
uint64_t HashOfScore(double score) {
  constexpr double kHalf = 0x1p63;
  if (score < -kHalf) return uint64_t{1} << 63;
  if (score < kHalf) return static_cast<uint64_t>(static_cast<int64_t>(score));
  return score < 2 * kHalf ? static_cast<uint64_t>(score) : 0;
}

}  // namespace

bool IsPlace(const Place& place) {
  return std::abs(place.longitude) <= kLongitudeMax && std::abs(place.latitude) <= kLatitudeMax;
}

double ScoreOfPlace(const Place& place) { return static_cast<double>(HashOf(place, kLatitudeMax)); }

Place PlaceOfScore(double score) {
  const uint64_t bits = HashOfScore(score);
  return {.longitude = MiddleOf(EvenBits(bits >> 1), kLongitudeMax),
          .latitude = MiddleOf(EvenBits(bits), kLatitudeMax)};
}

double DistanceOf(const Place& a, const Place& b) {
  const double latitude_a = RadiansOf(a.latitude);
  const double latitude_b = RadiansOf(b.latitude);
  const double u = std::sin((latitude_b - latitude_a) / 2);
  const double v = std::sin((RadiansOf(b.longitude) - RadiansOf(a.longitude)) / 2);
  const double h = u * u + std::cos(latitude_a) * std::cos(latitude_b) * v * v;
  return 2 * kEarthRadiusMetres * std::asin(std::sqrt(h));
}

std::string GeohashText(const Place& place) {
  constexpr std::string_view kAlphabet = "0123456789bcdefghjkmnpqrstuvwxyz";
  constexpr int kCharacterBits = 5;
  constexpr int kWhole = 10;                // characters that the bits fill
  const uint64_t bits = HashOf(place, 90);  // others' latitudes end at the poles
  std::string text;
  for (int i = 1; i <= kWhole; ++i) {
    text += kAlphabet[(bits >> (2 * kBits - i * kCharacterBits)) & 31];
  }
  return text + kAlphabet[0];
}

std::optional<double> MetresOf(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}};
  for (const auto& [name, metres] : kUnits) {
    if (EqualsIgnoringCase(unit, name)) return metres;
  }
  return std::nullopt;
}

namespace {

// The least box of meridians and parallels around an area.
struct Box {
  double west, east, south, north;
};
Box BoxAround(const Area& area) {
  const double half_width = area.is_box ? area.width / 2 : area.radius;
  const double half_height = area.is_box ? area.height / 2 : area.radius;
  const double latitude = DegreesOf(half_height / kEarthRadiusMetres);
  // The side nearer to a pole spans more degrees.
  const double widest = area.centre.latitude + (area.centre.latitude < 0 ? -latitude : latitude);
  const double longitude = DegreesOf(half_width / kEarthRadiusMetres / std::cos(RadiansOf(widest)));
  return {.west = area.centre.longitude - longitude,
          .east = area.centre.longitude + longitude,
          .south = area.centre.latitude - latitude,
          .north = area.centre.latitude + latitude};
}

// The least box around the places of an area. BoxAround() measures along the parallel, but the
// distance that counts is the shorter one along a great circle.
Box BoxOfPlaces(const Area& area) {
  const Place& centre = area.centre;
  const double half_height = (area.is_box ? area.height / 2 : area.radius) / kEarthRadiusMetres;
  const double latitude = DegreesOf(half_height);
  const double farthest = std::min(std::abs(centre.latitude) + latitude, kLatitudeMax);
  // Half the longitudes of a circle end where a meridian touches it; those of a box at its side
  // nearest to a pole. Of a circle that a pole is in, and of one of half the earth, none do.
  double longitude = kLongitudeMax;
  if (area.is_box) {
    const double half_width = area.width / 2 / kEarthRadiusMetres;
    const double sine = std::sin(half_width / 2) / std::cos(RadiansOf(farthest));
    if (half_width < std::numbers::pi && sine < 1) longitude = 2 * DegreesOf(std::asin(sine));
  } else if (std::abs(centre.latitude) + latitude < 90) {
    const double sine = std::sin(half_height) / std::cos(RadiansOf(centre.latitude));
    longitude = DegreesOf(std::asin(std::min(sine, 1.0)));
  }
  constexpr double kRounding = 1e-9;
  return {.west = centre.longitude - longitude - kRounding,
          .east = centre.longitude + longitude + kRounding,
          .south = std::max(centre.latitude - latitude - kRounding, -kLatitudeMax),
          .north = std::min(centre.latitude + latitude + kRounding, kLatitudeMax)};
}

// How often coordinates are halved, so that a cell and those around it have the circle. Towards the
// poles a cell is narrower.
int HalvingsFor(double radius, double latitude) {
  constexpr double kMercatorMax = 20037726.37;
  constexpr double kFarLatitude = 66;
  constexpr double kFarthestLatitude = 80;
  if (radius == 0) return kBits;
  int halvings = -1;
  for (; radius < kMercatorMax; radius *= 2) ++halvings;
  if (std::abs(latitude) > kFarLatitude) --halvings;
  if (std::abs(latitude) > kFarthestLatitude) --halvings;
  return std::clamp(halvings, 1, kBits);
}

// A cell of the grid, with the borders of it that count and of those around it.
class GridCell {
 public:
  GridCell(const Place& place, int halvings)
      : halvings_(halvings),
        column_(NumberOf(place.longitude, kLongitudeMax)),
        row_(NumberOf(place.latitude, kLatitudeMax)) {}

  double west() const { return BorderOf(column_, kLongitudeMax); }
  double east() const { return BorderOf(column_ + 1, kLongitudeMax); }
  double south() const { return BorderOf(row_, kLatitudeMax); }
  double north() const { return BorderOf(row_ + 1, kLatitudeMax); }

  // Whether the cell and those around it reach as far as the box. Around the grid's edges they are
  // those at the opposite edges, which do not.
  bool ReachesAround(const Box& box) const {
    return BorderOf(Wrap(row_ + 1) + 1, kLatitudeMax) >= box.north &&
           BorderOf(Wrap(row_ - 1), kLatitudeMax) <= box.south &&
           BorderOf(Wrap(column_ + 1) + 1, kLongitudeMax) >= box.east &&
           BorderOf(Wrap(column_ - 1), kLongitudeMax) <= box.west;
  }

  // Whether the cell and so many columns and rows on each side have the box.
  bool Has(const Box& box, int west, int east, int south, int north) const {
    return (west + 1 + east >= side() ||
            (BorderOf(column_ - west, kLongitudeMax) <= box.west &&
             BorderOf(column_ + east + 1, kLongitudeMax) >= box.east)) &&
           BorderOf(row_ - south, kLatitudeMax) <= box.south &&
           BorderOf(row_ + north + 1, kLatitudeMax) >= box.north;
  }

  // The scores of the cell so many columns east and so many rows north of this one.
  ScoreRange ScoresAt(int columns, int rows) const {
    const uint64_t bits = Interleave(static_cast<uint32_t>(Wrap(row_ + rows)),
                                     static_cast<uint32_t>(Wrap(column_ + columns)));
    const int lower_bits = 2 * (kBits - halvings_);
    return {.first = static_cast<double>(bits << lower_bits),
            .end = static_cast<double>((bits + 1) << lower_bits)};
  }

 private:
  int64_t side() const { return int64_t{1} << halvings_; }
  int64_t Wrap(int64_t number) const { return number & (side() - 1); }
  int64_t NumberOf(double coordinate, double max) const {
    return static_cast<int64_t>((coordinate + max) / (max + max) * static_cast<double>(side()));
  }
  double BorderOf(int64_t number, double max) const {
    return -max + static_cast<double>(number) / static_cast<double>(side()) * (max + max);
  }

  int halvings_;
  int64_t column_, row_;
};

// Adds the scores of places that are in none of the cells.
void AddRest(std::vector<ScoreRange>& cells) {
  std::vector<ScoreRange> sorted = cells;
  std::ranges::sort(sorted, {}, &ScoreRange::first);
  sorted.push_back({.first = kCells * kCells, .end = 0});
  double end = 0;
  for (const ScoreRange& cell : sorted) {
    if (cell.first > end) cells.push_back({.first = end, .end = cell.first});
    end = cell.end;
  }
}

}  // namespace

std::vector<ScoreRange> CellsOf(const Area& area) {
  struct Step {
    int columns, rows;  // to the east and to the north
  };
  constexpr Step kSteps[] = {{0, 0}, {0, 1},  {0, -1}, {1, 0},  {-1, 0},
                             {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
  const Box box = BoxAround(area);
  const double radius =
      area.is_box
          ? std::sqrt(area.width / 2 * (area.width / 2) + area.height / 2 * (area.height / 2))
          : area.radius;
  int halvings = HalvingsFor(radius, area.centre.latitude);
  GridCell cell(area.centre, halvings);
  if (halvings > 1 && !cell.ReachesAround(box)) cell = GridCell(area.centre, --halvings);
  const auto is_reached = [&](const Step& step) {
    if (halvings < 2) return true;
    return (step.rows >= 0 || cell.south() >= box.south) &&
           (step.rows <= 0 || cell.north() <= box.north) &&
           (step.columns >= 0 || cell.west() >= box.west) &&
           (step.columns <= 0 || cell.east() <= box.east);
  };
  std::vector<ScoreRange> cells;
  for (const Step& step : kSteps) {
    if (!is_reached(step)) continue;
    const ScoreRange scores = cell.ScoresAt(step.columns, step.rows);
    // In a grid of four cells those on both sides are the same.
    if (cells.empty() || cells.back().first != scores.first) cells.push_back(scores);
  }
  const auto reaches = [&](int columns, int rows) { return is_reached({columns, rows}) ? 1 : 0; };
  const bool is_whole =
      cell.Has(BoxOfPlaces(area), reaches(-1, 0), reaches(1, 0), reaches(0, -1), reaches(0, 1));
  if (!is_whole) AddRest(cells);
  return cells;
}

std::optional<double> DistanceWithin(const Area& area, const Place& place) {
  const Place& centre = area.centre;
  if (area.is_box) {
    const double east = DistanceOf(place, {centre.longitude, place.latitude});
    const double north = DistanceOf(place, {place.longitude, centre.latitude});
    if (east > area.width / 2 || north > area.height / 2) return std::nullopt;
  }
  const double distance = DistanceOf(centre, place);
  if (!area.is_box && distance > area.radius) return std::nullopt;
  return distance;
}

}  // namespace skep::types
