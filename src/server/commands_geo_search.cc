// Commands that search for places in an area: GEOSEARCH, GEOSEARCHSTORE, GEORADIUS and its kin.
//
// The sorted set is read as a whole, and its members in the cells of the area (types/geo.h) are
// looked at, in Redis's order. As in Redis the words are understood only when it has been read:
// what is wrong with the key's type, or with the member that the area is around, is told before
// what is wrong with the words behind it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/decimal.h"
#include "base/float_text.h"
#include "server/command_tables.h"
#include "server/geo_args.h"
#include "server/optimistic_write.h"
#include "server/type_args.h"
#include "server/zset_replies.h"
#include "types/elements.h"
#include "types/sorted_set_join.h"
#include "types/value_type.h"

namespace skep {
namespace commands_geo_search {
namespace {

// Which words a command has.
struct Shape {
  bool is_search = false;  // GEOSEARCH: area and centre are options
  bool by_member = false;  // GEORADIUSBYMEMBER
  bool may_store = false;  // GEORADIUS ... STORE
  bool stores = false;     // GEOSEARCHSTORE
};

enum class Order : uint8_t { kNone, kNearest, kFarthest };

struct SearchArgs {
  types::Area area;
  double metres = 1;  // of the unit
  bool has_centre = false, has_area = false, from_member = false;
  bool with_distance = false, with_hash = false, with_place = false;
  bool is_any = false;
  bool stores_distance = false;
  int64_t count = 0;  // 0: all
  Order order = Order::kNone;
  std::string_view destination;
  bool stores = false;
};

constexpr std::string_view kNoMember = "ERR could not decode requested zset member";
using Entries = std::vector<types::Entry>;

// Understands the words of a command about `entries`; null: there is no such key. Errors live in
// the scratch, or as long as the program.
class Parser {
 public:
  Parser(const Shape& shape, std::span<const std::string_view> args, const Entries* entries,
         Scratch& scratch)
      : shape_(shape), args_(args), entries_(entries), scratch_(scratch) {}

  // Returns an error text if the words are wrong, else an empty one.
  std::string_view Parse(SearchArgs& to) {
    size_t at = 2;
    if (shape_.stores) {
      at = 3;
      to.stores = true;
      to.destination = args_[1];
    }
    if (!shape_.is_search) {
      const size_t words = shape_.by_member ? 1 : 2;
      if (const auto error = ParseCentre(2, to); !error.empty()) return error;
      at = 2 + words;
      const bool skips = shape_.by_member && entries_ == nullptr;
      if (const auto error = skips ? std::string_view() : ParseRadius(at, to); !error.empty()) {
        return error;
      }
      at += 2;
    }
    while (at < args_.size()) {
      if (const auto error = ParseOption(at, to); !error.empty()) return error;
    }
    return Judge(to);
  }

 private:
  bool Is(size_t at, std::string_view name) const { return EqualsIgnoringCase(args_[at], name); }

  std::string_view ParseCentre(size_t at, SearchArgs& to) {
    return shape_.by_member ? FromMember(args_[at], to)
                            : ParsePlace(args_.subspan(at, 2), scratch_, to.area.centre);
  }
  std::string_view FromMember(std::string_view member, SearchArgs& to) {
    if (entries_ == nullptr) return {};
    const auto found = std::ranges::find(*entries_, member, &types::Entry::member);
    if (found == entries_->end()) return kNoMember;
    to.area.centre = types::PlaceOfScore(found->score);
    return {};
  }
  std::string_view ParseUnit(size_t at, SearchArgs& to) {
    const auto metres = types::MetresOf(args_[at]);
    if (!metres) return kNoUnit;
    to.metres = *metres;
    return {};
  }
  std::string_view ParseRadius(size_t at, SearchArgs& to) {
    const auto radius = ParseDouble(args_[at]);
    if (!radius) return "ERR need numeric radius";
    if (*radius < 0) return "ERR radius cannot be negative";
    const auto error = ParseUnit(at + 1, to);
    to.area.radius = *radius * to.metres;
    return error;
  }
  std::string_view ParseBox(size_t at, SearchArgs& to) {
    const auto width = ParseDouble(args_[at]);
    if (!width) return "ERR need numeric width";
    const auto height = ParseDouble(args_[at + 1]);
    if (!height) return "ERR need numeric height";
    if (*width < 0 || *height < 0) return "ERR height or width cannot be negative";
    const auto error = ParseUnit(at + 2, to);
    to.area.is_box = true;
    to.area.width = *width * to.metres;
    to.area.height = *height * to.metres;
    return error;
  }
  std::string_view ParseCount(size_t at, SearchArgs& to) {
    const auto count = ParseInt64(args_[at]);
    if (!count) return kNotAnInteger;
    if (*count <= 0) return "ERR COUNT must be > 0";
    to.count = *count;
    return {};
  }

