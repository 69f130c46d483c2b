// sync_point.h: the places where a test may stop a thread.
#pragma once

#include <cstdint>

namespace skep::btree {

// A place in the code where a test may stop a thread; interleavings_test.cc.
enum class SyncPoint : uint8_t {
  kReaderAtRoot,     // has its version, has not looked at the root
  kReaderAtChild,    // has a link to a child, has not looked it up
  kReaderInLeaf,     // has found its leaf buffer
  kReaderAtSibling,  // has a link to a sibling
  kReaderAtHint,     // has the buffer that a hint or sibling link names, has not looked at it
  kWriterFoundLeaf,  // has found the place, has not locked
  kWriterAppended,   // locked, item written, version not drawn
  kWriterDrew,       // version drawn, nothing visible
  kWriterPublished,  // visible to the newest readers, not released
  kMergeBuilt,       // new buffer complete, not mapped
  kMergeMapped,      // mapped, old buffer not marked yet
  kStructureLocked,  // split or join: all locks held
  kStructureBuilt,   // new nodes complete, not mapped
  kStructureMapped,  // parent swapped, sibling links not redirected yet
  kDetachStopped,    // range delete: writers are stopped
  kDetachMapped,     // range delete: the subtrees are detached, writers still stopped
  kReclaimUnlinked,  // the freer has unlinked, not freed
};

struct SyncHook {
  void (*call)(void* context, SyncPoint point) = nullptr;
  void* context = nullptr;

  void Reach(SyncPoint point) const {
    if (call != nullptr) [[unlikely]]
      call(context, point);
  }
};

}  // namespace skep::btree
