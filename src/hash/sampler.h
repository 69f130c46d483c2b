// sampler.h: one key of all partitions, uniformly at random.
//
// A partition is drawn by its number of keys; in it a bucket of the index, and one of some places
// of its chain. If that is empty, another bucket: so a key in a long chain is as likely as one that
// is alone. There are several times as many places as a chain is meant to have keys: one that has
// more is a chance that nobody will see. A key that has expired, or that an atomic batch has
// changed, is not taken: all is drawn anew. When that has failed often, hardly any key is left that
// counts: all are counted, and one of them taken.
#pragma once

#include <optional>

#include "base/random.h"
#include "hash/core.h"
#include "hash/reservation_station.h"

namespace skep::hash {

// Owner: one thread, which has locked all partitions.
class Sampler {
 public:
  // What the station has of a key counts, not what the table has; null: the table alone.
  // `is_empty`: the tables count as empty.
  Sampler(const Core& core, uint64_t random, uint64_t now_ms, const ReservationStation* station,
          bool is_empty);

  // Views of the table, or of what the station has. Equal numbers on equal states draw the same.
  // Nothing if no key counts.
  std::optional<Pair> Draw();

 private:
  static constexpr int kTriesMax = 2000;

  std::optional<Pair> DrawFrom(const Table& table, int* tries);
  // What the pair of a table counts as.
  std::optional<Pair> Judge(const Pair& pair) const;
  template <typename Visit>
  void ForEachFresh(Visit visit) const;
  template <typename Visit>
  void ForEach(Visit visit) const;
  std::optional<Pair> DrawOfAll();

  const Core& core_;
  SeededRandom random_;
  const uint64_t now_ms_;
  const ReservationStation* const station_;
  const bool is_empty_;
};

}  // namespace skep::hash
