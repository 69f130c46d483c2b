#include "server/unordered_keys_task.h"

#include <memory>

#include "server/glob.h"
#include "server/server_call.h"

namespace skep {
namespace {

// Limits of one piece, during which other connections wait.
constexpr uint32_t kChunkVisits = 4096;
constexpr size_t kChunkBytes = 256 * 1024;

}  // namespace

void UnorderedKeysTask::Start(const ServerCall& call, std::string_view pattern) {
  auto task = std::unique_ptr<UnorderedKeysTask>(
      new UnorderedKeysTask(call.state().keyspaces().budget(), pattern));
  if (task->Step(call)) call.Start(std::move(task));
}

bool UnorderedKeysTask::Step(const ServerCall& call) {
  return is_collected_ ? collected_.Send(call) : Collect(call);
}

bool UnorderedKeysTask::Collect(const ServerCall& call) {
  Batch batch;
  batch.set_scan_visits_max(kChunkVisits);
  batch.set_scan_bytes_max(kChunkBytes);
  const uint32_t slot = batch.Walk(cursor_, {.keys_only = true});
  call.Execute(batch);
  if (call.Refused(batch)) return false;
  RespWriter writer(collected_.bytes(), call.session().protocol);
  for (const Item& item : batch.items(slot)) {
    if (!GlobMatch(pattern_, item.key)) continue;
    writer.Bulk(item.key);
    ++count_;
  }
  cursor_ = static_cast<uint64_t>(batch.outcome(slot).integer);
  if (!collected_.HasRoom(call)) return false;
  if (cursor_ != 0) return true;
  is_collected_ = true;
  call.reply().Array(count_);
  return collected_.Send(call);
}

}  // namespace skep
