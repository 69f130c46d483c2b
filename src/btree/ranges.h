// ranges.h: scans and counts of a batch, at one version and time.
//
// A scan or count visits a bounded number of keys; a leaf without any counts as one, so that a
// range full of empty leaves is bounded too. Where it stops, it says from where to go on: behind
// the last item it gave or counted, or at a fence.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "btree/core.h"
#include "btree/reader.h"
#include "btree/scan_meter.h"
#include "engine/batch_writer.h"

namespace skep::btree {

// Thread safety: as Reader.
template <class Layout>
class Ranges {
 public:
  // `scanned`, the thread's, is where Scan() notes the logs that it passes; the others do not need
  // it.
  Ranges(const Core& core, Version at, uint64_t now_ms, ScannedLeaves* scanned = nullptr)
      : core_(core), at_(at), now_ms_(now_ms), scanned_(scanned) {}

  // `place` is the leaf of request.key at the version, if the caller knows it.
  void Scan(const Request& request, size_t bytes_max, uint32_t visits_max,
            const std::optional<LeafPlace>& place, BatchWriter& out, uint32_t index) const;
  void Count(const Request& request, BatchWriter& out, uint32_t index) const;
  void RequireEmpty(const Request& request, BatchWriter& out, uint32_t index) const;

  struct Counted {
    uint64_t keys = 0;
    bool more = false;
    std::string bound;  // if more: all counted keys are below it, and no others
  };
  // Counts the keys of [lo, hi), at most `keys_max`, visiting at most `visits_max` keys or empty
  // leaves.
  Counted CountKeys(std::string_view lo, std::string_view hi, bool unbounded, uint64_t keys_max,
                    uint64_t visits_max) const;

  struct Tally {
    uint64_t live = 0;
    uint64_t held = 0;           // keys, with those that have expired
    uint64_t with_deadline = 0;  // those of `held` that have a deadline
  };
  // Counts all keys of [lo, hi), in one pass. Cost: the logs; whole leaves only where there are
  // deadlines.
  Tally TallyKeys(std::string_view lo, std::string_view hi, bool unbounded) const;

 private:
  void ScanForward(const Request& request, const std::optional<LeafPlace>& place,
                   ScanMeter& meter) const;
  bool ScanLeaf(Cursor<Layout>& cursor, const Request& request, ScanMeter& meter) const;
  void ScanReverse(const Request& request, ScanMeter& meter) const;
  bool CountInLeaf(const typename Layout::Leaf& leaf, std::string_view lo, std::string_view hi,
                   bool unbounded, uint64_t room, Counted* counted) const;
  void TallyLeaf(const typename Layout::Leaf& leaf, std::string_view lo, std::string_view hi,
                 bool unbounded, Tally* tally) const;

  const Core& core_;
  const Version at_;
  const uint64_t now_ms_;
  ScannedLeaves* const scanned_;
};

}  // namespace skep::btree
