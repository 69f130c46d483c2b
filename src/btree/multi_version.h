// multi_version.h: whether a tree keeps older versions (the option multi_version), and all that
// differs if it does not.
//
//                                  with versions               without
//   a write stores and tells       the version it drew         0
//   a batch of reads, a range      all at one version          each leaf as it is when it is read
//   a replaced buffer              hangs on the new one,       can be found no more; is freed when
//                                  until no reader wants it    the epochs of its readers have ended
//   the halves of a split          lead to the old node        lead nowhere
//   a reply                        waits for all versions      waits for nothing
//                                  below its own
//
// Versions are drawn in either case, since stopping the writers needs them (protocol P of
// versions.h). Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "btree/node.h"
#include "btree/reclaim.h"
#include "btree/versions.h"
#include "engine/release_gate.h"

namespace skep::btree {

class MultiVersion {
 public:
  explicit MultiVersion(bool keeps_versions) : keeps_versions_(keeps_versions) {}

  // Whether the state at a version can still be read after later writes.
  bool reads_at_versions() const { return keeps_versions_; }

  // The version that is stored and returned for a drawn one.
  Version Stamp(Version drawn) const { return keeps_versions_ ? drawn : 0; }

  // Announces that the thread reads from now on, and returns the version it reads at (protocol S).
  Version BeginReading(ThreadState& thread, const ReleaseGate& gate) const {
    if (!keeps_versions_) return 0;
    thread.read_floor.store(gate.released(), std::memory_order_seq_cst);
    return gate.released();
  }

  // Releases all versions that are finished.
  void Release(const Versions& versions, ReleaseGate& gate) const {
    if (keeps_versions_) gate.Release(versions.Complete());
  }
  bool IsReleased(Version version, const ReleaseGate& gate) const {
    return !keeps_versions_ || gate.IsReleased(version);
  }

  // NodeHeader::older of a new buffer that comes from this one.
  uint64_t OlderBits(Older older) const { return keeps_versions_ ? older.bits : 0; }

  // The piece to free once the buffer `at` of a link is replaced at version `end`.
  Retired Replaced(Link link, ArenaAddress at, size_t bytes, Version end) const {
    if (keeps_versions_) return {.kind = Retired::Kind::kBuffer, .link = link, .end = end};
    return {.kind = Retired::Kind::kUnlinked, .bytes = static_cast<uint32_t>(bytes), .at = at};
  }

 private:
  bool keeps_versions_;
};

}  // namespace skep::btree
