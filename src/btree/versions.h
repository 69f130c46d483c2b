// versions.h: the order of writes, and which versions and buffers readers may still need
// (Honeycomb, section 3.2; spec sections 3, 6).
//
// A ThreadState belongs to one thread while that executes one batch. It announces three things:
//
//   epoch         the global epoch when the batch began: the thread may hold pointers found since
//   read_floor    a released version: the thread may read at this one or a later one, not before it
//   write_floor   the thread may have drawn this version or a later one and not finished it; all
//                 versions it drew before are finished
//
// Each is kIdle when it does not apply. Four protocols use them.
//
// V. Drawing and releasing. A writer announces write_floor = next_, then draws versions by
//    fetch_add. Complete() reads next_, then every write_floor, and takes the lowest minus one.
//    (V1) No version <= Complete() is unfinished. Take one, v. Complete() read next_ > v, so v was
//         drawn before that. Its writer announced a floor <= v before drawing it, so the scan of
//         the threads, which comes later still, sees that floor, or a later one, stored after v was
//         finished. All these operations are seq_cst, so that "before" is their total order.
//    (V2) Raising a floor between two writes may be a release store: a scan that sees the older,
//         lower floor is only more careful, and one that sees the new one acquires the writes
//         before. For the same reason it need not be raised at once: next_ is a line that all
//         writers take from each other, so batches read it for that only now and then.
//    (V3) Every version is released in the end: a writer stores kIdle (seq_cst), then scans. Of two
//         writers that finish together the one whose store comes second sees both idle. One that
//         only raised its floor scans too before long: a batch does when it rests
//         (batch_executor.h).
//    No thread waits: a writer that finishes early leaves the release to a later one. A thread that
//    stalls between announcing and finishing holds back the versions drawn after, and nothing else.
//
// P. Stopping the writers, for changes of ranges (range_delete.h). An exclusive writer takes the
//    turn, makes phase_ odd, draws v, tells v in barrier_, then waits until every other floor is
//    above v. A writer reads an even phase when it begins an operation and reads it again after it
//    has drawn d. If it changed, the writer finishes if d is below barrier_; else it writes nothing
//    (d stays unused), lets go of its locks and begins again.
//    (P1) A writer that draws after v sees the odd phase, since both sides are seq_cst: phase_ was
//         stored before v was drawn. So it writes nothing: barrier_ is v, or that of an earlier
//         stop, which was drawn before v. A writer that drew before v finishes its write or, if it
//         saw the phase and not the barrier yet, gives up; the exclusive writer waits for either,
//         since that writer's floor stays <= v so long.
//    (P2) A writer that raises its floor above v has read a next_ above v, with acquire, so when it
//         then begins an operation it sees the odd phase: a raised floor never lets a writer in.
//    (P3) The exclusive writer waits no longer than operations take: a writer that sees the odd
//         phase between two of them raises its floor, again and again until it is above v.
//    (P4) An operation waits for at most two stops, whatever the exclusive writers do. A writer
//         that finds the phase odd, or changed, sets held_up before it raises its floor, and clears
//         it when the operation is over; the thread that has the turn waits, before it makes the
//         phase odd, until no thread is held up. A writer that gives up its write does that before
//         the stop ends, which waits for its floor. An operation that begins in a stop may miss its
//         end and meet the next one.
//    (P5) There is no circle: no thread holds a node lock while it waits for the turn or is held
//         up, and a thread that waits for a lock looks at the phase.
//    (P6) A thread that rebuilds a node as it is draws no version and announces no floor, so it
//         holds back no release. It sets `rebuilds`, then reads phase_, and goes on if that is
//         even; the exclusive writer makes phase_ odd, then waits until no thread rebuilds. All
//         are seq_cst, so either that thread sees the odd phase, or the exclusive writer sees the
//         announcement. The wait is for one node of each thread at most, as the next one meets
//         the odd phase.
//
// S. Reading at a version. A reader announces read_floor = released, then reads at rv = released
//    again. The freer reads h = released, then every read_floor; it drops a piece that was replaced
//    at version e only if e <= h and e <= every floor.
//    (S1) If the scan missed the announcement, rv was read after h, so rv >= h >= e: the reader
//         sees the replacement. If it saw the floor f, e <= f <= rv.
//
// E. Epochs. A reader announces the epoch, then looks for pointers. The freer unlinks, then
//    advances the epoch from t to t + 1, and frees once every announced epoch is above t.
//    (E1) A reader whose announcement the scan missed looks after the scan, hence after the unlink:
//         its loads are seq_cst as is the unlinking store. These are of rows of the page table, of
//         NodeHeader::older, and of words of leaves. An outside block is unlinked by the row of a
//         leaf that does not name it any more; by the word of a leaf whose log got an item that
//         replaces the block's; or by the mark of a leaf that has left the tree, for readers that
//         come to it by a hint. A store to a word that unlinks nothing need not be seq_cst.
//    (E2) Pieces that another thread has unlinked were unlinked before the scan too: the freer has
//         them from that thread's state, which it took (acquire), or from a list under its own
//         mutex.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/arena.h"
#include "base/mutex.h"
#include "btree/link.h"
#include "btree/scanned_leaves.h"
#include "skep/batch.h"

