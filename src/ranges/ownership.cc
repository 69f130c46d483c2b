#include "ranges/ownership.h"

#include <algorithm>

namespace skep::ranges {
namespace {

constexpr Status kMoving(Code::kUnavailable,
                         "these keys are being moved to another server, and read-only meanwhile");

}  // namespace

Ownership::Ownership(const RangeMap& map, std::string_view self, uint64_t lease_end_ns)
    : version_(map.version), lease_end_ns_(lease_end_ns) {
  for (size_t i = 0; i < map.entries.size(); ++i) {
    const RangeMap::Entry& entry = map.entries[i];
    const bool is_served = entry.phase == RangeMap::Phase::kServed;
    if (entry.target != self || entry.phase == RangeMap::Phase::kOpening) continue;
    Range& range = ranges_.emplace_back();
    range.lower = entry.lower;
    range.upper = map.UpperOf(i);
    range.is_writable = is_served;
  }
}

Status Ownership::Moved() const {
  return {Code::kMoved, "the keys are another server's by the map of ranges",
          static_cast<uint64_t>(version_)};
}

const Ownership::Range* Ownership::Find(std::string_view key) const {
  const auto behind = std::ranges::upper_bound(
      ranges_, key, {}, [](const Range& range) { return std::string_view(range.lower); });
  if (behind == ranges_.begin()) return nullptr;
  const Range& range = *(behind - 1);
  return range.upper && key >= *range.upper ? nullptr : &range;
}

std::string_view Ownership::FloorOf(std::string_view key) const {
  const Range* range = Find(key);
  while (range != ranges_.data() && (range - 1)->upper == range->lower) --range;
  return range->lower;
}

Status Ownership::WhyNotPoint(std::string_view key, bool writes) const {
  const Range* const range = Find(key);
  if (range == nullptr) return Moved();
  return writes && !range->is_writable ? kMoving : Status();
}

Status Ownership::WhyNot(std::string_view lower, std::optional<std::string_view> upper,
                         bool writes) const {
  bool is_writable = true;
  const Range* range = Find(lower);
  while (range != nullptr) {
    is_writable &= range->is_writable;
    if (!range->upper || (upper && *range->upper >= *upper)) {
      return writes && !is_writable ? kMoving : Status();
    }
    range = Find(*range->upper);
  }
  return Moved();
}

Status Ownership::WhyNot(const Request& request) const {
  const bool writes = IsWrite(request.op);
  const bool is_of_all =
      request.op == Op::kSample || request.op == Op::kWalk || request.op == Op::kDeleteAll;
  if (is_of_all) return WhyNot("", std::nullopt, writes);
  if (IsRange(request.op)) {
    if (request.has(Request::kNoUpperBound)) return WhyNot(request.key, std::nullopt, writes);
    return WhyNot(request.key, request.other, writes);
  }
  if (request.op == Op::kMove) {
    const Status status = WhyNotPoint(request.other, writes);
    if (!status.ok()) return status;
  }
  return WhyNotPoint(request.key, writes);
}

}  // namespace skep::ranges
