// key_waiters.h: the clients that wait until a key has an element for them (BLPOP and its kin), of
// all workers.
//
//   key ---- waiters, in the order in which they came ----> KeyWaiter ----> its keys
//
// Roles
//   waiter  Begin pops at once, or enters the waiter behind those that came before. Its worker
//           calls Leave when the time is over or the client goes, and takes what has ended from
//           its WaiterInbox (waiting_sessions.h).
//   writer  every worker calls Serve after each batch that it has executed, before the batch's
//           replies leave. Serve pops for the waiters of the keys that were written: for each key
//           those in front first, until the key has nothing more. What a pop writes itself
//           (BLMOVE) is served in the same call. After kPopsMax pops the rest is left for later
//           calls, of Serve by any worker or of ServeMore in each one's next turn.
//
// All of it happens under one mutex. A pop is an atomic batch of one key, executed by the thread
// that holds the mutex; the waiter's own worker makes the reply of it.
//
// Safety
//   (1) No wake-up is lost. Begin counts the waiter in the cells of its keys before it tries to
//       pop, and a pop looks at the key where it would write it, under the locks that writers of
//       the key hold. A write that comes before the pop there is seen by the pop. Of a write that
//       comes after it, the writer's look at the cell, which follows the write, sees the count: so
//       it takes the mutex, and finds the waiter entered.
//   (2) Each element goes to one client. A pop is one atomic operation of the engine, and its
//       outcome belongs to the one waiter for which it was executed. A waiter leaves all its
//       queues before the mutex is given back, so it is served once.
//   (3) Waiters are served in the order in which they came. Begin numbers them under the mutex. If
//       somebody waits for one of the keys already, Begin does not pop but serves the key, front
//       first. (A command that does not wait, LPOP say, and that comes at the same moment as the
//       write, may take an element first.)
//   (4) Nothing is popped for a client that CLIENT KILL has ended, or that its worker has found
//       gone: the first is marked before CLIENT KILL replies, and Serve looks at the mark; the
//       second has left. An element that was popped just before is lost with its client, as in
//       Redis.
//
// Progress. A thread that holds the mutex waits for the engine only, as any write does, never for
// another worker: the front waiter's worker may be busy, and the next ones are served nevertheless.
// A worker waits for the mutex if it writes a key that somebody waits for, or one of the same cell;
// without waiters no write takes it. While it is held, at most kPopsMax pops are executed, and
// those of the waiter that begins: one for each waiter that is served, and one or two in vain for
// each key. Keys that are left are served in the order in which they were written.
//
// Thread safety: any thread may call any method of KeyWaiters and WaiterInbox.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/network.h"
#include "engine/engine.h"
#include "server/client_registry.h"
#include "skep/batch.h"

namespace skep {

class ServerCall;
class WaiterInbox;
struct Command;
struct Session;

// A command that waits for one of its keys. Its words and keys stay as they are. The rest belongs
// to KeyWaiters until the waiter has ended, and then to its worker.
struct KeyWaiter {
  enum class State : uint8_t {
    kNew,
    kWaiting,
    kPopped,     // `popped` was executed: it has popped, or was refused
    kOtherType,  // when the command came, a key had a value of another type
    kTimedOut,
    kUnblocked,  // CLIENT UNBLOCK ... ERROR
  };
  // Adds to an atomic batch what pops from the first of the keys that has an element. The last of
  // the slots that are about the keys returns what was popped; none: nothing.
  using AddPop = void (*)(std::span<const std::string_view> args,
                          std::span<const std::string_view> keys, Batch& batch);
  using Finish = void (*)(const ServerCall& call, const KeyWaiter& waiter);

  // Copies the words; `keys` are some of them.
  KeyWaiter(Engine& engine, const Command& command, std::span<const std::string_view> args,
            std::span<const std::string_view> keys);

  Engine& engine;
  const Command& command;
  uint8_t kind = 0;  // of the values that have elements for it (types/value_type.h)
  AddPop add_pop = nullptr;
  Finish finish = nullptr;  // makes the reply once it has ended
  std::shared_ptr<const ClientInfo> client;
  std::shared_ptr<WaiterInbox> inbox;  // null once the waiter is in it
  Session* session = nullptr;
  uint64_t deadline_ms = 0;  // of the monotonic clock; 0: none
  uint64_t ns = 0;           // of the worker's time

  State state = State::kNew;
  std::unique_ptr<Batch> popped;
  std::span<const std::string_view> popped_keys;  // of which one was popped from
  Version ticket = 0;                             // of `popped`
  uint64_t number = 0;                            // rises in the order in which they come

  std::span<const std::string_view> args() const { return args_; }
  // Each key once, in the order in which they were named.
  std::span<const std::string_view> keys() const { return keys_; }
  // The memory that it takes, here and in the table, about.
  size_t bytes() const { return bytes_; }

