// scan_meter.h: counts what a scan has returned; says when it has to stop and where it goes on.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "btree/node_items.h"
#include "engine/batch_writer.h"
#include "skep/batch.h"
#include "skep/copy_bytes.h"

namespace skep::btree {

// Owner: one scan.
class ScanMeter {
 public:
  // `request` and `out` must outlive the meter. Begins the items of outcome `index`.
  ScanMeter(const Request& request, size_t bytes_max, uint32_t visits_max, BatchWriter& out,
            uint32_t index)
      : request_(request),
        bytes_max_(bytes_max),
        visits_max_(visits_max == kNoLimit ? UINT64_MAX : std::max<uint64_t>(1, visits_max)),
        out_(out),
        index_(index) {
    out.BeginItems(index);
  }

  bool MayAdd() const { return !IsFull() && visits_ < visits_max_; }
  // Appends a copy of the item to the outcome.
  void Add(const Item& item, uint64_t deadline_ms, uint8_t type) {
    const Item given =
        out_.AddItem(index_, {.key = item.key, .value = ValueOfItem(request_, item.value, type)});
    Count({.at = given.key.data(),
           .count = 1,
           .key_bytes = static_cast<uint32_t>(given.key.size()),
           .value_bytes = static_cast<uint32_t>(given.value.size())});
    out_.NoteItem(index_, item.key, deadline_ms, type);
  }
  // How many more items the scan may return, whatever their bytes.
  uint32_t room() const {
    const uint32_t items = request_.limit - added_count();
    return static_cast<uint32_t>(std::min<uint64_t>(items, visits_max_ - visits_));
  }
  enum class Added : uint8_t {
    kNone,  // the current item does not have the form
    kSome,  // some items; the cursor is behind them
    kLast,  // some or none; the next item is not below the range's upper bound
  };
  // Copies items of the leaf's form from the cursor's current one on, as many as may be added, up
  // to some kilobytes. Requires MayAdd().
  template <class Cursor>
  Added AddPlain(const PlainForm& form, Cursor& cursor) {
    ItemSpan run = {.key_bytes = form.key_bytes, .value_bytes = keys_only() ? 0 : form.value_bytes};
    const uint32_t most = MostOf(run.stride());
    // At least one byte, so that there is a place: key and value may be empty.
    char* const to = out_.scratch().Room(std::max<size_t>(most * run.stride(), 1));
    const uint32_t copied = cursor.CopyPlain(most, keys_only(), to);
    if (copied == 0) return Added::kNone;
    run.at = to;
    run.count = CountBelowEnd(run, copied);
    if (run.count > 0) {
      out_.AddItems(index_, run);
      Count(run);
    }
    return run.count == copied ? Added::kSome : Added::kLast;
  }
  // AddPlain for items of any size that are stored whole and without metadata. Requires MayAdd().
  template <class Cursor>
  Added AddWhole(Cursor& cursor) {
    std::array<Item, kCopyBoundedMin> items;
    const std::span<Item> wanted(items.data(), std::min<size_t>(room(), items.size()));
    const uint32_t taken = cursor.TakeWhole(wanted, keys_only(), bytes_max_ - bytes_);
    if (taken == 0) return Added::kNone;
    const uint32_t count = CountBelowEnd(items, taken);
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) bytes += items[i].key.size() + items[i].value.size();
    char* to = out_.scratch().Room(std::max<size_t>(bytes, 1));
    for (uint32_t i = 0; i < count; ++i) {
      const auto& [key, value] = items[i];
      last_key_ = {to, key.size()};
      CopyBytes(to, key.data(), key.size());
      CopyBytes(to + key.size(), value.data(), value.size());
      out_.AddItems(index_, {.at = to,
                             .count = 1,
                             .key_bytes = static_cast<uint32_t>(key.size()),
                             .value_bytes = static_cast<uint32_t>(value.size())});
      to += key.size() + value.size();
    }
    bytes_ += bytes;
    visits_ += count;
    return count == taken ? Added::kSome : Added::kLast;
  }
  // Counts a visited leaf, since a leaf without items counts as one visit.
  void PassLeaf() { ++visits_; }

  // Ends the scan before the item of this key. The bound lies just behind the last item returned,
  // so that keys which are put in between later are not missed.
  void StopBefore(std::string_view key) {
    if (added()) return StopBehindLast();
    Tell(request_.has(Request::kReverse) ? KeyAfter(key, out_.scratch()) : key);
  }
  // Called at the end of a leaf with its fence. True: the scan ends there. False: it may go on.
  bool StopsAtFence(std::string_view fence) {
    if (IsFull() && added()) {
      StopBehindLast();
      return true;
    }
    PassLeaf();
    if (MayAdd()) return false;
    Tell(fence);
    return true;
  }

 private:
  static constexpr size_t kCopyBytesMax = 8192;  // bytes copied at once
  // A scan of a range with an upper bound may copy items that are not in the range: no more of them
  // than it has returned before, or than this number.
  static constexpr uint32_t kCopyBoundedMin = 32;

  bool keys_only() const { return request_.has(Request::kKeysOnly); }
  bool unbounded() const { return request_.has(Request::kNoUpperBound); }

  // How many items of this size to copy at once, at least one: until IsFull().
  uint32_t MostOf(size_t item_bytes) const {
    const size_t bytes_each = std::max<size_t>(item_bytes, 1);
    size_t most = std::min<size_t>(room(), std::max<size_t>(kCopyBytesMax / bytes_each, 1));
    if (!unbounded()) most = std::min<size_t>(most, std::max(added_count(), kCopyBoundedMin));
    const size_t before_full = (bytes_max_ - bytes_) / bytes_each;
    return static_cast<uint32_t>(before_full < most ? before_full + 1 : most);
  }
  // How many of the first `count` items of the run, which ascend, are below the range's upper
  // bound.
  template <class Run>
  uint32_t CountBelowEnd(const Run& run, uint32_t count) const {
    if (unbounded() || run[count - 1].key < request_.other) return count;
    uint32_t low = 0;
    for (uint32_t high = count - 1; low < high;) {
      const uint32_t middle = low + (high - low) / 2;
      if (run[middle].key < request_.other) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  void Count(const ItemSpan& added) {
    bytes_ += added.count * added.stride();
    visits_ += added.count;
    last_key_ = added[added.count - 1].key;
  }
  // Whether no further item may be added.
  bool IsFull() const { return added_count() == request_.limit || bytes_ > bytes_max_; }
  uint32_t added_count() const { return out_.outcome(index_).item_count; }
  bool added() const { return added_count() > 0; }
  void StopBehindLast() {
    Tell(request_.has(Request::kReverse) ? last_key_ : KeyAfter(last_key_, out_.scratch()));
  }
  void Tell(std::string_view bound) {
    Outcome& outcome = out_.outcome(index_);
    outcome.more = true;
    outcome.value = out_.scratch().Copy(bound);
  }

  const Request& request_;
  const size_t bytes_max_;
  const uint64_t visits_max_;
  BatchWriter& out_;
  const uint32_t index_;
  size_t bytes_ = 0;
  uint64_t visits_ = 0;
  std::string_view last_key_;
};

}  // namespace skep::btree