namespace skep::btree {

// A piece that left the tree at version `end`; reclaim.h.
struct Retired {
  enum class Kind : uint8_t {
    kBuffer,     // a buffer in the chain of `link`, replaced at `end`; kept for a snapshot: at `at`
    kNode,       // the node of `link`
    kWholeNode,  // the same, with the outside blocks that it names
    kBlock,      // the outside block at `at`, of `bytes`
    kPiece,      // the same, of a piece (pieces.h)
    kSubtree,    // the node of `link` and all below it, detached at `end`
    kUnlinked,   // the buffer of a node at `at`, of `bytes`, that no reader can find any more
  };
  Kind kind;
  uint32_t bytes = 0;
  Link link = {};
  ArenaAddress at = {};
  Version end = 0;

  bool is_block() const { return kind == Kind::kBlock || kind == Kind::kPiece; }
};

struct Workspace;

struct alignas(128) ThreadState {
  static constexpr uint64_t kIdle = UINT64_MAX;
  static constexpr uint32_t kGuessScoreMax = 16;

  ThreadState();
  ~ThreadState();

  std::atomic<bool> taken{false};
  std::atomic<uint64_t> epoch{kIdle};
  std::atomic<Version> read_floor{kIdle};
  std::atomic<Version> write_floor{kIdle};
  std::atomic<bool> held_up{false};   // by a stop of the writers (P4)
  std::atomic<bool> rebuilds{false};  // nodes, without a version (P6)
  // Written by the owner only.
  std::atomic<int64_t> items{0};      // keys added less keys deleted
  std::atomic<int64_t> deadlines{0};  // the same for keys with a deadline
  std::atomic<int64_t> unguided{0};   // operations that the directory has not led to their leaf

  // Owner: the thread that took the state.
  Arena::Cache cache;
  std::vector<Retired> retired;
  ScannedLeaves scanned;
  const std::unique_ptr<Workspace> workspace;
  uint64_t phase = 0;      // of protocol P, at the beginning of the operation
  uint32_t steps = 0;      // counts the calls of RaiseInTime
  uint32_t unsampled = 0;  // requests since the last one that look_ahead.h has sampled
  // Whether guesses of places in leaves have been right lately (Reader::Surmise): rises by one with
  // a right guess, falls by two with a wrong one.
  uint32_t guess_score = kGuessScoreMax;
  uint64_t epoch_entries = 0;  // how often the thread has entered an epoch

  void NoteGuess(bool was_right) {
    guess_score = was_right ? std::min(guess_score + 1, kGuessScoreMax)
                            : guess_score - std::min(guess_score, 2u);
  }
  void NoteUnguided(int64_t operations = 1) {
    unguided.store(unguided.load(std::memory_order_relaxed) + operations,
                   std::memory_order_relaxed);
  }
  void AddItems(int64_t n, int64_t with_deadline) {
    items.store(items.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    if (with_deadline == 0) return;
    deadlines.store(deadlines.load(std::memory_order_relaxed) + with_deadline,
                    std::memory_order_relaxed);
  }
};

class ThreadStates {
 public:
  // The most batches that may execute at the same time.
  static constexpr uint32_t kThreadsMax = 256;

