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
  uint64_t held_bytes() const override { return charged_bytes_; }

 private:
  // A reply that is still to be made.
  struct Reply {
    const Command* command = nullptr;  // null: a message, or an error
    std::optional<packed::Header> message;
    std::vector<std::string> args;  // words of the command; for an error its text
    Batch batch;
    std::vector<uint32_t> left;  // postponed slots, ascending
    uint32_t keyspace = 0;
    Version ticket = 0;
  };

  Reply& Add(const Slots& slots);
  static void ExecutePiece(const ServerCall& call, Reply& reply);
  void Finish(const ServerCall& call, const Reply& reply);
  static void EndReply(Session& session, size_t begin);
  void ChargeAll();

  MemoryBudget& budget_;
  MessageReplies& messages_;
  std::deque<Reply> replies_;
  uint64_t charged_bytes_ = 0;
};

}  // namespace skep