  // Reads an option, and moves `at` behind it.
  std::string_view ParseOption(size_t& at, SearchArgs& to) {
    if (ParseFlag(at, to)) {
      ++at;
      return {};
    }
    const size_t option = at;
    const size_t left = args_.size() - at - 1;
    if (Is(option, "count") && left >= 1) {
      at += 2;
      return ParseCount(option + 1, to);
    }
    const bool is_store = Is(option, "store") || Is(option, "storedist");
    if (shape_.may_store && is_store && left >= 1) {
      at += 2;
      to.stores = true;
      to.destination = args_[option + 1];
      to.stores_distance = Is(option, "storedist");
      return {};
    }
    return shape_.is_search ? ParseSearchOption(at, to) : kSyntaxError;
  }

  bool ParseFlag(size_t at, SearchArgs& to) {
    if (Is(at, "withdist")) {
      to.with_distance = true;
    } else if (Is(at, "withhash")) {
      to.with_hash = true;
    } else if (Is(at, "withcoord")) {
      to.with_place = true;
    } else if (Is(at, "any")) {
      to.is_any = true;
    } else if (Is(at, "asc")) {
      to.order = Order::kNearest;
    } else if (Is(at, "desc")) {
      to.order = Order::kFarthest;
    } else if (shape_.stores && Is(at, "storedist")) {
      to.stores_distance = true;
    } else {
      return false;
    }
    return true;
  }

  std::string_view ParseSearchOption(size_t& at, SearchArgs& to) {
    const size_t option = at;
    const size_t left = args_.size() - at - 1;
    const bool from_place = to.has_centre && !to.from_member;
    if (Is(option, "frommember") && left >= 1 && !from_place) {
      at += 2;
      to.has_centre = to.from_member = true;
      return FromMember(args_[option + 1], to);
    }
    if (Is(option, "fromlonlat") && left >= 2 && !to.from_member) {
      at += 3;
      to.has_centre = true;
      return ParsePlace(args_.subspan(option + 1, 2), scratch_, to.area.centre);
    }
    if (Is(option, "byradius") && left >= 2 && !to.area.is_box) {
      at += 3;
      to.has_area = true;
      return ParseRadius(option + 1, to);
    }
    const bool is_circle = to.has_area && !to.area.is_box;
    if (Is(option, "bybox") && left >= 3 && !is_circle) {
      at += 4;
      to.has_area = true;
      return ParseBox(option + 1, to);
    }
    return kSyntaxError;
  }

  // What is wrong with the words together.
  std::string_view Judge(const SearchArgs& to) const {
    if (to.stores && (to.with_distance || to.with_hash || to.with_place)) {
      return shape_.stores ? "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and "
                             "WITHCOORD options"
                           : "ERR STORE option in GEORADIUS is not compatible with WITHDIST, "
                             "WITHHASH and WITHCOORD options";
    }
    if (shape_.is_search && !to.has_centre) {
      return scratch_.Concat("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ",
                             args_[0]);
    }
    if (shape_.is_search && !to.has_area) {
      return scratch_.Concat("ERR exactly one of BYRADIUS and BYBOX can be specified for ",
                             args_[0]);
    }
    if (to.is_any && to.count == 0) return "ERR the ANY argument requires COUNT argument";
    return {};
  }

