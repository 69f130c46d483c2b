// spare_buckets.h: empty buckets that a table holds ready, so that a pair whose memory is allocated
// can be installed, and a bucket be split, even where that makes a chain longer.
//
// Thread safety: none; the partition's lock protects it.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "hash/bucket.h"
#include "hash/slabs.h"

namespace skep::hash {

class SpareBuckets {
 public:
  // The slabs must outlive it.
  explicit SpareBuckets(Slabs& slabs) : slabs_(slabs) {}

  // Makes them at least `count`. Returns false if there is no memory.
  bool Hold(uint32_t count, Arena::Limit limit) {
    while (count_ < count) {
      const SlabAddress at = slabs_.Allocate(kSizeClass, limit);
      if (at == 0) return false;
      Add(at);
    }
    return true;
  }
  // Takes over a bucket that has left its chain.
  void Add(SlabAddress at) {
    Bucket& bucket = At(at);
    bucket = Bucket{};
    bucket.set_chain(first_);
    first_ = at;
    ++count_;
  }
  // Gives one up, which is empty and has no chain. There must be one.
  SlabAddress Take() {
    SKEP_CHECK(count_ > 0);
    const SlabAddress at = first_;
    first_ = At(at).chain();
    At(at).set_chain(0);
    --count_;
    return at;
  }
  // Frees all but `count`, if they are more.
  void Trim(uint32_t count) {
    while (count_ > count) slabs_.Free(kSizeClass, Take());
  }
  // Their memory was given back with that of all slabs.
  void Forget() {
    first_ = 0;
    count_ = 0;
  }

  uint32_t count() const { return count_; }

 private:
  static constexpr uint32_t kSizeClass = Slabs::ClassOf(sizeof(Bucket));

  Bucket& At(SlabAddress at) const { return *reinterpret_cast<Bucket*>(slabs_.At(at)); }

  Slabs& slabs_;
  SlabAddress first_ = 0;  // a chain of them
  uint32_t count_ = 0;
};

}  // namespace skep::hash
