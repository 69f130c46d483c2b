// transaction.h: what a connection says between MULTI and EXEC, and what it watches.
//
//   MULTI     makes the session's Transaction
//   command   is checked and queued, with a copy of its words: +QUEUED. One that can never run
//             dooms the transaction
//   EXEC      plans all queued commands into one atomic batch: the watched keys are its conditions,
//             each command is a part. Commands without a plan run while the replies are encoded
//   DISCARD   drops it
//
// A transaction is about one keyspace, that of the session: SELECT is refused inside MULTI and
// while keys are watched.
//
// Reads of ranges see the earlier writes of the transaction, so they cannot be done piece by piece
// at a pinned version as outside. What one of them may read is bounded (kTransactionScan...); one
// that would read more answers an error in its place.
//
// Thread safety: the owning worker only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "skep/batch.h"
#include "skep/status.h"

namespace skep {

struct Command;

// Of each range that a transaction reads: bytes of keys and values, and keys.
inline constexpr size_t kTransactionScanBytesMax = 16 << 20;
inline constexpr uint32_t kTransactionScanKeysMax = 1 << 20;
inline constexpr std::string_view kTransactionScanError =
    "ERR the range is too large to be read in a transaction (more than 16777216 bytes or 1048576 "
    "keys)";
static_assert(kTransactionScanBytesMax == 16777216 && kTransactionScanKeysMax == 1048576);

// The commands queued since MULTI.
class Transaction {
 public:
  // What queueing a command of these words costs.
  static size_t BytesOf(std::span<const std::string_view> args);

  // Does nothing once doomed.
  void Add(const Command& command, std::span<const std::string_view> args);
  // One command can never run, so none will: the queue is emptied.
  void Doom();
  bool doomed() const { return doomed_; }

  size_t size() const { return queued_.size(); }
  // Memory that the queue takes.
  size_t bytes() const;

  // Calls visit(command, args) in the order of queueing. The arguments live as long as this.
  template <typename Visit>
  void ForEach(Visit visit) {
    const std::span<const std::string_view> args = Args();
    for (const Queued& q : queued_) visit(*q.command, args.subspan(q.first_arg, q.arg_count));
  }

 private:
  struct Queued {
    const Command* command;
    size_t first_arg, arg_count;
  };

  std::span<const std::string_view> Args();

  std::vector<Queued> queued_;
  std::string words_;         // of all arguments, one after the other
  std::vector<size_t> ends_;  // of each argument in words_
  std::vector<std::string_view> args_;
  bool doomed_ = false;
};

// What a connection may watch: each watch is one more to be judged, and a copy of its key in the
// engine.
inline constexpr size_t kWatchesMax = 16 * 1024;
inline constexpr size_t kWatchedBytesMax = 16 << 20;  // of their keys

// The keys a connection watches, all in one engine, which must outlive this.
class WatchedKeys {
 public:
  WatchedKeys() = default;
  WatchedKeys(const WatchedKeys&) = delete;
  WatchedKeys& operator=(const WatchedKeys&) = delete;
  ~WatchedKeys() { Clear(); }

  // Watches all of them or none. One that is watched already stays watched from then on.
  //   kTooLarge  these would be more than kWatchesMax, or have more than kWatchedBytesMax
  //   and the errors of Engine::Watch
  Status Add(Engine& engine, std::span<const std::string_view> keys, uint64_t now_ms);
  // Makes it a condition that none has changed. The keys must stay watched until it is judged.
  void Require(Batch& batch) const;
  void Clear();

  bool empty() const { return watches_.empty(); }
  size_t size() const { return watches_.size(); }
  // Memory they take here, about; the engine counts its own.
  size_t bytes() const { return bytes_; }
  static size_t BytesOf(std::string_view key);

 private:
  Engine* engine_ = nullptr;
  std::map<std::string, uint64_t, std::less<>> watches_;
  size_t key_bytes_ = 0;
  size_t bytes_ = 0;
};

}  // namespace skep
