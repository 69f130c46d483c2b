// atomic_ranges.h: atomic batches that name ranges, so any number of keys.
//
// Locks. The leaves of the ranges and those of the points are locked in one sweep from left to
// right; of a range with a limit only as many as hold that many keys, up to a cut. So a writer of
// other leaves is not held up, and a condition on an empty range locks a leaf or two. The requests
// are performed on a copy of the keys they touch, laid over the newest state: a range delete is one
// delete for each key. The changes are written, leaf by leaf.
//
// Stopping. The other writers are stopped instead (protocol P of versions.h) if locks are not
// enough: where the ranges span more than kLeavesHeldMax leaves; where a request goes on behind a
// cut, since the batch itself has deleted keys that the cut had counted; and for samples and
// floors, whose keys may be anywhere. A batch that stops the writers once does so in all its
// further tries.
//
// Who waits for whom. With locks, as AtomicPoints. With the writers stopped, the batch waits, out
// of its epoch and holding no lock, for other exclusive writers and for the operations that their
// stops have held up (P4); then for the operations that are under way. Threads that want to write
// into one of its leaves wait for the batch; or all writers do, while it has stopped them, for a
// time that grows with the number of keys that the batch touches. Readers wait for neither.
//
// atomic_batch.h says what bounds its tries; one more is in vain if it finds that locks are not
// enough. With the writers stopped no thread takes the room again that a split has made. So the
// batch writes again and again without performing anew and without letting the writers go, until it
// is done: each time is in vain at most for the splits that it has made itself.
//
// Cost: a map entry for each key that a request names or deletes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "btree/atomic_batch.h"
#include "btree/sampler.h"

namespace skep::btree {

// Whether a batch has requests that may name any number of keys.
bool NamesRanges(const Batch& batch);

// Owner: one execution of one batch.
// It has 27 methods: locking decides with the cuts how far the requests may go, and performing them
// finds out when that is not enough.
template <class Layout>
class AtomicRanges final : public AtomicBatch<Layout> {
 public:
  explicit AtomicRanges(const AtomicContext<Layout>& context);

 private:
  using Base = AtomicBatch<Layout>;
  using Base::batch_;
  using Base::core_;
  using Base::is_alone_;
  using Base::lists_;
  using Base::now_ms_;
  using Base::out_;
  using Base::reader_;
  using Base::request;
  using Base::seen_;
  using Base::thread_;

  // The keys that the batch has looked at.
  using States = std::map<std::string_view, KeyState>;
  // A key, or the first keys of a range, that must not change while the batch is performed.
  struct Span {
    std::string_view lo, hi;
    bool is_point = true;
    bool unbounded = false;
    uint64_t keys_max = UINT64_MAX;
    uint32_t slot = 0;
  };
  // A range of whose leaves only those below `end` are locked.
  struct Cut {
    uint32_t slot;
    std::string end;
  };
  static constexpr size_t kLeavesHeldMax = 1024;

  Attempt Try() override;
  KeyState& StateOf(std::string_view key) override;
  KeyState& OwnState(uint32_t index) override { return StateOf(request(index).key); }
  const KeyState* Find(std::string_view key) override;
  void PerformSlot(uint32_t index) override;

  Attempt TryAlone();
  Attempt TryOnce();
  void ListSpans();
  void AddSpan(const Request& request, uint32_t slot);
  Attempt LockSpans(StructureChange<Layout>& change);
  Attempt LockSpan(StructureChange<Layout>& change, const Span& span);
  bool HoldLeaf(StructureChange<Layout>& change, std::string_view key);
  uint64_t CountKeys(const LeafPlace& leaf, const Span& span) const;
  size_t SeekHeld(std::string_view key) const;
  LeafPlace HeldLeafOf(std::string_view key) const;
  std::string UpperOf(const LeafPlace& leaf) const;
  void ListChanged();
  void TakeHeldLeaves();

  void PerformRange(uint32_t index);
  void RequireEmpty(uint32_t index);
  void PerformScan(uint32_t index);
  void PerformSample(uint32_t index);
  void SampleFirst(uint32_t index, Sampler<Layout>& sampler);
  Item ItemOf(const Request& r, std::string_view key, KeyState& state);
  Item ItemOf(const Request& r, std::string_view key, Cursor<Layout>& cursor);
  template <typename Visit>
  void ForEach(uint32_t index, Visit visit);
  template <typename Visit>
  void ForEachForward(const Request& r, std::string_view lo, std::string_view hi, bool unbounded,
                      Visit visit);
  template <typename Visit>
  void ForEachReverse(const Request& r, std::string_view lo, std::string_view hi, bool unbounded,
                      Visit visit);
  std::string_view Floor(std::string_view key);

  bool stops_;  // the next try stops the writers
  States states_;
  std::vector<Span> spans_;      // ascending
  std::vector<LeafPlace> held_;  // the locked leaves of the spans, ascending
  std::vector<Cut> cuts_;
};

}  // namespace skep::btree
