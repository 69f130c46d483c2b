// transaction.h: the commands of a connection between MULTI and EXEC, and the keys it watches.
//
//   MULTI     makes the session's Transaction
//   command   is checked and queued, with a copy of its words: +QUEUED. A command that can never
//             run dooms the transaction
//   EXEC      plans all queued commands into one atomic batch: the watched keys are its conditions,
//             each command is a part. Commands without a plan run while the replies are encoded
//   DISCARD   drops the transaction
//
// A transaction is of one keyspace, that of the session: SELECT is refused inside MULTI and while
// keys are watched.
//
// Reads of ranges see the earlier writes of the transaction, so they cannot be done piece by piece
// at a pinned version as outside. Each has a limit (kTransactionScan...); a read that exceeds it
// answers an error in its place.
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

// Limits of each range that a transaction reads: bytes of keys and values, and number of keys.
inline constexpr size_t kTransactionScanBytesMax = 16 << 20;
inline constexpr uint32_t kTransactionScanKeysMax = 1 << 20;
inline constexpr std::string_view kTransactionScanError =
    "ERR the range is too large to be read in a transaction (more than 16777216 bytes or 1048576 "
    "keys)";
static_assert(kTransactionScanBytesMax == 16777216 && kTransactionScanKeysMax == 1048576);

// The commands queued since MULTI.
class Transaction {
 public:
  // The memory of a queued command with these words.
  static size_t BytesOf(std::span<const std::string_view> args);

  // Does nothing once the transaction is doomed.
  void Add(const Command& command, std::span<const std::string_view> args);
  // A command can never run, so none will: empties the queue.
  void Doom();
  bool doomed() const { return doomed_; }

  size_t size() const { return queued_.size(); }
  // Whether a command of the queue may write.
  bool writes() const { return writes_; }
  // Whether EXEC may run on another thread: its commands are of data, or only reply.
  bool may_go_aside() const { return may_go_aside_; }
  // Whether a command of the queue looks at the whole of its keys (Command::kWhole).
  bool has_whole() const { return has_whole_; }
  // Memory of the queue.
  size_t bytes() const;

  // Calls visit(command, args) in the order of queueing. The arguments live as long as the
  // transaction.
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
  bool writes_ = false;
  bool may_go_aside_ = true;
  bool has_whole_ = false;
};

// How many keys a connection may watch: each is a condition to judge, and a copy of the key in the
// engine.
inline constexpr size_t kWatchesMax = 16 * 1024;
inline constexpr size_t kWatchedBytesMax = 16 << 20;  // of all watched keys

// The keys that a connection watches, all in one engine, which must outlive this object.
class WatchedKeys {
 public:
  WatchedKeys() = default;
  WatchedKeys(const WatchedKeys&) = delete;
  WatchedKeys& operator=(const WatchedKeys&) = delete;
  ~WatchedKeys() { Clear(); }

  // Watches all the keys or none. A key that is watched already stays watched from the first time
  // on.
  //   kTooLarge  there would be more than kWatchesMax keys, or more than kWatchedBytesMax bytes
  //   and the errors of Engine::Watch
  Status Add(Engine& engine, std::span<const std::string_view> keys, uint64_t now_ms);
  // Adds the condition that none has changed. The keys must stay watched until it is judged.
  void Require(Batch& batch) const;
  void Clear();
  // Takes over the watches of another connection's, which has none then. Requires that this has
  // none.
  void TakeOver(WatchedKeys& from);

  bool empty() const { return watches_.empty(); }
  size_t size() const { return watches_.size(); }
  // Memory of the keys here, about; the engine counts its own.
  size_t bytes() const { return bytes_; }
  static size_t BytesOf(std::string_view key);

 private:
  Engine* engine_ = nullptr;
  std::map<std::string, uint64_t, std::less<>> watches_;
  size_t key_bytes_ = 0;
  size_t bytes_ = 0;
};

}  // namespace skep