  // Takes a free state, if possible the one that this thread had before. While all kThreadsMax are
  // taken it waits until one of those batches ends, so nothing is wait-free with more batches at a
  // time; a thread that waits has announced nothing, and so holds back nothing.
  ThreadState& Take();
  // Takes a certain state if it is free, to clear up what its last owner left.
  bool TryTake(ThreadState& thread) {
    bool expected = false;
    return thread.taken.compare_exchange_strong(expected, true, std::memory_order_acquire);
  }
  void Give(ThreadState& thread) { thread.taken.store(false, std::memory_order_release); }

  // Visits every state that was ever taken.
  template <typename Visit>
  void ForEach(Visit visit) {
    const uint32_t end = end_.load(std::memory_order_seq_cst);
    for (uint32_t i = 0; i < end; ++i) {
      // seq_cst: a state that the scan misses has announced nothing yet (V1, S1, E1).
      if (ThreadState* const thread = threads_[i].load(std::memory_order_seq_cst)) visit(*thread);
    }
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    const_cast<ThreadStates*>(this)->ForEach([&](const ThreadState& thread) { visit(thread); });
  }

  ThreadStates() = default;
  ~ThreadStates();

 private:
  ThreadState& Make(uint32_t index);

  Mutex mutex_;  // held to make a state
  std::array<std::atomic<ThreadState*>, kThreadsMax> threads_{};
  std::atomic<uint32_t> end_{0};
};

// A thread state for the time of one operation. Everything that the operation has announced in the
// state ends with it, also if an exception ends it: else readers or the freer would wait for ever.
class TakenThreadState {
 public:
  explicit TakenThreadState(ThreadStates& threads) : threads_(threads), thread_(threads.Take()) {}
  ~TakenThreadState() {
    EndAll();
    threads_.Give(thread_);
  }
  TakenThreadState(const TakenThreadState&) = delete;
  TakenThreadState& operator=(const TakenThreadState&) = delete;

  operator ThreadState&() { return thread_; }

 private:
  // Looks first, as most operations have ended what they began.
  void EndAll() {
    const auto end = [](std::atomic<uint64_t>& announced) {
      if (announced.load(std::memory_order_relaxed) == ThreadState::kIdle) return;
      announced.store(ThreadState::kIdle, std::memory_order_seq_cst);
    };
    end(thread_.read_floor);
    end(thread_.epoch);
    end(thread_.write_floor);
    thread_.held_up.store(false, std::memory_order_relaxed);
    thread_.rebuilds.store(false, std::memory_order_release);
  }

  ThreadStates& threads_;
  ThreadState& thread_;
};

// It has 26 methods: V, P, S and E are proved by the order of accesses to the same few words.
class Versions {
 public:
  explicit Versions(ThreadStates& threads) : threads_(threads) {}

