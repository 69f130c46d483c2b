// tree_test_history.h: the operations of threads on a tree, in the order of versions.
//
// Every write tells its version, and every read a version at which its result was true. So all
// operations, of whatever threads, can be replayed in one sequence, and each result compared with
// the state at its version: serializability, by versions. If the version released before an
// operation is noted too, no operation may act on an older one: linearizability, as far as replies
// that wait for the gate can tell. For engines with versions only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "btree/testing/tree_test_tree.h"
#include "skep/batch.h"

namespace skep::btree {

class History {
 public:
  explicit History(State start = {}) : start_(std::move(start)) {}

  // Notes the results of `batch`: of a batch that writes, its writes and the values that they
  // returned; of another one its reads, if all are at one version: a single read, an atomic batch,
  // or a batch at a snapshot. `released` is the gate's version before the batch began.
  void Note(const Batch& batch, Version ticket, Version released = 0) {
    const bool writes =
        std::ranges::any_of(batch.requests(), [](const Request& r) { return IsWrite(r.op); });
    for (uint32_t i = 0; i < batch.size(); ++i) {
      if (writes) {
        NoteWrite(batch.requests()[i], batch.outcome(i), released);
      } else {
        NoteRead(batch, i, ticket, released);
      }
    }
  }
  // Adds the events that another thread has noted of the same tree.
  void Join(const History& other) {
    events_.insert(events_.end(), other.events_.begin(), other.events_.end());
  }

  // Returns the state after all events. A failure names the first event that does not fit.
  State Replay() {
    std::ranges::stable_sort(events_, [](const Event& a, const Event& b) {
      return a.version != b.version ? a.version < b.version : a.IsWrite() && !b.IsWrite();
    });
    State state = start_;
    for (const Event& event : events_) {
      const std::string wrong = Apply(event, state);
      if (wrong.empty()) continue;
      ADD_FAILURE() << wrong << " at version " << event.version << ", key " << event.key;
      return state;
    }
    return state;
  }
  size_t size() const { return events_.size(); }

 private:
  struct Event {
    enum class Kind : uint8_t { kPut, kErase, kEraseRange, kSaw, kScanned, kCounted };
    Kind kind;
    Version version;
    std::string key = {};    // ranges: the lower bound
    std::string value = {};  // kPut
    std::string hi = {};
    bool unbounded = false;
    bool reverse = false;
    bool more = false;
    uint64_t limit = 0;
    uint64_t count = 0;                                           // keys erased or counted
    std::optional<std::optional<std::string>> previous = {};      // kPut, kErase: the value before
    std::optional<std::string> saw = {};                          // kSaw
    std::vector<std::pair<std::string, std::string>> items = {};  // kScanned

    bool IsWrite() const { return kind <= Kind::kEraseRange; }
  };
  using Kind = Event::Kind;

  void NoteWrite(const Request& r, const Outcome& outcome, Version released) {
    if (outcome.version == 0) return;  // the write changed nothing
    EXPECT_GT(outcome.version, released) << "a write acted on the past";
    Event event = {.kind = Kind::kPut, .version = outcome.version, .key = std::string(r.key)};
    switch (r.op) {
      case Op::kPut:
      case Op::kInsert:
      case Op::kUpdate:
        event.value = r.value;
        break;
      case Op::kDelete:
        event.kind = Kind::kErase;
        break;
      case Op::kDeleteAll:
      case Op::kDeleteRange:
        event.kind = Kind::kEraseRange;
        SetRange(r, event);
        event.count = static_cast<uint64_t>(outcome.integer);
        break;
      default:
        FAIL() << "an operation that a history has no word for";
    }
    if (r.has(Request::kReturnPrevious)) {
      event.previous.emplace();
      if (outcome.present) *event.previous = std::string(outcome.value);
    } else if (r.needs(Request::kEquals)) {
      event.previous = std::string(r.other);
    }
    events_.push_back(std::move(event));
  }

