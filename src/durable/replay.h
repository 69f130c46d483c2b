// replay.h: does again what the log says was done.
//
// Changes wait until a progress record says that they are complete, then are applied in the order
// of their versions. What never gets complete is dropped: nobody was told of it.
//
// Changes of single keys that are complete are collected, and applied by several threads, each its
// share of the keys; a change of many keys waits for all before it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "durable/change.h"
#include "durable/log_reader.h"
#include "engine/engine.h"

namespace skep::durable {

// Thread safety: one owner.
class Replay {
 public:
  // The engine of a keyspace, and the version that it has already; null if there is no such
  // keyspace.
  struct Target {
    Engine* engine = nullptr;
    Version has = 0;
  };
  using Find = std::function<Target(uint32_t keyspace)>;

  Replay(Find find, uint32_t threads) : find_(std::move(find)), threads_(threads) {}

  // The next record of the log.
  //   kCorrupt          it is not what a record should be; `detail` is an offset in its payload
  //   kInvalidArgument  it needs what there is not: problem() says what
  //   kTooLarge         a key or value exceeds what the engine takes
  //   kOutOfMemory      the engine has no room
  Status Add(const LogRecord& record);
  // Applies what is complete now.
  Status Flush();
  // At the end of the log: the same, and the rest is dropped.
  Status Finish();

  const std::string& problem() const { return problem_; }
  uint64_t records() const { return records_; }
  uint64_t changes() const { return changes_; }  // applied
  uint64_t dropped() const { return dropped_; }  // changes that never got complete
  uint64_t now_ms() const { return now_ms_; }    // the latest that a batch had

  // The highest version of a keyspace that the log has spoken of, dropped ones included.
  Version LastVersion(uint32_t keyspace) const;

 private:
  struct Keyspace {
    Target target;
    Version last = 0;
    Version complete = 0;
    size_t held_bytes = 0;
    std::vector<Change> held;          // views of payloads
    std::deque<std::string> payloads;  // of what is held
  };

  // To be applied to an engine, in this order.
  struct Complete {
    Engine* engine = nullptr;
    std::vector<Change> changes;
    std::deque<std::string> payloads;  // what they are views of
  };

  Result<Keyspace*> KeyspaceOf(uint32_t index);
  Status Hold(std::string_view payload);
  Status Note(const Progress& progress);
  Status Apply(Keyspace& keyspace);
  static Complete TakeComplete(Keyspace& keyspace);
  Status ApplyAll(const Complete& complete) const;
  Status ApplyKeys(Engine& engine, std::span<const Change> changes) const;
  static Status ApplyAlone(Engine& engine, const Change& change);

  Find find_;
  const uint32_t threads_;
  std::map<uint32_t, Keyspace> keyspaces_;
  std::string problem_;
  uint64_t records_ = 0;
  uint64_t changes_ = 0;
  uint64_t dropped_ = 0;
  uint64_t now_ms_ = 0;
};

}  // namespace skep::durable
