#include "durable/durable_engine.h"

#include <algorithm>
#include <utility>

#include "durable/batch_changes.h"
#include "engine/partial_batch.h"

namespace skep::durable {
namespace {

bool Writes(const Batch& batch) {
  return std::ranges::any_of(batch.requests(), [](const Request& r) { return IsWrite(r.op); });
}

}  // namespace

DurableEngine::DurableEngine(std::unique_ptr<Engine> inner, uint32_t keyspace, Log& log)
    : ForwardingEngine(std::move(inner)), keyspace_(keyspace), log_(log) {
  log_.AddKeyspace(keyspace, this->inner(), gate_, synced_gate_);
}

Version DurableEngine::Execute(Batch& batch) {
  if (!Writes(batch)) return inner().Execute(batch);
  const Status why = log_.admits() ? Status() : log_.status();
  if (why.ok()) return ExecuteLogged(batch);
  return ExecutePartly(inner(), batch, [&](uint32_t slot) {
    return IsWrite(batch.requests()[slot].op) ? why : Status();
  });
}

Version DurableEngine::ExecuteLogged(Batch& batch) {
  static thread_local std::string record;
  constexpr size_t kKeptBytesMax = size_t{1} << 20;
  batch.set_notes_effects(true);
  const Log::Floor floor = log_.Enter(keyspace_);
  const Version ticket = inner().Execute(batch);
  record.clear();
  const ChangesWritten written = WriteChanges(batch, keyspace_, record);
  log_.Leave(keyspace_, floor, {.payload = record, .changes = written.count, .last = written.last});
  // Nobody waits for this batch now; others may have waited for it to leave.
  if (written.count == 0 && !gate_.IsReleased(inner().Latest())) log_.Publish();
  if (record.capacity() > kKeptBytesMax) std::string().swap(record);
  return ticket;
}

void DurableEngine::StartAfter(Version version, uint64_t now_ms) {
  inner().StartAfter(version, now_ms);
  gate_.Release(inner().Latest());
  synced_gate_.Release(inner().Latest());
}

bool DurableEngine::Maintain(uint64_t now_ms) {
  const bool more = inner().Maintain(now_ms);
  // What expired drew versions, too: those that wait for one of them may be waiting for this.
  if (!gate_.IsReleased(inner().Latest())) log_.Publish();
  return more;
}

void DurableEngine::Release() {
  inner().Release();
  log_.Publish();
}

void DurableEngine::WantSync(Version ticket, bool here) {
  inner().Release();
  log_.WantSync(keyspace_, ticket, here);
}

}  // namespace skep::durable
