#include "btree/single_get.h"

#include <optional>

#include "btree/heads/head_layout_search.h"
#include "btree/look_ahead.h"
#include "btree/paper/paper_layout.h"
#include "btree/point_read.h"

namespace skep::btree {
namespace {

// Completes the spot of the key in a leaf whose lines are on their way.
template <class Layout>
void FindSpot(const Core& core, std::string_view key, LeafPlace* place) {
  const typename Layout::Leaf leaf(core.codec, place->node, place->word.used());
  place->spot = leaf.Prefetch(key);
  leaf.PrefetchItems(1, &place->spot);
}

}  // namespace

template <class Layout>
Version ExecuteSingleGet(Core& core, ThreadState& thread, const EngineTraits& traits,
                         Batch& batch) {
  BatchWriter out(batch);
  const Request& request = batch.requests().front();
  const uint64_t now_ms = core.now.Advance(batch.now_ms());
  core.versions.EnterEpoch(thread);
  const Reader<Layout> reader(core);
  LeafPlace place = reader.Surmise(thread, request.key, 1, true);
  const auto read = [&](auto covers) {
    Version seen;
    if (ReadPlain<Layout>(request, place, now_ms, out, 0, &seen)) return std::optional(seen);
    if (!covers()) return std::optional<Version>();
    return std::optional(
        ReadPoint<Layout>(core, request, place, Reader<Layout>::kNewest, now_ms, traits, out, 0));
  };
  std::optional<Version> seen;
  if (place.node != nullptr) {
    seen = read([&] { return Layout::CoversAt(core.codec, place.node, request.key, place.spot); });
  }
  if (!seen) {
    if (place.link || core.directory.current() == nullptr) thread.NoteUnguided();
    place = reader.Find(request.key, Reader<Layout>::kNewest);
    FindSpot<Layout>(core, request.key, &place);
    seen = read([] { return true; });
  }
  if (IsTimeToSample(thread, 1)) core.table.CountHit(place.link.lid());
  core.versions.LeaveEpoch(thread);
  return *seen;
}

template Version ExecuteSingleGet<PaperLayout>(Core&, ThreadState&, const EngineTraits&, Batch&);
template Version ExecuteSingleGet<HeadLayout>(Core&, ThreadState&, const EngineTraits&, Batch&);

}  // namespace skep::btree