  // --- V, by the owner of the state ---
  void BeginWrites(ThreadState& thread) {
    thread.write_floor.store(next_.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
  }
  Version Draw() { return next_.fetch_add(1, std::memory_order_seq_cst); }
  // Raises the floor: all versions that the thread has drawn are finished.
  void Raise(ThreadState& thread) {
    // Acquire, for (P2).
    thread.write_floor.store(next_.load(std::memory_order_acquire), std::memory_order_release);
  }
  // Like Raise(), between two operations of a batch that writes, but not every time.
  void RaiseInTime(ThreadState& thread) {
    LetGo(thread);
    if (++thread.steps % kRaiseEvery == 0 || phase_.load(std::memory_order_seq_cst) % 2 != 0) {
      Raise(thread);
    }
  }
  void EndWrites(ThreadState& thread) {
    LetGo(thread);
    thread.write_floor.store(ThreadState::kIdle, std::memory_order_seq_cst);
  }
  // The highest version such that it and all versions below are finished.
  Version Complete() const;
  Version last_drawn() const { return next_.load(std::memory_order_relaxed) - 1; }
  // Goes on as if all versions up to this one had been drawn and finished. Nothing else may run
  // meanwhile.
  void StartAfter(Version version) {
    if (next_.load(std::memory_order_relaxed) > version) return;
    next_.store(version + 1, std::memory_order_seq_cst);
  }

  // --- P ---
  // Notes the phase at the beginning of an operation; waits while it is odd.
  void BeginOperation(ThreadState& thread) {
    LetGo(thread);
    Raise(thread);
    ReadPhase(thread);
  }
  // Begins to rebuild nodes without a version (P6); never waits. False: the writers are being
  // stopped, so nothing may be rebuilt.
  bool TryBeginRebuild(ThreadState& thread) {
    if (phase_.load(std::memory_order_seq_cst) % 2 != 0) return false;
    thread.rebuilds.store(true, std::memory_order_seq_cst);
    if (phase_.load(std::memory_order_seq_cst) % 2 == 0) return true;
    EndRebuild(thread);
    return false;
  }
  void EndRebuild(ThreadState& thread) { thread.rebuilds.store(false, std::memory_order_release); }
  // Like BeginOperation, for a point operation: its batch raises the floor now and then.
  void BeginPoint(ThreadState& thread) {
    RaiseInTime(thread);
    ReadPhase(thread);
  }
  // Like BeginOperation, for another try of the same operation.
  void BeginAgain(ThreadState& thread) {
    if (PhaseChanged(thread)) thread.held_up.store(true, std::memory_order_seq_cst);
    Raise(thread);
    ReadPhase(thread);
  }
  // Whether the writers are being stopped, or were, since the operation began.
  bool PhaseChanged(const ThreadState& thread) const {
    return phase_.load(std::memory_order_seq_cst) != thread.phase;
  }
  // Whether an operation that has drawn this version may write (P1).
  bool MayWrite(const ThreadState& thread, Version drawn) const {
    return !PhaseChanged(thread) || drawn < barrier_.load(std::memory_order_seq_cst);
  }
  // How often the writers were stopped.
  uint64_t stops() const { return (phase_.load(std::memory_order_relaxed) + 1) / 2; }

  // While a Turn lives no other thread stops the writers. `thread` must have called BeginWrites and
  // hold no node locks. The constructor waits for the threads whose turn it is, and for one
  // operation of each writer that the stop before has held up.
  class Turn {
   public:
    Turn(Versions& versions, ThreadState& thread) : versions_(versions), thread_(thread) {
      versions.TakeTurn(thread);
    }
    ~Turn() SKEP_NO_THREAD_SAFETY_ANALYSIS { versions_.exclusive_.unlock(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    friend class Versions;
    Versions& versions_;
    ThreadState& thread_;
  };
  // While a Stopped lives no thread writes but the one that has the turn. That may hold node locks:
  // a thread that waits for one of those gives up when the phase changes.
  class Stopped {
   public:
    explicit Stopped(Turn& turn) : versions_(turn.versions_), thread_(turn.thread_) {
      versions_.StopWriters(thread_);
    }
    ~Stopped() { versions_.ResumeWriters(thread_); }
    Stopped(const Stopped&) = delete;
    Stopped& operator=(const Stopped&) = delete;

   private:
    Versions& versions_;
    ThreadState& thread_;
  };

  // --- S ---
  Version LowestReadFloor() const;

  // --- E ---
  void EnterEpoch(ThreadState& thread) {
    ++thread.epoch_entries;
    thread.epoch.store(epoch_.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
  }
  void LeaveEpoch(ThreadState& thread) {
    thread.epoch.store(ThreadState::kIdle, std::memory_order_release);
  }
  uint64_t AdvanceEpoch() { return epoch_.fetch_add(1, std::memory_order_seq_cst); }
  uint64_t LowestEpoch() const;

 private:
  // Lets those that wait for the thread's operation (P4) go on: it is over.
  static void LetGo(ThreadState& thread) {
    if (!thread.held_up.load(std::memory_order_relaxed)) return;
    thread.held_up.store(false, std::memory_order_release);
  }
  void ReadPhase(ThreadState& thread) {
    thread.phase = phase_.load(std::memory_order_seq_cst);
    if (thread.phase % 2 != 0) [[unlikely]]
      AwaitPhase(thread);
  }
  void AwaitPhase(ThreadState& thread);
  void TakeTurn(ThreadState& thread) SKEP_NO_THREAD_SAFETY_ANALYSIS;
  void StopWriters(ThreadState& thread);
  void ResumeWriters(ThreadState& thread);

  // A release lags behind by at most so many operations of a batch.
  static constexpr uint32_t kRaiseEvery = 8;

  ThreadStates& threads_;
  alignas(128) std::atomic<Version> next_{1};    // written by every write
  alignas(128) std::atomic<uint64_t> phase_{0};  // read by every write
  std::atomic<Version> barrier_{0};              // the version that the last stop drew
  alignas(128) std::atomic<uint64_t> epoch_{1};
  Mutex exclusive_;
};

}  // namespace skep::btree
