// sampler.h: draws a key at random, each with the same chance.
//
// Draw() draws a LID, then a number below the most keys that any leaf ever had. If the LID is a
// leaf of the tree and has a key of that number that has not expired, that key is the result; if
// not, both are drawn again. So every key of the tree has the same chance in every round. Expected
// cost: a few leaves. After large deletes, when most LIDs are free, all rounds may fail; then the
// tree has few leaves, and the keys of all of them are counted.
#pragma once

#include <optional>

#include "base/random.h"
#include "btree/core.h"
#include "skep/batch.h"

namespace skep::btree {

// Thread safety: as Reader.
template <class Layout>
class Sampler {
 public:
  Sampler(const Core& core, uint64_t seed, uint64_t now_ms)
      : core_(core), random_(seed), now_ms_(now_ms) {}

  // A random number below `bound`, which is not 0.
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  // A key and value of the newest state; none if the tree is empty. Valid until the next draw.
  std::optional<Item> Draw();

  // A version at or above that of the key that was drawn last.
  Version version() const { return version_; }

 private:
  std::optional<Item> Take(Lid lid, uint64_t number);
  std::optional<Item> CountAndTake();
  std::optional<Item> ItemAt(const typename Layout::Leaf& leaf, uint64_t number);

  const Core& core_;
  SeededRandom random_;
  const uint64_t now_ms_;
  Version version_ = 0;
  Scratch scratch_;  // the key that was drawn
};

}  // namespace skep::btree
