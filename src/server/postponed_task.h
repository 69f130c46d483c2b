// postponed_task.h: commands and messages that have more work than a turn has time for.
//
//   batch of the turn   sum   GET   sum   sum   PUT     requests of connections A and B
//                        A     B     A     A     B
//                       done  done  postponed: kWorkBytesMax is reached
//
//   task of A           the two sums, one piece a turn
//   task of B           PUT
//
// Work is the bytes that operations look at (Batch::work_bytes): 512 sums of a value of 64 MiB are
// small and few requests. A batch stops when it has done kWorkBytesMax. A task of each connection
// takes over the requests that were not reached, with the outcomes of those that were; it executes
// the rest piece by piece, in order, and the turns of other connections come in between. Its own
// connection reads no further command meanwhile (session.h), so operations on one key keep their
// order. A connection can therefore delay others by a piece, and the one operation at its end: the
// largest value, 64 MiB.
//
// Replies. Commands of a connection that follow an incomplete one are replied to after it, though
// they may be done. A message is replied to when it is complete.
//
// Long calls. A read of a large collection that would be long is left out of the batch of the turn
// (Batch::set_portion_bytes_max), and so is a write of many of its members. A read is made here in
// portions if its command can do that (portions.h). All else of a command is executed as it is,
// beside the worker (side_thread.h); of a message, or if there is no such thread, by the worker.
//
// Answers. The answers of one command or message have a limit of kAnswerBytesMax of their own;
// operations beyond that are refused.
//
// If the connection breaks, requests that were not reached are never done. If a message is sent
// again (server/reply_memory.h), the reply says so.
//
// A task with nothing in it lets other connections go first.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.h"
#include "server/command.h"
#include "server/portions.h"
#include "server/session.h"
#include "server/side_thread.h"
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

  // Charges the bytes it keeps to the budget. Both arguments must outlive the task.
  PostponedTask(MemoryBudget& budget, MessageReplies& messages)
      : budget_(budget), messages_(messages) {}
  ~PostponedTask() override { budget_.Release(charged_bytes_); }
  PostponedTask(const PostponedTask&) = delete;
  PostponedTask& operator=(const PostponedTask&) = delete;

  static bool HasPostponed(const Slots& slots);

  // Append a command or message after all that were added before. Requests, outcomes and words are
  // copied.
  void AddCommand(const Command& command, std::span<const std::string_view> args,
                  const Slots& slots);
  void AddMessage(const packed::Header& header, const Slots& slots);
  void AddError(std::string_view text);

  bool Step(const ServerCall& call) override;
  void GiveUp(ServerState& state, Session& session) override;
  bool is_of_one_command() const override { return false; }
  uint64_t held_bytes() const override { return charged_bytes_ + pinned_bytes_; }
  void GiveUpPin() override;
  int patience_ms() const override;

 private:
  // A batch that is executed beside the worker.
  class SideBatch final : public SideJob {
   public:
    SideBatch(TurnContext& turn, Engine& engine, const Command& command)
        : turn_(turn), engine_(engine), command_(command) {}
    void Hold(MemoryBudget& budget) { SideJob::Hold(budget, batch.scratch().used()); }

    Batch batch;
    Version ticket = 0;

   private:
    void Run() override;

    TurnContext& turn_;
    Engine& engine_;
    const Command& command_;
  };
  // A reply that is still to be made.
  struct Reply {
    const Command* command = nullptr;  // null: a message, or an error
    std::optional<packed::Header> message;
    std::vector<std::string> args;  // words of the command; for an error its text
    Batch batch;
    std::vector<uint32_t> left;                // postponed slots, ascending
    bool is_long = false;                      // one was left out because its answer is long
    bool is_whole = false;                     // though that is long, it has no portions
    std::unique_ptr<PortionedReply> portions;  // makes the reply
    std::shared_ptr<SideBatch> aside;          // executes the first slots that are left
    bool waits = false;  // the last piece has done nothing: others have a turn at its keys
    uint32_t keyspace = 0;
    Version ticket = 0;
  };

  Reply& Add(const Slots& slots);
  static void ExecutePiece(const ServerCall& call, Reply& reply);
  static bool GoesAside(const ServerCall& call, const Reply& reply);
  static void TakeOver(Reply& reply, const Batch& piece, Version ticket);
  static bool StepPortions(const ServerCall& call, Reply& reply);
  void Finish(const ServerCall& call, const Reply& reply);
  static void EndReply(Session& session, size_t begin);
  void ChargeAll();

  MemoryBudget& budget_;
  MessageReplies& messages_;
  std::deque<Reply> replies_;
  uint64_t charged_bytes_ = 0;
  uint64_t pinned_bytes_ = 0;  // of values that replies refer to, which the engine has charged
};

}  // namespace skep
