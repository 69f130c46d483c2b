// sampler.h: draws one key of all partitions, uniformly at random.
//
// A partition is drawn by its number of keys; in it a bucket of the index, and one of a fixed
// number of places of its chain. If that place is empty, another bucket is drawn: so a key in a
// long chain is as likely as one that is alone. There are several times as many places as a chain
// is meant to have keys, so a chain with more keys than places hardly ever occurs. A key that has
// expired, or that an atomic batch has changed, is not taken: everything is drawn anew. When that
// has failed often, hardly any key is left that counts: all of them are counted, and one is taken.
#pragma once

#include <optional>

#include "base/random.h"
#include "hash/core.h"
#include "hash/reservation_station.h"

namespace skep::hash {

// Owner: one thread, which has locked all partitions.
class Sampler {
 public:
  // The station's pair of a key replaces the table's; null: the tables alone count. `is_empty`: the
  // tables count as empty.
  Sampler(const Core& core, uint64_t random, uint64_t now_ms, const ReservationStation* station,
          bool is_empty);

  // Returns a pair, whose bytes are views of the table or of the station; nothing if no key counts.
  // Equal numbers on equal states draw the same.
  std::optional<Pair> Draw();

 private:
  static constexpr int kTriesMax = 2000;

  std::optional<Pair> DrawFrom(const Table& table, int* tries);
  // Returns what the pair of a table counts as; nothing if it does not count.
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
