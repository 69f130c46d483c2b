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

// Finds the leaf of the key and reads it there. `read(place, covers)` returns the version that it
// has seen; nothing if `covers()` says that the leaf is not the key's, which it need not ask if
// what it reads shows that it is. The thread is outside its epoch.
template <class Layout, typename Read>
Version ReadInLeaf(Core& core, ThreadState& thread, std::string_view key, Read read) {
  core.versions.EnterEpoch(thread);
  const Reader<Layout> reader(core);
  LeafPlace place = reader.Surmise(thread, key, 1, true);
  std::optional<Version> seen;
  if (place.node != nullptr) {
    seen = read(place, [&] { return Layout::CoversAt(core.codec, place.node, key, place.spot); });
  }
  if (!seen) {
    if (place.link || core.directory.current() == nullptr) thread.NoteUnguided();
    place = reader.Find(key, Reader<Layout>::kNewest);
    FindSpot<Layout>(core, key, &place);
    seen = read(place, [] { return true; });
  }
  if (IsTimeToSample(thread, 1)) core.table.CountHit(place.link.lid());
  core.versions.LeaveEpoch(thread);
  return *seen;
}

}  // namespace

template <class Layout>
Version ExecuteSingleGet(Core& core, ThreadState& thread, const EngineTraits& traits,
                         Batch& batch) {
  BatchWriter out(batch);
  const Request& request = batch.requests().front();
  const uint64_t now_ms = core.now.Advance(batch.now_ms());
  return ReadInLeaf<Layout>(core, thread, request.key,
                            [&](const LeafPlace& place, auto covers) -> std::optional<Version> {
                              Version seen;
                              if (ReadPlain<Layout>(request, place, now_ms, out, 0, &seen))
                                return seen;
                              if (!covers()) return std::nullopt;
                              return ReadPoint<Layout>(core, request, place,
                                                       Reader<Layout>::kNewest, now_ms, traits, out,
                                                       0);
                            });
}

template <class Layout>
std::optional<Version> GetPlain(Core& core, ThreadState& thread, std::string_view key,
                                std::optional<std::string>* value) {
  bool is_known = true;
  const Version seen = ReadInLeaf<Layout>(
      core, thread, key, [&](const LeafPlace& place, auto covers) -> std::optional<Version> {
        const uint32_t used = place.word.used();
        std::string_view bytes;
        if (Layout::FindPlain(place.node, used, key, place.spot, &bytes)) {
          value->emplace(bytes);
          return place.node->version.load(std::memory_order_relaxed);
        }
        if (!covers()) return std::nullopt;
        const typename Layout::Leaf leaf(core.codec, place.node, used, Reader<Layout>::kNewest);
        const typename Layout::Found found = leaf.Find(key, place.spot);
        if (found.present) {
          is_known = !found.value.outside && !found.value.has_metadata;
          if (is_known) value->emplace(found.value.bytes);
        }
        return found.known ? found.version : place.node->version.load(std::memory_order_relaxed);
      });
  if (!is_known) return std::nullopt;
  return seen;
}

template Version ExecuteSingleGet<PaperLayout>(Core&, ThreadState&, const EngineTraits&, Batch&);
template Version ExecuteSingleGet<HeadLayout>(Core&, ThreadState&, const EngineTraits&, Batch&);
template std::optional<Version> GetPlain<PaperLayout>(Core&, ThreadState&, std::string_view,
                                                      std::optional<std::string>*);
template std::optional<Version> GetPlain<HeadLayout>(Core&, ThreadState&, std::string_view,
                                                     std::optional<std::string>*);

}  // namespace skep::btree