  void NoteRead(const Batch& batch, uint32_t i, Version ticket, Version released) {
    const Request& r = batch.requests()[i];
    const Outcome& outcome = batch.outcome(i);
    if (outcome.verdict == Verdict::kRefused || outcome.verdict == Verdict::kAborted) return;
    Event event = {.kind = Kind::kSaw, .version = ticket, .key = std::string(r.key)};
    const bool at_snapshot = batch.snapshot().id != 0;
    const bool one_state = at_snapshot || batch.kind() == Batch::Kind::kAtomic;
    if (r.op == Op::kGet) {
      if (!one_state && batch.size() > 1) {
        if (!outcome.present) return;
        event.version = outcome.version;
      }
      // No write of the key lies between the version that the read tells and the beginning of the
      // read.
      if (!one_state) event.version = std::max(event.version, released);
      if (outcome.present) event.saw = std::string(outcome.value);
    } else {
      if (!at_snapshot) {
        EXPECT_GE(ticket, released) << "a range read the past";
      }
      event.kind = r.op == Op::kScan ? Kind::kScanned : Kind::kCounted;
      SetRange(r, event);
      event.count = static_cast<uint64_t>(outcome.integer);
      event.more = outcome.more;
      for (const Item& item : batch.items(i)) event.items.emplace_back(item.key, item.value);
    }
    events_.push_back(std::move(event));
  }

  static void SetRange(const Request& r, Event& event) {
    const bool all = r.op == Op::kDeleteAll;
    if (all) event.key.clear();
    event.hi = r.other;
    event.unbounded = all || r.has(Request::kNoUpperBound);
    event.reverse = r.has(Request::kReverse);
    event.limit = all || r.limit == kNoLimit ? UINT64_MAX : r.limit;
  }

  static std::string Apply(const Event& event, State& state) {
    const auto at = state.find(event.key);
    std::optional<std::string> now;
    if (at != state.end()) now = at->second;
    switch (event.kind) {
      case Kind::kPut:
        state[event.key] = event.value;
        break;
      case Kind::kErase:
        if (at == state.end()) return "an absent key was deleted";
        state.erase(at);
        break;
      case Kind::kEraseRange:
        return EraseRange(event, state);
      case Kind::kSaw:
        return event.saw == now ? "" : "a read saw another value";
      case Kind::kScanned:
        return CompareScan(event, state);
      case Kind::kCounted:
        return CompareCount(event, state);
    }
    return event.previous && *event.previous != now ? "a write saw another value before" : "";
  }

  static std::pair<State::iterator, State::iterator> Ends(const Event& event, State& state) {
    if (!event.unbounded && event.key >= event.hi) return {state.end(), state.end()};
    return {state.lower_bound(event.key),
            event.unbounded ? state.end() : state.lower_bound(event.hi)};
  }

  static std::string EraseRange(const Event& event, State& state) {
    auto [first, end] = Ends(event, state);
    uint64_t erased = 0;
    for (; first != end && erased < event.limit; ++erased) first = state.erase(first);
    return erased == event.count ? "" : "a range delete counted other keys";
  }

  static std::string CompareScan(const Event& event, State& state) {
    const auto [first, end] = Ends(event, state);
    std::vector<std::pair<std::string, std::string>> expected(first, end);
    if (event.reverse) std::ranges::reverse(expected);
    if (event.items.size() > expected.size()) return "a scan saw more keys";
    if (!event.more && event.items.size() < std::min<uint64_t>(expected.size(), event.limit)) {
      return "a scan saw fewer keys";
    }
    return std::ranges::equal(event.items, std::span(expected).first(event.items.size()))
               ? ""
               : "a scan saw other items";
  }

  static std::string CompareCount(const Event& event, State& state) {
    const auto [first, end] = Ends(event, state);
    const auto expected = static_cast<uint64_t>(std::distance(first, end));
    const bool fits = event.more ? event.count <= expected : event.count == expected;
    return fits ? "" : "a count saw another number of keys";
  }

  State start_;
  std::vector<Event> events_;
};

}  // namespace skep::btree
