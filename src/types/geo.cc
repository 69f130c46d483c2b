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

}  // namespace

bool IsPlace(const Place& place) {
  return std::abs(place.longitude) <= kLongitudeMax && std::abs(place.latitude) <= kLatitudeMax;
}

double ScoreOfPlace(const Place& place) { return static_cast<double>(HashOf(place, kLatitudeMax)); }

Place PlaceOfScore(double score) {
  constexpr double kScoreEnd = 0x1p63;
  const uint64_t bits = score > 0 ? static_cast<uint64_t>(std::min(score, kScoreEnd)) : 0;
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
