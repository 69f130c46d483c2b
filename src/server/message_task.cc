#include "server/message_task.h"

#include <utility>

#include "server/server_state.h"
#include "wire/packed_reply.h"

namespace skep {

MessageTask::Job::Job(const ServerHost& host, const packed::Header& header, Batch::Kind kind)
    : batch(kind),
      header_(header),
      turn_(host.side_turn()),
      engine_(host.state().keyspaces().at(header.keyspace)) {}

std::string_view MessageTask::Job::Keep(const ServerHost& host, std::string input) {
  input_ = std::move(input);
  constexpr size_t kSlotBytes = sizeof(Request) + sizeof(Outcome);
  Hold(host.state().keyspaces().budget(), input_.capacity() + header_.count * kSlotBytes);
  return input_;
}

MessageTask::Job::~Job() {
  if (memory_ != nullptr && !is_run_) memory_->Abandon(client_, header_.id);
}

void MessageTask::Job::Run() {
  is_run_ = true;
  turn_.BeginBeside();
  ticket_ = turn_.Execute(engine_, batch);
  if (memory_ == nullptr) return;
  std::string reply;
  packed::AppendReply(reply, header_, batch, 0, header_.count, turn_.now(),
                      packed::kReplyBytesMax / 2);
  memory_->Finish(client_, header_.id, reply, ticket_);
  remembered_ = std::make_shared<const std::string>(std::move(reply));
}

MessageTask::MessageTask(const ServerHost& host, const Session& session, MessageReplies& messages,
                         std::shared_ptr<Job> job)
    : messages_(messages), job_(std::move(job)) {
  if (job_->header_.has(packed::kRemember) && session.packed->client() != 0) {
    job_->memory_ = &host.state().replies();
    job_->client_ = session.packed->client();
  }
  host.side_thread().Post(job_);
}

bool MessageTask::Step(const ServerCall& call) {
  if (!job_->is_done()) return true;
  if (job_->remembered_ == nullptr) {
    messages_.Finish(call.session(), job_->header_, job_->batch, 0, job_->engine_, job_->ticket_);
  } else {
    messages_.Repeat(call.session(), job_->header_,
                     {.bytes = job_->remembered_, .ticket = job_->ticket_}, job_->engine_);
  }
  return false;
}

}  // namespace skep
