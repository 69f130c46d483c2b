// message_task.h: messages of the packed protocol that are executed beside the worker
// (side_thread.h): those with much in them, and atomic ones that the engine leaves out of a turn
// because they would take long, or would wait for what does.
//
//   turn of the message   its bytes go into a job, with the batch that they are; the session gets
//                         the task
//   thread                the batch is executed, as a whole; the reply to a message that is marked
//                         is remembered (reply_memory.h), whether its connection still is or not
//   a later turn          the reply is encoded, and waits for its ticket as others do
//
// A message that is marked and whose job is never run was not executed: that is noted when the job
// ends, so the client may send it again.
//
// Thread safety: the owning worker only, but for the job (side_thread.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/message_replies.h"
#include "server/reply_memory.h"
#include "server/server_call.h"
#include "server/session.h"
#include "server/side_thread.h"
#include "skep/batch.h"
#include "wire/packed.h"

namespace skep {

class MessageTask final : public Task {
 public:
  // The bytes of a message from which it is executed beside the worker, whatever it asks for.
  static constexpr size_t kBytesMin = size_t{1} << 20;

  // Has the bytes of a message until it is posted, and then what becomes of it.
  class Job final : public SideJob {
   public:
    Job(const ServerHost& host, const packed::Header& header, Batch::Kind kind);
    ~Job() override;
    // Keeps the bytes that the requests of the batch view; once.
    std::string_view Keep(const ServerHost& host, std::string input);

    Batch batch;

   private:
    friend class MessageTask;

    void Run() override;

    const packed::Header header_;
    std::string input_;
    TurnContext& turn_;
    Engine& engine_;
    Version ticket_ = 0;
    ReplyMemory* memory_ = nullptr;  // null: the reply is not remembered
    uint64_t client_ = 0;
    bool is_run_ = false;
    std::shared_ptr<const std::string> remembered_;  // the reply
  };

  // `messages` must outlive the task.
  MessageTask(const ServerHost& host, const Session& session, MessageReplies& messages,
              std::shared_ptr<Job> job);

  bool Step(const ServerCall& call) override;
  int patience_ms() const override { return SideThread::kPatienceMs; }
  uint64_t held_bytes() const override { return job_->held_bytes(); }
  bool is_of_one_command() const override { return false; }
  bool waits_for_reader() const override { return false; }

 private:
  MessageReplies& messages_;
  const std::shared_ptr<Job> job_;
};

}  // namespace skep
