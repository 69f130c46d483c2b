#include "tools/cli/store_pipeline.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "tools/cli/store_commands.h"
#include "tools/cli/store_link.h"

namespace skep::cli {
namespace {

// Limits of a batch. Larger ones gain nothing, and the server's other connections wait for them.
constexpr size_t kOperationsMax = 512;
constexpr size_t kBytesMax = 128 * 1024;
// Batches under way: enough for the server to have the next one when it has done one.
constexpr size_t kBatchesMax = 8;

}  // namespace

// Not for SET.
void StorePipeline::Execute(skep::Session&, Batch&, std::span<const PlannedCommand>) {
  SKEP_CHECK(false);
}

std::string StorePipeline::Select(uint64_t db) {
  if (!Finish()) return status_.ToString();
  if (!HasKeyspace(store_, db)) return std::string(kNoSuchKeyspace);
  session_.keyspace = static_cast<uint32_t>(db);
  return {};
}

bool StorePipeline::Send(std::span<const std::string_view> args, std::string name) {
  SKEP_CHECK(FindCommand(args[0]) == &set_ && AcceptsCount(set_.arity, args.size()));
  Batch& batch = filled_->batch;
  std::vector<std::string_view> words;
  size_t bytes = 0;
  for (const std::string_view arg : args) {
    words.push_back(batch.scratch().Copy(arg));
    bytes += arg.size();
  }
  now_ = {.ms = SystemClock().WallMs()};
  const Plan plan = set_.plan(Call(*this, session_, set_, words), batch);
  if (plan.kind != Plan::Kind::kError) return NoteAdded(std::move(name), bytes);
  const RespReply error = {.type = RespReply::Type::kError, .text = std::string(plan.error)};
  if (!Finish()) return false;
  on_reply_(name, error);
  return true;
}

bool StorePipeline::Set(const DumpItem& item, std::string name) {
  Batch& batch = filled_->batch;
  batch.Add({.op = Op::kPut,
             .key = batch.scratch().Copy(item.key),
             .value = batch.scratch().Copy(item.value),
             .other = {},
             .deadline_ms = item.deadline_ms});
  return NoteAdded(std::move(name), item.key.size() + item.value.size());
}

bool StorePipeline::NoteAdded(std::string name, size_t bytes) {
  filled_->names.push_back(std::move(name));
  filled_->bytes += bytes;
  const bool is_full = filled_->names.size() >= kOperationsMax || filled_->bytes >= kBytesMax;
  return !is_full || BeginFilled();
}

// Sends the batch that was filled. Returns false if a batch under way has failed.
bool StorePipeline::BeginFilled() {
  if (!filled_->names.empty()) {
    filled_->future =
        std::make_unique<BatchFuture>(store_.Begin(filled_->batch, session_.keyspace));
    under_way_.push_back(std::move(filled_));
    if (unused_.empty()) unused_.push_back(std::make_unique<Sent>());
    filled_ = std::move(unused_.back());
    unused_.pop_back();
  }
  return under_way_.size() < kBatchesMax || AwaitOldest();
}

bool StorePipeline::Finish() {
  bool is_ok = BeginFilled();
  while (is_ok && !under_way_.empty()) is_ok = AwaitOldest();
  return is_ok;
}

bool StorePipeline::AwaitOldest() {
  Sent& sent = *under_way_.front();
  status_ = sent.future->Wait();
  const Outcome& first = sent.batch.outcome(0);
  // When the connection breaks, every slot has that status.
  if (first.verdict == Verdict::kRefused && first.status.code() == Code::kUnavailable) {
    status_ = first.status;
  }
  if (!status_.ok()) return false;
  for (uint32_t slot = 0; slot < sent.names.size(); ++slot) {
    on_reply_(sent.names[slot], ReplyOf(sent.batch, slot));
  }
  sent.batch.Clear();
  sent.names.clear();
  sent.bytes = 0;
  unused_.push_back(std::move(under_way_.front()));
  under_way_.pop_front();
  return true;
}

RespReply StorePipeline::ReplyOf(const Batch& batch, uint32_t slot) {
  set_.finish(Call(*this, session_, set_, {}), batch, slot);
  RespReply reply = cli::ReplyOf(session_.out);
  session_.out.clear();
  return reply;
}

size_t StorePipeline::unanswered() const {
  size_t count = filled_->names.size();
  for (const auto& sent : under_way_) count += sent->names.size();
  return count;
}

}  // namespace skep::cli