 private:
  std::vector<std::string> words_;
  std::vector<std::string_view> args_;
  std::vector<std::string_view> keys_;
  size_t bytes_ = 0;
};

// The waiters of one worker that have ended.
class WaiterInbox {
 public:
  explicit WaiterInbox(std::shared_ptr<Poller> poller) : poller_(std::move(poller)) {}
  // Wakes the worker.
  void Put(std::shared_ptr<KeyWaiter> waiter);
  std::vector<std::shared_ptr<KeyWaiter>> Take();

 private:
  const std::shared_ptr<Poller> poller_;
  Mutex mutex_;
  std::vector<std::shared_ptr<KeyWaiter>> ended_ SKEP_GUARDED_BY(mutex_);
};

class KeyWaiters {
 public:
  // Executes a batch without a call of Serve, and returns its ticket.
  using Execute = std::function<Version(Engine&, Batch&)>;

  // Pops for the waiter, and returns true: it has ended. Or enters it, and returns false.
  // Cost: a pop for each key; logarithmic in the number of waiters and keys.
  bool Begin(const std::shared_ptr<KeyWaiter>& waiter, const Execute& execute);
  // Ends a waiter that was entered, with this state. False: it has ended already, and is in its
  // inbox.
  bool Leave(KeyWaiter& waiter, KeyWaiter::State state);
  // Ends the waiter of the client with this id, by this state, and gives it to its worker. False:
  // the client does not wait.
  bool Unblock(uint64_t client, KeyWaiter::State state);

  // The pops that one call of Serve or ServeMore executes at most.
  static constexpr size_t kPopsMax = 64;

  // The batch was executed: pops for those who wait for the keys that it has written.
  // Cost: a hash for each write if anybody waits for anything, else nothing.
  void Serve(Engine& engine, const Batch& batch, const Execute& execute);
  // Goes on with what earlier calls have left.
  void ServeMore(const Execute& execute);
  bool has_left() const { return has_left_.load(std::memory_order_relaxed); }

  // Whether one of the batch's writes from this slot on is of a key that somebody may wait for.
  bool MayAwait(const Batch& batch, uint32_t from_slot) const;
  // How many clients wait.
  size_t size() const { return count_.load(std::memory_order_relaxed); }

 private:
  using Queue = std::map<uint64_t, std::shared_ptr<KeyWaiter>>;  // by number
  using Key = std::pair<const Engine*, std::string>;
  struct KeyView {
    const Engine* engine;
    std::string_view key;
  };
  struct IsLess {
    using is_transparent = void;
    static KeyView View(const Key& key) { return {key.first, key.second}; }
    static KeyView View(const KeyView& key) { return key; }
    bool operator()(const auto& a, const auto& b) const {
      const KeyView x = View(a);
      const KeyView y = View(b);
      return x.engine != y.engine ? std::less<>()(x.engine, y.engine) : x.key < y.key;
    }
  };
  enum class Tried : uint8_t { kEnded, kNothing, kOtherType };

  static constexpr size_t kCells = 4096;

  static size_t CellOf(std::string_view key);
  void Enter(const std::shared_ptr<KeyWaiter>& waiter) SKEP_REQUIRES(mutex_);
  void Remove(KeyWaiter& waiter) SKEP_REQUIRES(mutex_);
  bool HasEarlier(const KeyWaiter& waiter) const SKEP_REQUIRES(mutex_);
  void NoteWritten(Engine& engine, const Batch& batch, std::span<const std::string_view> popped)
      SKEP_REQUIRES(mutex_);
  void ServeSome(const Execute& execute) SKEP_REQUIRES(mutex_);
  bool ServeKey(const Key& key, const Execute& execute, size_t* pops_left) SKEP_REQUIRES(mutex_);
  Tried Try(KeyWaiter& waiter, std::span<const std::string_view> keys, const Execute& execute)
      SKEP_REQUIRES(mutex_);

  // The number of waiters. Relaxed, as the cells are: the locks of the engine order them, see (1).
  std::atomic<size_t> count_{0};
  // Whether there are ready keys. Relaxed: a worker that sees it late looks again in its next turn.
  std::atomic<bool> has_left_{false};
  std::array<std::atomic<uint32_t>, kCells> cells_{};  // of the waiters' keys with this hash
  mutable Mutex mutex_;
  uint64_t last_number_ SKEP_GUARDED_BY(mutex_) = 0;
  std::map<Key, Queue, IsLess> queues_ SKEP_GUARDED_BY(mutex_);
  // Keys that were written, and may have elements for those who wait for them.
  std::deque<Key> ready_ SKEP_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<KeyWaiter>> by_client_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep
