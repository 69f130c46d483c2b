#include "collections/view.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace skep::collections {
namespace {

// The segments that one scan reads at most.
constexpr uint64_t kSegmentsMax = 256;

}  // namespace

View::View(View&& other) noexcept
    : access_(other.access_),
      at_(other.at_),
      is_owned_(std::exchange(other.is_owned_, false)),
      record_(other.record_) {}

View::~View() {
  if (is_owned_) access_->engine().CloseSnapshot(at_);
}

std::optional<View> View::Open(Access& access, std::string_view key, uint8_t kind,
                               const types::LargeRecord& newest) {
  if (access.snapshot().id != 0) return View(access, access.snapshot(), false, newest);
  while (true) {
    const Result<SnapshotRef> at = access.engine().OpenSnapshot(access.now_ms());
    if (!at) {
      access.set_status(at.error());
      return std::nullopt;
    }
    Access then(access.engine(), access.now_ms(), access.segment_bytes(), *at);
    const auto record = then.Record(key, kind);
    if (record && record->id == newest.id && record->writes >= newest.writes) {
      access.NoteTicket(at->version);
      access.set_deadline_ms(then.deadline_ms());
      return View(access, *at, true, *record);
    }
    access.engine().CloseSnapshot(*at);
    const auto now = access.Record(key, kind);
    if (!now || now->id != newest.id) return std::nullopt;
    access.engine().Release();
    std::this_thread::yield();
  }
}

uint64_t View::SegmentsOf(uint64_t pieces) const {
  const uint64_t bytes = pieces * (record_.bytes / record_.members + 1);
  // Segments that were cut are at least half full, most of them more.
  return 1 + std::min(pieces, bytes * 4 / 3 / access_->segment_bytes());
}

View::Rest View::RestOf(Part part, std::optional<std::string_view> from, bool reverse,
                        const Extent& extent) const {
  Rest rest = {.lo = SegmentKey(record_.id, part, from && !reverse ? *from : std::string_view()),
               .hi = {},
               .reverse = reverse,
               .seeks = from && !reverse,
               .segments = extent.segments};
  if (from && reverse) {
    rest.hi = SegmentKey(record_.id, part, *from) + '\0';
  } else if (extent.until && !reverse) {
    rest.hi = SegmentKey(record_.id, part, *extent.until);
  } else {
    rest.hi = SegmentKey(record_.id, static_cast<Part>(static_cast<char>(part) + 1), {});
  }
  return rest;
}

uint32_t View::Ask(Batch& batch, const Rest& rest) {
  const auto limit = static_cast<uint32_t>(std::min(rest.segments, kSegmentsMax));
  return batch.Scan(
      Range::Between(rest.lo, rest.hi),
      {.limit = limit, .reverse = rest.reverse, .any_type = true, .seek_floor = rest.seeks});
}

// Visits what a slot has found of a part. kMore: `rest` is what comes behind it.
template <class VisitItem>
View::Taken View::Take(const Batch& batch, uint32_t slot, Part part, Rest& rest,
                       const VisitItem& visit) {
  const std::string first = SegmentKey(record_.id, part, {});
  const Outcome& out = batch.outcome(slot);
  if (out.verdict == Verdict::kRefused) {
    access_->set_status(out.status);
    return Taken::kFailed;
  }
  for (const Item& item : batch.items(slot)) {
    if (!item.key.starts_with(first)) continue;  // the floor lies before the part
    const auto segment = ReadItem(part, item.value);
    if (!segment) {
      access_->set_status(types::kNoCollection);
      return Taken::kFailed;
    }
    if (!visit(item, *segment)) return Taken::kAll;
  }
  if (!out.more) return Taken::kAll;
  (rest.reverse ? rest.hi : rest.lo) = out.value;
  rest.seeks = false;
  rest.segments = std::min(rest.segments, kSegmentsMax) * 4;
  return Taken::kMore;
}

bool View::ForEach(Part part, std::optional<std::string_view> from, bool reverse,
                   const Visit& visit, const Extent& extent) {
  Rest rest = RestOf(part, from, reverse, extent);
  const auto visit_item = [&](const Item& item, const Segment& segment) {
    return visit(SeparatorOf(item.key), segment);
  };
  while (true) {
    Batch batch;
    batch.set_now_ms(access_->now_ms());
    batch.set_snapshot(at_);
    // A call that may have read too much is asked between the scans (Access::IsFarTooLong).
    batch.set_scan_bytes_max(access_->portion_bytes_max());
    const uint32_t slot = Ask(batch, rest);
    access_->engine().Execute(batch);
    access_->CountWork(batch.work_bytes());
    const Taken taken = Take(batch, slot, part, rest, visit_item);
    if (taken != Taken::kMore) return taken == Taken::kAll;
  }
}

bool View::ForEachOf(Part part, std::span<const Walk> walks, const VisitOf& visit) {
  struct Open {
    size_t walk;
    Rest rest;
    uint32_t slot = 0;
  };
  std::vector<Open> open;
  size_t next = 0;
  while (next < walks.size() || !open.empty()) {
    for (; next < walks.size() && open.size() < kWalksTogether; ++next) {
      const Walk& walk = walks[next];
      open.push_back({.walk = next, .rest = RestOf(part, walk.from, false, walk.extent)});
    }
    Batch batch;
    batch.set_now_ms(access_->now_ms());
    batch.set_snapshot(at_);
    for (Open& own : open) own.slot = Ask(batch, own.rest);
    access_->engine().Execute(batch);
    access_->CountWork(batch.work_bytes());
    bool has_failed = false;
    std::erase_if(open, [&](Open& own) {
      const auto visit_own = [&](const Item& item, const Segment& segment) {
        return visit(own.walk, item, segment);
      };
      if (has_failed) return true;
      const Taken taken = Take(batch, own.slot, part, own.rest, visit_own);
      has_failed = taken == Taken::kFailed;
      return taken != Taken::kMore;
    });
    if (has_failed) return false;
  }
  return true;
}

std::optional<std::string> View::Body(Part part) {
  std::string body;
  const bool is_read =
      ForEach(part, std::nullopt, false, [&](std::string_view, const Segment& segment) {
        body += segment.body;
        return true;
      });
  return is_read ? std::optional(std::move(body)) : std::nullopt;
}

}  // namespace skep::collections
