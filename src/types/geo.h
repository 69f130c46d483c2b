// geo.h: places on the earth as scores of sorted sets, as Redis's GEO commands keep them.
//
// A score is a geohash of 52 bits: longitude and latitude, each as 26 bits of its range, with the
// bits of the longitude at the odd places and those of the latitude at the even ones. So a place is
// kept to about half a metre. Latitudes end at kLatitudeMax, as those of Mercator's maps do.
//
// Thread safety: all functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skep::types {

inline constexpr double kLongitudeMax = 180;
inline constexpr double kLatitudeMax = 85.05112878;

struct Place {
  double longitude = 0;
  double latitude = 0;
};

// Whether the place can be kept.
bool IsPlace(const Place& place);
// Requires IsPlace.
double ScoreOfPlace(const Place& place);
// Whether the score is a geohash, or lies between two.
constexpr bool IsPlaceScore(double score) { return score >= 0 && score < 0x1p52; }
// The middle of the area that the score stands for. Any score has one.
Place PlaceOfScore(double score);

// The distance along the earth, a sphere here, in metres.
double DistanceOf(const Place& a, const Place& b);

// The geohash as other programs write it, of 11 characters, the last of which is always 0.
std::string GeohashText(const Place& place);

// The metres of a unit: m, km, ft or mi, in any case.
std::optional<double> MetresOf(std::string_view unit);

// A circle, or a box whose sides are parallel to the meridian of its centre. In metres.
struct Area {
  Place centre;
  bool is_box = false;
  double radius = 0;
  double width = 0;
  double height = 0;
};
// The distance from the centre if the place is in the area.
std::optional<double> DistanceWithin(const Area& area, const Place& place);

// Scores from `first` on and below `end`.
struct ScoreRange {
  double first = 0;
  double end = 0;
};
// The cells in which the places of an area lie, in the order in which Redis looks through them.
// They are cells of a grid that halves longitudes and latitudes some times, as geohashes do, so
// that they are about as large as the area: the one of the centre; those north, south, east and
// west of it; and those at its corners, north-east, north-west, south-east and south-west. Cells
// that the area does not reach are left out. If the cells do not have all of the area, which may be
// so near the poles and for areas as large as continents, all other scores come behind them, at
// which Redis does not look. No score is in two ranges, of which there are at most nineteen.
std::vector<ScoreRange> CellsOf(const Area& area);

}  // namespace skep::types
