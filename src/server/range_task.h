// range_task.h: replies that read a range of any size.
//
// A range that fits one chunk is answered at once. A larger one is pinned in a snapshot and
// answered in turns, in two passes, because a RESP array begins with its length: the first counts,
// the second sends. Memory stays bounded by a chunk and by the replies that the connection has not
// yet read; other connections are served between chunks; the whole reply is of one version.
//
// The pin ends with the task, or earlier: if the snapshot's age limit passes, if a write needs the
// memory that it holds back, or, while memory is scarce, if it holds some back and the client takes
// nothing for some seconds. That cannot be reported inside an array: the connection is closed.
//
// An engine that keeps one version of a key has nothing to pin. There each chunk is of an instant
// of its own: a key that is present all the while is counted, or sent, exactly once, any other key
// once or not at all. The items are collected before they are sent (collected_reply.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/collected_reply.h"
#include "server/command.h"
#include "server/item_types.h"
#include "server/session.h"
#include "skep/store.h"

namespace skep {

// A list of items is flat, but pairs of key and value are arrays in RESP3, as in ZRANGE WITHSCORES.
void ReplyItems(const Call& call, const ItemRange& items, bool with_values);
void ReplyItemsHead(const Call& call, size_t items, bool with_values);
void ReplyItem(RespWriter reply, const Item& item, bool with_values);

// The snapshot for a command that reads a range in turns; not valid if the engine keeps one version
// of a key. Errors: Engine::OpenSnapshot's.
Result<Snapshot> PinRange(const ServerCall& call);

class RangeTask final : public Task {
 public:
  struct Query {
    Range range;
    ScanOptions options;                           // `limit` counts items after the offset
    uint64_t offset = 0;                           // matching items to skip
    bool count_only = false;                       // reply with the number of items
    std::optional<std::string_view> pattern = {};  // only keys that match it (glob.h)
    std::optional<std::string_view> type = {};     // only values of this type, by its name

    bool has_filter() const { return pattern || type; }
  };

  // Replies, at once or over the next turns.
  static void Start(const ServerCall& call, const Query& query);

  bool Step(const ServerCall& call) override;
  void GiveUpPin() override { snapshot_ = Snapshot(); }
  uint64_t held_bytes() const override { return collected_.charged_bytes(); }

 private:
  RangeTask(Snapshot snapshot, MemoryBudget& budget, const Query& query);

  bool StepCount(const ServerCall& call);
  bool StepCountByScan(const ServerCall& call);
  bool StepSend(const ServerCall& call);
  bool StepCollect(const ServerCall& call);
  bool BeginSending(const ServerCall& call);
  bool Fail(const ServerCall& call, Status status);
  bool Matches(const Item& item, ItemTypes& types) const;
  uint32_t Scan(const ServerCall& call, Batch& batch, bool keys_only);
  void GoOnFrom(std::string_view bound);
  Range left() const { return {.lo = lo_, .hi = hi_, .unbounded = unbounded_}; }

  Snapshot snapshot_;  // not valid once it is given up
  const SnapshotRef ref_;
  const bool is_pinned_;  // false: the engine keeps one version of a key
  const std::string first_lo_, first_hi_;
  const bool first_unbounded_;
  const ScanOptions options_;
  const uint64_t offset_;
  const bool count_only_;
  const std::optional<std::string> pattern_;
  const std::optional<std::string> type_;

  bool sending_ = false;
  std::string lo_, hi_;  // the rest of the range in this pass
  bool unbounded_;
  uint64_t matched_ = 0;  // items found in this pass
  uint64_t to_send_ = 0;
  CollectedReply collected_;  // used without a snapshot
};

// Replies with the items of a scan of the query's whole range, those that the query asks for. If it
// asks for a type, the batch has noted effects.
void ReplyWanted(const Call& call, const Batch& batch, uint32_t slot,
                 const RangeTask::Query& query);

}  // namespace skep
