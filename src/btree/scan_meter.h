// scan_meter.h: what a scan has given, when it has to stop, and where it then says to go on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "btree/node_items.h"
#include "engine/batch_writer.h"
#include "skep/batch.h"

namespace skep::btree {

// Owner: one scan.
class ScanMeter {
 public:
  // `request`, `out` must outlive it. Begins the items of slot `index`.
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
  // Copies the item.
  void Add(const Item& item) {
    Item given{.key = out_.scratch().Copy(item.key)};
    if (!request_.has(Request::kKeysOnly)) given.value = out_.scratch().Copy(item.value);
    bytes_ += given.key.size() + given.value.size();
    out_.AddItem(index_, given);
    last_key_ = given.key;
    ++visits_;
  }
  // How many items it may give at most, as far as their bytes allow.
  uint32_t room() const {
    const uint32_t items = request_.limit - out_.outcome(index_).item_count;
    return static_cast<uint32_t>(std::min<uint64_t>(items, visits_max_ - visits_));
  }
  // Copies the items of the run, which has at most room(), until it IsFull(). Returns how many.
  uint32_t AddRun(const PlainRun& run) {
    const bool keys_only = request_.has(Request::kKeysOnly);
    const uint32_t bytes_each = run.key_bytes + (keys_only ? 0 : run.value_bytes);
    const size_t before_full = (bytes_max_ - bytes_) / std::max(bytes_each, 1u);
    const uint32_t count =
        before_full < run.count ? static_cast<uint32_t>(before_full) + 1 : run.count;
    // At least one byte, so that there is a place: key and value may be empty.
    char* to = out_.scratch().Allocate(std::max<size_t>(size_t{count} * bytes_each, 1));
    if (!keys_only) {
      std::memcpy(to, run.at, size_t{count} * bytes_each);
    } else {
      for (uint32_t i = 0; i < count; ++i) {
        std::memcpy(to + i * bytes_each, run.at + i * run.stride(), bytes_each);
      }
    }
    for (Item& item : out_.AddItems(index_, count)) {
      item.key = {to, run.key_bytes};
      if (!keys_only) item.value = {to + run.key_bytes, run.value_bytes};
      to += bytes_each;
    }
    bytes_ += size_t{count} * bytes_each;
    visits_ += count;
    last_key_ = {to - bytes_each, run.key_bytes};
    return count;
  }
  // A leaf without an item counts as one that was visited.
  void PassLeaf() { ++visits_; }

  // Before the item of this key. What was given is behind the bound, whatever may be put there yet.
  void StopBefore(std::string_view key) {
    if (added()) return StopBehindLast();
    Tell(request_.has(Request::kReverse) ? KeyAfter(key, out_.scratch()) : key);
  }
  // At the end of a leaf, whose fence this is, if need be. False: it may go on.
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
  // No further item may be added.
  bool IsFull() const {
    return out_.outcome(index_).item_count == request_.limit || bytes_ > bytes_max_;
  }
  bool added() const { return out_.outcome(index_).item_count > 0; }
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
