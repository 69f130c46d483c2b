// partition.h: a part of the keyspace that one thread at a time works on (KV-Direct, section 5.2:
// a partition for each of ten NICs).
//
// A key's partition is chosen by bits of its hash. Each partition has its own lock, table, slabs
// and deadlines. Some partitions share an arena: they take 64 KiB spans from it and give them back,
// and share nothing else.
//
// Protocol
//   point    locks the key's partition, does all points of the batch that fall into it, unlocks.
//            The order of partitions is the thread's own, and one that is locked is left for later,
//            so threads get out of each other's way. A point holds one lock at a time.
//   several  (an atomic batch, a delete or count of everything, a sample, the opening and the end
//            of a snapshot iterator) locks all partitions it needs in ascending order, does
//            everything, and unlocks them. It waits only for partitions above those that it holds,
//            so no two of them wait for each other; a point that waits holds no lock.
//   walk     (cursor_scanner.h, snapshot_iterator.h) locks one partition at a time, for a few
//            chains.
//
// Why points and atomic batches are linearizable
//   (1) The data that a point reads or writes lies in its partition and changes only under its
//       lock. The point takes effect at any instant while it holds the lock: no other thread sees a
//       state in between.
//   (2) Several partitions that are locked together have such an instant too: once the last is
//       locked until the first is unlocked. So an atomic batch is seen whole or not at all, by
//       points as well, though each of them locks but one.
//   (3) A key that has been seen as expired stays so: the latest "now" is read after locking
//       (engine.h).
//
// Cost. A locked exchange and a store for each partition that a batch meets, a nanosecond or two a
// key in batches of 256, for reads as for writes; and readers wait while another thread is in their
// partition, some microseconds while that thread runs. A thread that is suspended inside a
// partition delays the others that need it until it runs again: they yield while they wait. Readers
// without locks would need a version to validate, for which a bucket of ten slots has no room.
#pragma once

#include "base/spin_lock.h"
#include "hash/table.h"

namespace skep::hash {

struct alignas(64) Partition {
  Partition(Arena& arena, MemoryBudget& budget, const TableOptions& options)
      : table(arena, budget, options) {}

  SpinLock lock;
  Version number = 0;  // of the partition's last write; guarded by lock
  Table table;         // guarded by lock; Table::LineOf needs none
};

}  // namespace skep::hash
