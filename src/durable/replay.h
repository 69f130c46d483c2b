// replay.h: applies the changes of the log to engines.
//
// Changes wait until a progress record says that they are complete; then they are applied in the
// order of their versions. Changes that never become complete are dropped: no reply told of them.
//
// Changes of single keys that are complete are collected, and divided into shares by their keys.
// Helpers apply one share after the other while the owner reads on; when the owner has collected
// the next changes it applies shares, too, until none is left. A change of many keys waits for all
// changes before it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/helper_pool.h"
#include "base/mutex.h"
#include "durable/log_change.h"
#include "durable/log_reader.h"
#include "engine/engine.h"

namespace skep::durable {

// No change that was applied once is refused for the memory that it takes: the results of functions
// are divided into as many batches as they need (feed.h).
//
// Thread safety: one owner.
// Memory: 16 MiB of records, and a write of the log, that are collected; as much that is applied;
// and a Feed for each thread.
class Replay {
 public:
  // The engine of a keyspace, null if there is no such keyspace, and the version that the engine
  // has already.
  struct Target {
    Engine* engine = nullptr;
    Version has = 0;
  };
  using Find = std::function<Target(uint32_t keyspace)>;

  // `threads` is how many threads apply changes, the owner among them.
  Replay(Find find, uint32_t threads) : find_(std::move(find)), helper_pool_(threads - 1) {}
  ~Replay() { static_cast<void>(Join()); }

  // Takes the next record of the log.
  //   kCorrupt          the record is malformed; `detail` is an offset in its payload
  //   kInvalidArgument  it needs a keyspace, function or version that there is not: see problem()
  //   kTooLarge         a key or value, of this record or one shortly before, exceeds the engine's
  //                     limit
  //   kOutOfMemory      the engine has no room
  Status Add(const LogRecord& record);
  // Applies the changes that are complete.
  Status Flush();
  // Applies the changes that are complete and drops the others. To be called at the end of the log.
  Status Finish();

  const std::string& problem() const { return problem_; }
  uint64_t records() const { return records_; }
  uint64_t changes() const { return changes_; }  // applied
  uint64_t dropped() const { return dropped_; }  // changes that never became complete
  uint64_t now_ms() const { return now_ms_; }    // the latest time that a batch had
  // The number of records that wait in memory. Records whose changes the target has already do not.
  size_t waiting() const;

  // The highest version of a keyspace that is in the log, including those of dropped changes.
  Version LastVersion(uint32_t keyspace) const;

 private:
  static constexpr uint32_t kShares = 32;

  struct Held {
    LogChange change;  // views of a payload
    uint32_t share;    // by its key
  };

  struct Keyspace {
    Target target;
    Version last = 0;
    Version complete = 0;
    size_t held_bytes = 0;
    std::vector<Held> held;
    std::deque<std::string> payloads;  // that `held` has views of
  };

  // Changes that are complete, to be applied to an engine in this order.
  struct Complete {
    Engine* engine = nullptr;
    std::vector<Held> changes;
    std::deque<std::string> payloads;  // that `changes` has views of
  };

  // Changes of single keys that are being applied. A thread that has drawn a share applies it.
  struct Job {
    Engine* engine = nullptr;
    std::array<std::vector<const LogChange*>, kShares> shares;
    std::array<Status, kShares> statuses;
    std::atomic<uint32_t> next{kShares};  // relaxed: the helper pool hands over the rest
  };

  Result<Keyspace*> KeyspaceOf(uint32_t index);
  Status Hold(std::string_view payload);
  Status Note(const Progress& progress);
  Status Apply(Keyspace& keyspace);
  static Complete TakeComplete(Keyspace& keyspace);
  Status ApplyAll();
  // The analysis does not follow that Join() gives back what ApplyKeys() may have taken.
  Status ApplyKeys(std::span<const Held> changes) SKEP_NO_THREAD_SAFETY_ANALYSIS;
  void DoShares();
  Status Join() SKEP_NO_THREAD_SAFETY_ANALYSIS;
  static Status ApplyAlone(Engine& engine, const LogChange& change);

  Find find_;
  std::map<uint32_t, Keyspace> keyspaces_;
  std::string problem_;
  uint64_t records_ = 0;
  uint64_t changes_ = 0;
  uint64_t dropped_ = 0;
  uint64_t now_ms_ = 0;
  Complete applied_;  // job_ has a part of its changes
  Job job_;
  const std::function<void()> do_shares_ = [this] { DoShares(); };
  bool has_help_ = false;
  HelperPool helper_pool_;  // last: its threads end first
};

}  // namespace skep::durable
