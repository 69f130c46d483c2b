#include "collections/view.h"

#include <algorithm>
#include <thread>
#include <utility>

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

bool View::ForEach(Part part, std::optional<std::string_view> from, bool reverse,
                   const Visit& visit, const Extent& extent) {
  const std::string first = SegmentKey(record_.id, part, {});
  const std::string behind =
      SegmentKey(record_.id, static_cast<Part>(static_cast<char>(part) + 1), {});
  std::string lo = from && !reverse ? SegmentKey(record_.id, part, *from) : first;
  std::string hi = behind;
  if (from && reverse) hi = SegmentKey(record_.id, part, *from) + '\0';
  if (extent.until && !reverse) hi = SegmentKey(record_.id, part, *extent.until);
  uint64_t segments = extent.segments;
  bool seeks = from && !reverse;
  while (true) {
    Batch batch;
    batch.set_now_ms(access_->now_ms());
    batch.set_snapshot(at_);
    const auto limit = static_cast<uint32_t>(std::min(segments, kSegmentsMax));
    const uint32_t slot =
        batch.Scan(Range::Between(lo, hi),
                   {.limit = limit, .reverse = reverse, .any_type = true, .seek_floor = seeks});
    access_->engine().Execute(batch);
    access_->CountWork(batch.work_bytes());
    const Outcome& out = batch.outcome(slot);
    if (out.verdict == Verdict::kRefused) {
      access_->set_status(out.status);
      return false;
    }
    for (const Item& item : batch.items(slot)) {
      if (!item.key.starts_with(first)) continue;  // the floor lies before the part
      const auto segment = ReadItem(part, item.value);
      if (!segment) {
        access_->set_status(types::kNoCollection);
        return false;
      }
      if (!visit(SeparatorOf(item.key), *segment)) return true;
    }
    if (!out.more) return true;
    (reverse ? hi : lo) = out.value;
    seeks = false;
    segments = uint64_t{limit} * 4;
  }
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
