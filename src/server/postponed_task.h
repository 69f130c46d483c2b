// postponed_task.h: commands and messages that have more work than a turn has time for.
//
//   batch of the turn   sum   GET   sum   sum   PUT     requests of connections A and B
//                        A     B     A     A     B
//                       done  done  postponed: kWorkBytesMax is reached
//
//   task of A           the two sums, one piece a turn
//   task of B           PUT
//
// Work is what operations look at (Batch::work_bytes): 512 sums of a value of 64 MiB are few bytes
// and few operations. A batch stops when it has done so much. What it did not come to is taken over
// by a task of each connection, with the outcomes of what was done; the task executes the rest
// piece by piece, in order, and the turns of other connections come in between. Its own connection
// reads no further command meanwhile (session.h), so operations on one key keep their order. What
// a connection can delay others by is then a piece, and the one operation at its end: the largest
// value, 64 MiB.
//
// Replies. The commands of a connection that come behind one that is not complete are replied to
// behind it, though they may be done. A message is replied to when it is complete.
//
// Answers. Those of one command or message have kAnswerBytesMax together, whatever others of its
// batch have; operations beyond that are refused.
//
// If the connection breaks, what was not reached is never done. Of messages that are sent again
// (server/reply_memory.h) the reply then says so.
//
// A task with nothing in it lets others go before its connection goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.h"
#include "server/command.h"
#include "server/session.h"
#include "skep/batch.h"
#include "wire/packed.h"

namespace skep {

class MessageReplies;

class PostponedTask final : public Task {
 public:
  // Some slots of a batch that was executed.
  struct Slots {
    const Batch& batch;
    uint32_t first, count;
    uint32_t keyspace;
    Version ticket;
  };

  // Charges what it keeps to the budget. Both must outlive it.
  PostponedTask(MemoryBudget& budget, MessageReplies& messages)
      : budget_(budget), messages_(messages) {}
  ~PostponedTask() override { budget_.Release(charged_bytes_); }
  PostponedTask(const PostponedTask&) = delete;
  PostponedTask& operator=(const PostponedTask&) = delete;

  static bool HasPostponed(const Slots& slots);

  // What comes behind all that was added before. Requests, outcomes and words are copied.
  void AddCommand(const Command& command, std::span<const std::string_view> args,
                  const Slots& slots);
  void AddMessage(const packed::Header& header, const Slots& slots);
  void AddError(std::string_view text);

  bool Step(const ServerCall& call) override;
  void GiveUp(ServerState& state, Session& session) override;
  bool is_of_one_command() const override { return false; }
  uint64_t held_bytes() const override { return charged_bytes_; }

 private:
  // One reply.
  struct Reply {
    const Command* command = nullptr;  // null: a message, or an error
    std::optional<packed::Header> message;
    std::vector<std::string> args;  // of the command; of an error its text
    Batch batch;
    std::vector<uint32_t> left;  // slots that are postponed, ascending
    uint32_t keyspace = 0;
    Version ticket = 0;
  };

  Reply& Add(const Slots& slots);
  static void ExecutePiece(const ServerCall& call, Reply& reply);
  void Finish(const ServerCall& call, const Reply& reply);
  void ChargeAll();

  MemoryBudget& budget_;
  MessageReplies& messages_;
  std::deque<Reply> replies_;
  uint64_t charged_bytes_ = 0;
};

}  // namespace skep