  const Shape& shape_;
  const std::span<const std::string_view> args_;
  const Entries* const entries_;
  Scratch& scratch_;
};

struct Hit {
  types::Entry entry;
  types::Place place;
  double distance;  // in the unit
};

std::vector<Hit> Search(const SearchArgs& args, const Entries& entries) {
  std::vector<Hit> hits;
  const size_t hits_max = args.is_any ? static_cast<size_t>(args.count) : SIZE_MAX;
  for (const types::ScoreRange& cell : types::CellsOf(args.area)) {
    auto at = std::ranges::lower_bound(entries, cell.first, {}, &types::Entry::score);
    for (; at != entries.end() && at->score < cell.end && hits.size() < hits_max; ++at) {
      const types::Place place = types::PlaceOfScore(at->score);
      const auto distance = types::DistanceWithin(args.area, place);
      if (!distance) continue;
      hits.push_back({.entry = *at, .place = place, .distance = *distance / args.metres});
    }
  }
  // The nearest ones are wanted, unless any will do.
  const bool sorts = args.order != Order::kNone || (args.count > 0 && !args.is_any);
  if (sorts) {
    const bool farthest = args.order == Order::kFarthest;
    std::ranges::stable_sort(hits, [&](const Hit& a, const Hit& b) {
      return farthest ? b.distance < a.distance : a.distance < b.distance;
    });
  }
  if (args.count > 0 && hits.size() > static_cast<size_t>(args.count)) {
    hits.erase(hits.begin() + args.count, hits.end());
  }
  return hits;
}

void ReplyHits(const Call& call, const SearchArgs& args, const std::vector<Hit>& hits) {
  RespWriter reply = call.reply();
  const size_t more =
      (args.with_distance ? 1u : 0u) + (args.with_hash ? 1u : 0u) + (args.with_place ? 1u : 0u);
  reply.Array(hits.size());
  for (const Hit& hit : hits) {
    if (more > 0) reply.Array(1 + more);
    reply.Bulk(hit.entry.member);
    if (args.with_distance) ReplyDistance(reply, hit.distance);
    if (args.with_hash) reply.Integer(static_cast<int64_t>(hit.entry.score));
    if (args.with_place) ReplyPlace(reply, hit.place);
  }
}

// The members that an outcome has found. Returns an error text if it has another type, else an
// empty one.
std::string_view EntriesFound(const Outcome& out, std::optional<Entries>& entries) {
  entries.reset();
  if (!out.present) return {};
  if (types::KindOf(out.type) != types::kSortedSet) return kWrongType;
  entries = types::ReadScored(out.type, out.value);
  return entries ? std::string_view() : kWrongType;
}

bool AsksToStore(const Call& call, const Shape& shape) {
  const auto is_store = [](std::string_view word) {
    return EqualsIgnoringCase(word, "store") || EqualsIgnoringCase(word, "storedist");
  };
  return shape.may_store && std::ranges::any_of(call.args().subspan(2), is_store);
}

template <Shape kShape>
Plan PlanSearch(const Call& call, Batch& batch) {
  if (AsksToStore(call, kShape)) return Plan::Alone();
  batch.Add({.op = Op::kGet,
             .flags = Request::kIfOfType,
             .type = types::kSortedSet,
             .key = call.arg(1),
             .other = {}});
  return Plan::Requests();
}

template <Shape kShape>
void FinishSearch(const Call& call, const Batch& batch, uint32_t slot) {
  const Outcome& out = batch.outcome(slot);
  if (call.Refused(out)) return;
  Scratch scratch;
  SearchArgs args;
  std::optional<Entries> entries;
  std::string_view error = EntriesFound(out, entries);
  if (error.empty()) {
    error = Parser(kShape, call.args(), entries ? &*entries : nullptr, scratch).Parse(args);
  }
  if (!error.empty()) return call.Error(error);
  ReplyHits(call, args, Search(args, entries.value_or(Entries())));
}

template <Shape kShape>
void RunStore(const ServerCall& call) {
  Scratch scratch;
  SearchArgs args;
  std::string_view error;
  Status too_large;
  size_t members = 0;
  const auto make = [&](const Batch& read, Batch& write) {
    args = {};
    std::optional<Entries> entries;
    error = EntriesFound(read.outcome(0), entries);
    if (error.empty()) {
      error = Parser(kShape, call.args(), entries ? &*entries : nullptr, scratch).Parse(args);
    }
    if (!error.empty() || !args.stores) return;
    Entries found;
    for (const Hit& hit : Search(args, entries.value_or(Entries()))) {
      found.push_back({args.stores_distance ? hit.distance : hit.entry.score, hit.entry.member});
    }
    types::SortEntries(found);
    members = found.size();
    const auto value = types::WriteSortedSet(std::move(found), write.scratch());
    too_large = CollectionSizeError(call, value.size());
    if (!too_large.ok()) return;
    if (members == 0) {
      write.Delete(args.destination);
    } else {
      write.Add({.op = Op::kPut,
                 .type = types::kSortedSet,
                 .key = args.destination,
                 .value = value,
                 .other = {}});
    }
  };
  const std::string_view source = call.arg(kShape.stores ? 2 : 1);
  Batch write(Batch::Kind::kAtomic);
  if (!WriteIfUnchanged(call, {&source, 1}, ValuesOf::kAnyTypes, make, write)) return;
  if (!error.empty()) return call.Error(error);
  if (!too_large.ok()) return call.Error(too_large);
  call.reply().Integer(static_cast<int64_t>(members));
}

using enum Command::Flag;
constexpr Shape kSearch = {.is_search = true};
constexpr Shape kSearchStore = {.is_search = true, .stores = true};
constexpr Shape kRadius = {.may_store = true};
constexpr Shape kRadiusRo = {};
constexpr Shape kByMember = {.by_member = true, .may_store = true};
constexpr Shape kByMemberRo = {.by_member = true};

constexpr Command kCommands[] = {
    {"georadius", -6, kWrite | kStores | kReadsFirst | kWhole, 1, 1, 1, "geo", "3.2.0",
     "key longitude latitude radius M | KM | FT | MI [WITHCOORD] [WITHDIST] [WITHHASH] "
     "[COUNT count [ANY]] [ASC | DESC] [STORE key] [STOREDIST key]",
     "Returns or stores the places within a distance of a place.", PlanSearch<kRadius>,
     FinishSearch<kRadius>, RunStore<kRadius>},
    {"georadius_ro", -6, kReadOnly | kWhole, 1, 1, 1, "geo", "3.2.10",
     "key longitude latitude radius M | KM | FT | MI [WITHCOORD] [WITHDIST] [WITHHASH] "
     "[COUNT count [ANY]] [ASC | DESC]",
     "Returns the places within a distance of a place.", PlanSearch<kRadiusRo>,
     FinishSearch<kRadiusRo>},
    {"georadiusbymember", -5, kWrite | kStores | kReadsFirst | kWhole, 1, 1, 1, "geo", "3.2.0",
     "key member radius M | KM | FT | MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] "
     "[ASC | DESC] [STORE key] [STOREDIST key]",
     "Returns or stores the places within a distance of a member.", PlanSearch<kByMember>,
     FinishSearch<kByMember>, RunStore<kByMember>},
    {"georadiusbymember_ro", -5, kReadOnly | kWhole, 1, 1, 1, "geo", "3.2.10",
     "key member radius M | KM | FT | MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] "
     "[ASC | DESC]",
     "Returns the places within a distance of a member.", PlanSearch<kByMemberRo>,
     FinishSearch<kByMemberRo>},
    {"geosearch", -7, kReadOnly | kWhole, 1, 1, 1, "geo", "6.2.0",
     "key FROMMEMBER member | FROMLONLAT longitude latitude BYRADIUS radius M | KM | FT | MI | "
     "BYBOX width height M | KM | FT | MI [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] "
     "[WITHDIST] [WITHHASH]",
     "Returns the places in an area.", PlanSearch<kSearch>, FinishSearch<kSearch>},
    {"geosearchstore", -8, kWrite | kStores | kReadsFirst | kWhole, 1, 2, 1, "geo", "6.2.0",
     "destination source FROMMEMBER member | FROMLONLAT longitude latitude BYRADIUS radius M | KM "
     "| FT | MI | BYBOX width height M | KM | FT | MI [ASC | DESC] [COUNT count [ANY]] [STOREDIST]",
     "Stores the places in an area.", nullptr, nullptr, RunStore<kSearchStore>},
};

}  // namespace
}  // namespace commands_geo_search

std::span<const Command> GeoSearchCommands() { return commands_geo_search::kCommands; }

}  // namespace skep
