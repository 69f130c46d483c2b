#include "btree/ranges.h"

#include <algorithm>
#include <string>

#include "btree/paper_layout.h"

namespace skep::btree {
namespace {

bool IsBelow(std::string_view key, const Request& r) {
  return r.has(Request::kNoUpperBound) || key < r.other;
}

bool IsEmptyRange(const Request& r) { return !r.has(Request::kNoUpperBound) && r.key >= r.other; }

// Counts what a scan has seen and given, and says when it has to stop.
class Meter {
 public:
  Meter(const Request& request, size_t bytes_max, uint64_t visits_max, BatchWriter& out,
        uint32_t index)
      : request_(request),
        bytes_max_(bytes_max),
        visits_max_(visits_max),
        out_(out),
        index_(index) {}

  // No item may be added.
  bool IsFull() const {
    return out_.outcome(index_).item_count == request_.limit || bytes_ > bytes_max_;
  }
  bool MayVisit() const { return visits_ < visits_max_ || visits_ == 0; }
  void Visit() { ++visits_; }
  void Add(std::string_view key, std::string_view value) {
    Item item{.key = out_.scratch().Copy(key)};
    if (!request_.has(Request::kKeysOnly)) item.value = out_.scratch().Copy(value);
    bytes_ += item.key.size() + item.value.size();
    out_.AddItem(index_, item);
    last_key_ = item.key;
    Visit();
  }
  bool added() const { return out_.outcome(index_).item_count > 0; }
  std::string_view last_key() const { return last_key_; }
  void StopAt(std::string_view bound) {
    Outcome& outcome = out_.outcome(index_);
    outcome.more = true;
    outcome.value = out_.scratch().Copy(bound);
  }
  void StopBehindLast() {
    Outcome& outcome = out_.outcome(index_);
    outcome.more = true;
    outcome.value = KeyAfter(last_key_, out_.scratch());
  }

 private:
  const Request& request_;
  const size_t bytes_max_;
  const uint64_t visits_max_;
  BatchWriter& out_;
  const uint32_t index_;
  size_t bytes_ = 0;
  uint64_t visits_ = 0;
  std::string_view last_key_;
};

}  // namespace

template <class Layout>
void Ranges<Layout>::Scan(const Request& r, size_t bytes_max, uint32_t visits_max, BatchWriter& out,
                          uint32_t index) const {
  out.outcome(index).verdict = Verdict::kDone;
  out.BeginItems(index);
  const uint64_t visits = visits_max == kNoLimit ? UINT64_MAX : visits_max;
  if (r.has(Request::kReverse)) {
    ScanReverse(r, bytes_max, visits, out, index);
  } else {
    ScanForward(r, bytes_max, visits, out, index);
  }
}

// Goes to the largest key <= `key`; false if there is none.
template <class Layout>
bool Ranges<Layout>::SeekFloor(Cursor<Layout>& cursor, std::string_view key,
                               Scratch& scratch) const {
  cursor.SeekBelow(KeyAfter(key, scratch));
  return cursor.SettleBack();
}

template <class Layout>
void Ranges<Layout>::ScanForward(const Request& r, size_t bytes_max, uint64_t visits_max,
                                 BatchWriter& out, uint32_t index) const {
  Cursor<Layout> cursor(core_, at_);
  Scratch scratch;
  const bool from_floor = r.has(Request::kSeekFloor) && SeekFloor(cursor, r.key, scratch);
  if (!from_floor) {
    if (IsEmptyRange(r)) return;
    cursor.SeekAtLeast(r.key);
  }
  Meter meter(r, bytes_max, visits_max, out, index);
  while (true) {
    for (; cursor.valid(); cursor.Next()) {
      const std::string_view key = cursor.key();
      if (!IsBelow(key, r)) return;
      if (meter.IsFull() || !meter.MayVisit()) {
        return meter.added() ? meter.StopBehindLast() : meter.StopAt(key);
      }
      meter.Add(key, r.has(Request::kKeysOnly) ? std::string_view() : cursor.value());
    }
    if (cursor.walk().unbounded() || !IsBelow(cursor.walk().upper(), r)) return;
    if (meter.IsFull() && meter.added()) return meter.StopBehindLast();
    meter.Visit();
    if (meter.IsFull() || !meter.MayVisit()) return meter.StopAt(cursor.walk().upper());
    cursor.NextLeaf();
  }
}

template <class Layout>
void Ranges<Layout>::ScanReverse(const Request& r, size_t bytes_max, uint64_t visits_max,
                                 BatchWriter& out, uint32_t index) const {
  if (IsEmptyRange(r)) return;
  Cursor<Layout> cursor(core_, at_);
  if (r.has(Request::kNoUpperBound)) {
    cursor.SeekLast();
  } else {
    cursor.SeekBelow(r.other);
  }
  Meter meter(r, bytes_max, visits_max, out, index);
  while (true) {
    for (; cursor.valid(); cursor.Prev()) {
      const std::string_view key = cursor.key();
      if (key < r.key) return;
      if (meter.IsFull() || !meter.MayVisit()) {
        return meter.StopAt(meter.added() ? meter.last_key() : KeyAfter(key, out.scratch()));
      }
      meter.Add(key, r.has(Request::kKeysOnly) ? std::string_view() : cursor.value());
    }
    if (cursor.walk().lower() <= r.key) return;
    if (meter.IsFull() && meter.added()) return meter.StopAt(meter.last_key());
    meter.Visit();
    if (meter.IsFull() || !meter.MayVisit()) return meter.StopAt(cursor.walk().lower());
    cursor.PrevLeaf();
  }
}

template <class Layout>
typename Ranges<Layout>::Counted Ranges<Layout>::CountKeys(std::string_view lo, std::string_view hi,
                                                           bool unbounded, uint64_t keys_max,
                                                           uint64_t visits_max) const {
  Counted counted;
  if (!unbounded && lo >= hi) return counted;
  LeafWalk<Layout> walk(core_, at_);
  walk.Seek(lo);
  uint64_t visits = 0;
  while (true) {
    const uint64_t room = std::min(keys_max - counted.keys, visits_max - visits);
    const bool is_whole =
        walk.lower() >= lo && (unbounded || (!walk.unbounded() && walk.upper() <= hi));
    const uint64_t present = is_whole ? walk.leaf().CountPresent() : 0;
    if (is_whole && present <= room) {
      counted.keys += present;
      visits += std::max<uint64_t>(present, 1);
    } else {
      const uint64_t before = counted.keys;
      if (!CountInLeaf(walk.leaf(), lo, hi, unbounded, room, &counted)) return counted;
      visits += counted.keys - before;
    }
    if (walk.unbounded() || (!unbounded && walk.upper() >= hi)) return counted;
    if (visits >= visits_max) {
      counted.more = true;
      counted.bound = walk.upper();
      return counted;
    }
    walk.Next();
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

template class Ranges<PaperLayout>;

}  // namespace skep::btree
