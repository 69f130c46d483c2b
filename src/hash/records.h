// records.h: the pairs of a table that do not lie in buckets: records (record.h) in slabs, and the
// bodies of large ones in the arena.
//
// Thread safety: none; the partition's lock protects it.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "hash/bucket.h"
#include "hash/record.h"
#include "hash/slabs.h"

namespace skep::hash {

class Records {
 public:
  // All arguments must outlive it.
  Records(Arena& arena, Arena::Cache& cache, Slabs& slabs)
      : arena_(arena), cache_(cache), slabs_(slabs) {}

  Record At(SlabAddress at) const { return Record(slabs_.At(at)); }
  // Returns the class of the slab that the record of a pair takes.
  static uint32_t ClassOf(const Pair& pair, Record::Form form) {
    return Slabs::ClassOf(Record::SlabBytes(pair, form));
  }

  // Makes a record of the pair. Returns 0 if there is no memory.
  SlabAddress Add(const Pair& pair, Record::Form form, Arena::Limit limit);
  void Free(uint32_t size_class, SlabAddress at);
  void Free(const Bucket::Pointer& pointer) { Free(pointer.size_class, pointer.address); }

  // Whether the record's memory has the size that the pair takes.
  bool Fits(const Bucket::Pointer& pointer, const Pair& pair, Record::Form form) const;
  // Replaces the record by the pair, which fits. The value may be a view of the old one.
  void Overwrite(SlabAddress at, const Pair& pair, Record::Form form);
  // Gives a record that is not short another deadline.
  void SetDeadline(SlabAddress at, uint64_t deadline_ms) {
    Record::WriteDeadline(slabs_.At(at), deadline_ms);
  }

  // Starts fetching the beginning of the body, if the record is large.
  void PrefetchBody(SlabAddress at) const;
  // Returns how many records have a body in the arena.
  uint64_t large() const { return large_; }

 private:
  Arena& arena_;
  Arena::Cache& cache_;
  Slabs& slabs_;
  uint64_t large_ = 0;
};

}  // namespace skep::hash
