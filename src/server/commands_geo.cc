// Commands about places in sorted sets: GEOADD, GEODIST, GEOHASH, GEOPOS. types/geo.h has what they
// compute; commands_geo_search.cc has those that search.
#include <fmt/format.h>

#include <cstring>

#include "base/float_text.h"
#include "server/command_tables.h"
#include "server/commands.h"
#include "server/geo_args.h"
#include "server/type_args.h"
#include "types/sorted_set.h"

namespace skep {

std::string_view ParsePlace(std::span<const std::string_view> words, Scratch& scratch,
                            types::Place& place) {
  const auto longitude = ParseDouble(words[0]);
  const auto latitude = ParseDouble(words[1]);
  if (!longitude || !latitude) return "ERR value is not a valid float";
  place = {.longitude = *longitude, .latitude = *latitude};
  if (types::IsPlace(place)) return {};
  return scratch.Copy(fmt::format("ERR invalid longitude,latitude pair {:f},{:f}", place.longitude,
                                  place.latitude));
}

void ReplyDistance(RespWriter reply, double distance) {
  reply.Bulk(fmt::format("{:.4f}", distance));
}

void ReplyPlace(RespWriter reply, const types::Place& place) {
  reply.Array(2);
  reply.Decimal(TextOf(static_cast<long double>(place.longitude)));
  reply.Decimal(TextOf(static_cast<long double>(place.latitude)));
}

namespace commands_geo {
namespace {

const Function* const kAdd = TypeFunctionNamed("zset-add");
const Function* const kScore = TypeFunctionNamed("zset-score");

Plan PlanGeoadd(const Call& call, Batch& batch) {
  const auto args = call.args();
  size_t at = 2;
  uint8_t rule = 0;
  for (; at < args.size(); ++at) {
    if (EqualsIgnoringCase(args[at], "nx")) {
      rule |= types::kAddNew;
    } else if (EqualsIgnoringCase(args[at], "xx")) {
      rule |= types::kAddExisting;
    } else if (EqualsIgnoringCase(args[at], "ch")) {
      rule |= types::kAddChanged;
    } else {
      break;
    }
  }
  const bool has_both = (rule & types::kAddNew) != 0 && (rule & types::kAddExisting) != 0;
  if (at == args.size() || (args.size() - at) % 3 != 0 || has_both) {
    return Plan::Error(kSyntaxError);
  }
  std::vector<types::Entry> entries;
  for (; at < args.size(); at += 3) {
    types::Place place;
    if (const auto error = ParsePlace(args.subspan(at, 2), batch.scratch(), place);
        !error.empty()) {
      return Plan::Error(error);
    }
    entries.push_back({types::ScoreOfPlace(place), args[at + 2]});
  }
  Scratch& scratch = batch.scratch();
  batch.Apply(call.arg(1), kAdd,
              scratch.Concat({reinterpret_cast<const char*>(&rule), 1},
                             types::WriteEntries(entries, scratch)));
  return Plan::Requests();
}

Plan PlanMembers(const Call& call, Batch& batch) {
  return PlanOnKey(call, batch, kScore, call.args().subspan(2));
}

Plan PlanGeodist(const Call& call, Batch& batch) {
  if (call.args().size() > 5) return Plan::Error(kSyntaxError);
  if (call.args().size() == 5 && !types::MetresOf(call.arg(4))) return Plan::Error(kNoUnit);
  return PlanOnKey(call, batch, kScore, call.args().subspan(2, 2));
}

// The places of the members that were asked for, in their order; nothing for one that is not there.
std::vector<std::optional<types::Place>> PlacesOf(const Outcome& out) {
  std::vector<std::optional<types::Place>> places;
  std::string_view rest = out.value;
  while (!rest.empty()) {
    const bool is_there = rest[0] != 0 && rest.size() > sizeof(double);
    double score = 0;
    if (is_there) std::memcpy(&score, rest.data() + 1, sizeof score);
    rest.remove_prefix(is_there ? 1 + sizeof score : 1);
    places.push_back(is_there ? std::optional(types::PlaceOfScore(score)) : std::nullopt);
  }
  return places;
}

void FinishGeodist(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  const auto places = PlacesOf(out);
  if (!out.present || places.size() != 2 || !places[0] || !places[1]) return call.reply().Null();
  const double metres = call.args().size() == 5 ? types::MetresOf(call.arg(4)).value_or(1) : 1;
  ReplyDistance(call.reply(), types::DistanceOf(*places[0], *places[1]) / metres);
}

// Replies with an array of what `reply_one` makes of each member's place, or of its absence.
template <typename ReplyOne>
void ReplyForEachPlace(const Call& call, const Batch& batch, uint32_t slot, ReplyOne reply_one) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  const auto places = PlacesOf(out);
  RespWriter reply = call.reply();
  reply.Array(places.size());
  for (const auto& place : places) reply_one(reply, place);
}

void FinishGeohash(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyForEachPlace(call, batch, slot, [](RespWriter& reply, const auto& place) {
    place ? reply.Bulk(types::GeohashText(*place)) : reply.Null();
  });
}

void FinishGeopos(const Call& call, const Batch& batch, uint32_t slot) {
  ReplyForEachPlace(call, batch, slot, [](RespWriter& reply, const auto& place) {
    place ? ReplyPlace(reply, *place) : reply.NullArray();
  });
}

using commands::FinishInteger;
using enum Command::Flag;

constexpr Command kCommands[] = {
    {"geoadd", -5, kWrite | kStores, 1, 1, 1, "geo", "3.2.0",
     "key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]",
     "Adds places to a sorted set, or moves them.", PlanGeoadd, FinishInteger},
    {"geodist", -4, kReadOnly, 1, 1, 1, "geo", "3.2.0", "key member1 member2 [M | KM | FT | MI]",
     "Returns the distance of two places.", PlanGeodist, FinishGeodist},
    {"geohash", -2, kReadOnly, 1, 1, 1, "geo", "3.2.0", "key [member [member ...]]",
     "Returns the geohashes of places.", PlanMembers, FinishGeohash},
    {"geopos", -2, kReadOnly, 1, 1, 1, "geo", "3.2.0", "key [member [member ...]]",
     "Returns the longitudes and latitudes of places.", PlanMembers, FinishGeopos},
};

}  // namespace
}  // namespace commands_geo

std::span<const Command> GeoCommands() { return commands_geo::kCommands; }

}  // namespace skep
