#include "btree/atomic_points.h"

#include <algorithm>

#include "base/compare_bytes.h"
#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"

namespace skep::btree {

namespace {

// Sorts keys. Those of a batch often are a few ascending runs, each below all before it: then each
// run is moved to the front, which takes kRunsMax moves of a key at most.
void SortNamed(std::vector<NamedKey>& named) {
  constexpr int kRunsMax = 8;
  const auto is_below = [](const NamedKey& a, const NamedKey& b) {
    return CompareBytes(a.key, b.key) < 0;
  };
  auto sorted = std::is_sorted_until(named.begin(), named.end(), is_below);
  for (int runs = 1; sorted != named.end(); ++runs) {
    const auto end = std::is_sorted_until(sorted, named.end(), is_below);
    if (runs == kRunsMax || !is_below(*std::prev(end), named.front())) {
      std::ranges::sort(named, is_below);
      return;
    }
    std::rotate(named.begin(), sorted, end);
    sorted = end;
  }
}

}  // namespace

template <class Layout>
Attempt AtomicPoints<Layout>::Try() {
  this->BeginTry();
  StructureChange<Layout> change(core_, this->thread_, Arena::Limit::kObey);
  ListNamed();
  ListStates();
  if (const Attempt a = this->LockKeys(change); a != Attempt::kDone) return a;
  now_ms_ = core_.now.Advance(batch_.now_ms());
  for (KeyState& state : lists_.states) this->Reflect(&state);
  // If nothing is written the destructor of `change` unlocks.
  if (!this->PerformAll() || lists_.wrote.empty()) return Attempt::kDone;
  return this->Commit(change);
}

// Lists the keys that the requests name, ascending.
template <class Layout>
void AtomicPoints<Layout>::ListNamed() {
  auto& named = lists_.named;
  named.clear();
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    const Request& r = this->request(slot);
    if (!this->Check(r).ok()) continue;
    named.push_back({.key = r.key, .slot = slot, .is_other = false, .writes = IsWrite(r.op)});
    if (r.op != Op::kMove) continue;
    named.push_back({.key = r.other, .slot = slot, .is_other = true, .writes = true});
  }
  SortNamed(named);
}

// Makes a state for each of the keys, all of which are to be locked.
template <class Layout>
void AtomicPoints<Layout>::ListStates() {
  auto& states = lists_.states;
  states.clear();
  states.reserve(lists_.named.size());  // reserved, so that pointers to states stay valid
  lists_.places.resize(batch_.size());
  for (const NamedKey& named : lists_.named) {
    if (states.empty() || CompareBytes(states.back().key, named.key) != 0) {
      states.push_back({.key = named.key});
      this->AddKey(&states.back(), named.writes);
    } else if (named.writes) {
      lists_.probes.back().op = Op::kPut;
    }
    if (!named.is_other) lists_.places[named.slot] = static_cast<uint32_t>(states.size() - 1);
  }
}

// Every key that a request names has a state.
template <class Layout>
KeyState& AtomicPoints<Layout>::StateOf(std::string_view key) {
  return *std::ranges::partition_point(
      lists_.states, [&](const KeyState& state) { return CompareBytes(state.key, key) < 0; });
}

template <class Layout>
const KeyState* AtomicPoints<Layout>::Find(std::string_view key) {
  return &StateOf(key);
}

template class AtomicPoints<PaperLayout>;
template class AtomicPoints<HeadLayout>;

}  // namespace skep::btree
