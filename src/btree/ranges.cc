#include "btree/ranges.h"

#include <algorithm>
#include <string>

#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"
#include "engine/point.h"

namespace skep::btree {
namespace {

bool IsBelow(std::string_view key, const Request& r) {
  return r.has(Request::kNoUpperBound) || key < r.other;
}

// Whether no key but the lower bound can lie in the range.
bool IsOfOneKey(const Request& r) {
  return !r.has(Request::kNoUpperBound) && r.other.size() == r.key.size() + 1 &&
         r.other.back() == '\0' && r.other.starts_with(r.key);
}

// Adds the item at the cursor, with its value if the scan wants it: one in pieces has to be copied.
template <class Layout>
void AddItem(const Request& r, std::string_view key, Cursor<Layout>& cursor, ScanMeter& meter) {
  const uint8_t type = cursor.type();
  const std::string_view value = HasValueOfItem(r, type) ? cursor.value() : std::string_view();
  meter.Add({key, value}, cursor.deadline_ms(), type);
}

bool IsEmptyRange(const Request& r) { return !r.has(Request::kNoUpperBound) && r.key >= r.other; }

}  // namespace

template <class Layout>
void Ranges<Layout>::Scan(const Request& r, size_t bytes_max, uint32_t visits_max,
                          const std::optional<LeafPlace>& place, BatchWriter& out,
                          uint32_t index) const {
  out.outcome(index).verdict = Verdict::kDone;
  ScanMeter meter(r, bytes_max, visits_max, out, index);
  if (r.has(Request::kReverse)) {
    ScanReverse(r, meter);
  } else {
    ScanForward(r, place, meter);
  }
}

template <class Layout>
void Ranges<Layout>::ScanForward(const Request& r, const std::optional<LeafPlace>& place,
                                 ScanMeter& meter) const {
  Cursor<Layout> cursor(core_, at_, now_ms_);
  const bool ends_there = IsOfOneKey(r) && meter.MayAdd();
  const auto seek_floor = [&] {
    ends_there ? cursor.SeekFloor(r.key, place) : cursor.SeekAtMost(r.key, place);
    return cursor.SettleBack({});
  };
  if (!r.has(Request::kSeekFloor) || !seek_floor()) {
    if (IsEmptyRange(r)) return;
    cursor.SeekAtLeast(r.key, place, meter.room());
  } else if (ends_there) {
    // Behind the floor of a key there is no key up to this one.
    AddItem(r, cursor.key(), cursor, meter);
    return;
  }
  while (true) {
    cursor.NoteLog(*scanned_);
    if (!ScanLeaf(cursor, r, meter)) return;
    const LeafIterator<Layout>& leaves = cursor.leaves();
    if (leaves.unbounded() || !IsBelow(leaves.upper(), r)) return;
    if (meter.StopsAtFence(leaves.upper())) return;
    cursor.NextLeaf(meter.room());
  }
}

// Scans from the cursor to the end of its leaf. False: the scan has ended.
template <class Layout>
bool Ranges<Layout>::ScanLeaf(Cursor<Layout>& cursor, const Request& r, ScanMeter& meter) const {
  const bool unbounded = r.has(Request::kNoUpperBound);
  const auto form = cursor.plain_form();
  // Items that are no runs are mostly in leaves that have no others.
  bool has_runs = true;
  while (cursor.valid()) {
    if (!meter.MayAdd()) {
      const std::string_view key = cursor.key();
      if (unbounded || key < r.other) meter.StopBefore(key);
      return false;
    }
    if (form || has_runs) {
      const ScanMeter::Added added = form ? meter.AddPlain(*form, cursor) : meter.AddWhole(cursor);
      if (added == ScanMeter::Added::kLast) return false;
      if (added == ScanMeter::Added::kSome) continue;
      has_runs = false;
    }
    const std::string_view key = cursor.key();
    if (!unbounded && key >= r.other) return false;
    AddItem(r, key, cursor, meter);
    cursor.Next();
  }
  return true;
}

template <class Layout>
void Ranges<Layout>::ScanReverse(const Request& r, ScanMeter& meter) const {
  if (IsEmptyRange(r)) return;
  Cursor<Layout> cursor(core_, at_, now_ms_);
  if (r.has(Request::kNoUpperBound)) {
    cursor.SeekLast();
  } else {
    cursor.SeekBelow(r.other);
  }
  while (true) {
    cursor.NoteLog(*scanned_);
    for (; cursor.valid(); cursor.Prev()) {
      const std::string_view key = cursor.key();
      if (key < r.key) return;
      if (!meter.MayAdd()) return meter.StopBefore(key);
      AddItem(r, key, cursor, meter);
    }
    const std::string_view lower = cursor.leaves().lower();
    if (lower <= r.key || meter.StopsAtFence(lower)) return;
    cursor.PrevLeaf();
  }
}

template <class Layout>
typename Ranges<Layout>::Counted Ranges<Layout>::CountKeys(std::string_view lo, std::string_view hi,
                                                           bool unbounded, uint64_t keys_max,
                                                           uint64_t visits_max) const {
  Counted counted;
  if (!unbounded && lo >= hi) return counted;
  LeafIterator<Layout> leaves(core_, at_, now_ms_);
  leaves.Seek(lo);
  uint64_t visits = 0;
  while (true) {
    const uint64_t room = std::min(keys_max - counted.keys, visits_max - visits);
    const bool is_whole =
        leaves.lower() >= lo && (unbounded || (!leaves.unbounded() && leaves.upper() <= hi));
    const uint64_t present = is_whole ? leaves.leaf().CountPresent() : 0;
    if (is_whole && present <= room) {
      counted.keys += present;
      visits += std::max<uint64_t>(present, 1);
    } else {
      const uint64_t before = counted.keys;
      if (!CountInLeaf(leaves.leaf(), lo, hi, unbounded, room, &counted)) return counted;
      visits += counted.keys - before;
    }
    if (leaves.unbounded() || (!unbounded && leaves.upper() >= hi)) return counted;
    if (visits >= visits_max) {
      counted.more = true;
      counted.bound = leaves.upper();
      return counted;
    }
    leaves.Next();
  }
}

template <class Layout>
typename Ranges<Layout>::Tally Ranges<Layout>::TallyKeys(std::string_view lo, std::string_view hi,
                                                         bool unbounded) const {
  Tally tally;
  LeafIterator<Layout> leaves(core_, at_, Reader<Layout>::kNoTime);
  for (leaves.Seek(lo);; leaves.Next()) {
    const bool is_whole =
        leaves.lower() >= lo && (unbounded || (!leaves.unbounded() && leaves.upper() <= hi));
    const NodeHeader* const node = leaves.leaf().node();
    if (is_whole && Layout::NodeDeadline(core_.codec, node) == Layout::kNoDeadline) {
      const uint64_t present = leaves.leaf().CountPresent();
      tally.live += present;
      tally.held += present;
    } else {
      TallyLeaf(leaves.leaf(), lo, hi, unbounded, &tally);
    }
    if (leaves.unbounded() || (!unbounded && leaves.upper() >= hi)) return tally;
  }
}

template <class Layout>
void Ranges<Layout>::TallyLeaf(const typename Layout::Leaf& leaf, std::string_view lo,
                               std::string_view hi, bool unbounded, Tally* tally) const {
  typename Layout::LeafCursor cursor(leaf);
  for (cursor.SeekAtLeast(lo); cursor.valid(); cursor.Next()) {
    if (!unbounded && core_.codec.Compare(hi, cursor.key()) <= 0) return;
    const uint64_t deadline_ms = DeadlineOf(cursor.value());
    ++tally->held;
    tally->live += HasExpired(deadline_ms, now_ms_) ? 0 : 1;
    tally->with_deadline += deadline_ms != 0 ? 1 : 0;
  }
}

// Counts up to `room` keys of [lo, hi) in a leaf. False if there are more.
template <class Layout>
bool Ranges<Layout>::CountInLeaf(const typename Layout::Leaf& leaf, std::string_view lo,
                                 std::string_view hi, bool unbounded, uint64_t room,
                                 Counted* counted) const {
  typename Layout::LeafCursor cursor(leaf);
  cursor.SeekAtLeast(lo);
  for (; cursor.valid(); cursor.Next(), --room, ++counted->keys) {
    if (!unbounded && core_.codec.Compare(hi, cursor.key()) <= 0) return true;
    if (room > 0) continue;
    Scratch scratch;
    counted->more = true;
    counted->bound = core_.codec.Whole(cursor.key(), scratch);
    return false;
  }
  return true;
}

template <class Layout>
void Ranges<Layout>::Count(const Request& r, BatchWriter& out, uint32_t index) const {
  const uint64_t most = r.limit == kNoLimit ? UINT64_MAX : r.limit;
  const Counted counted =
      CountKeys(r.key, r.other, r.has(Request::kNoUpperBound), UINT64_MAX, most);
  Outcome& outcome = out.outcome(index);
  outcome.verdict = Verdict::kDone;
  outcome.integer = static_cast<int64_t>(counted.keys);
  outcome.more = counted.more;
  if (counted.more) outcome.value = out.scratch().Copy(counted.bound);
}

template <class Layout>
void Ranges<Layout>::RequireEmpty(const Request& r, BatchWriter& out, uint32_t index) const {
  Cursor<Layout> cursor(core_, at_, now_ms_);
  cursor.SeekAtLeast(r.key);
  Outcome& outcome = out.outcome(index);
  outcome.verdict = Verdict::kDone;
  if (!cursor.Settle(r.other, r.has(Request::kNoUpperBound))) return;
  outcome.verdict = Verdict::kMismatch;
  outcome.value = out.scratch().Copy(cursor.key());
}

template class Ranges<PaperLayout>;
template class Ranges<HeadLayout>;

}  // namespace skep::btree
