#include "durable/durable_engine.h"

#include <algorithm>
#include <new>
#include <utility>

#include "durable/batch_changes.h"
#include "engine/batch_writer.h"
#include "engine/only_reads.h"
#include "engine/partial_batch.h"

namespace skep::durable {
namespace {

// The bytes of a change beside its keys and values, at most.
constexpr uint64_t kChangeBytes = 64;
// The bytes of the changes of a range of keys: as many keys as a server asks for at a time.
constexpr uint64_t kRangeBytes = uint64_t{16} << 10;

constexpr bool Deletes(Op op) {
  return op == Op::kDelete || op == Op::kDeleteRange || op == Op::kDeleteAll;
}

struct Needs {
  Log::Need log;
  bool writes = false;
  bool deletes = false;
};

// Estimates the bytes of the batch's record: it may have fewer, and more where values are the
// result of a function or ranges are long.
Needs NeedsOf(const Batch& batch) {
  Needs needs;
  for (const Request& r : batch.requests()) {
    if (OnlyReads(r)) continue;
    needs.writes = true;
    (Deletes(r.op) ? needs.deletes : needs.log.stores) = true;
    needs.log.bytes += kChangeBytes + r.key.size() + r.value.size();
    if (r.op == Op::kMove || r.op == Op::kDeleteRange) needs.log.bytes += r.other.size();
    if (r.op == Op::kApply) needs.log.bytes += kValueBytesMore;
    if (r.op == Op::kExpireRange) needs.log.bytes += kRangeBytes;
  }
  return needs;
}

}  // namespace

DurableEngine::DurableEngine(std::unique_ptr<Engine> inner, uint32_t keyspace, Log& log)
    : ForwardingEngine(std::move(inner)),
      plain_gets_(PlainGetsOf(this->inner())),
      keyspace_(keyspace),
      log_(log) {
  const auto latest = [this] { return this->inner().Latest(); };
  log_.AddKeyspace(keyspace, latest, gate_, synced_gate_);
}

Version DurableEngine::Execute(Batch& batch) {
  const Needs needs = NeedsOf(batch);
  if (!needs.writes) return inner().Execute(batch);
  const auto floor = log_.Enter(keyspace_, needs.log);
  if (floor) return ExecuteLogged(batch, *floor);
  // The deletes of a batch may be let in without the writes that store; a transaction is let in as
  // a whole or not at all.
  const bool tries_again =
      needs.log.stores && needs.deletes && batch.kind() == Batch::Kind::kUnordered;
  Engine& rest = tries_again ? *this : inner();
  return ExecutePartly(rest, batch, [&](uint32_t slot) {
    const Request& r = batch.requests()[slot];
    const bool is_refused = !OnlyReads(r) && !(tries_again && Deletes(r.op));
    return is_refused ? floor.error() : Status();
  });
}

// The highest version that the batch may have drawn before it ran out of memory, or a higher one.
Version DurableEngine::LastOf(const Batch& batch) noexcept {
  try {
    inner().Release();
  } catch (const std::bad_alloc&) {  // the outcomes tell the versions of what was done
  }
  return std::max(inner().Latest(), BatchWriter::LastVersion(batch));
}

Version DurableEngine::ExecuteLogged(Batch& batch, Log::Floor floor) {
  static thread_local std::string record;
  constexpr size_t kKeptBytesMax = size_t{1} << 20;
  Version ticket = 0;
  ChangesWritten written;
  try {
    BatchWriter::Forget(batch);
    batch.set_notes_effects(true);
    ticket = inner().Execute(batch);
    record.clear();
    written = WriteChanges(batch, keyspace_, record);
    log_.Leave(keyspace_, floor,
               {.payload = record, .changes = written.count, .last = written.last});
  } catch (...) {
    log_.Abandon(floor, LastOf(batch));
    throw;
  }
  // A batch without changes has no reply that waits, but other batches may wait for it to leave.
  if (written.count == 0 && !gate_.IsReleased(inner().Latest())) log_.Publish();
  if (record.capacity() > kKeptBytesMax) std::string().swap(record);
  return ticket;
}

void DurableEngine::StartAfter(Version version, uint64_t now_ms) {
  inner().StartAfter(version, now_ms);
  gate_.Release(inner().Latest());
  synced_gate_.Release(inner().Latest());
}

// Expired keys are removed under versions of their own, for which readers of their leaf wait. So
// none are removed while the log releases no gate.
bool DurableEngine::Maintain(uint64_t now_ms) {
  if (!log_.writes()) return false;
  const bool more = inner().Maintain(now_ms);
  // Removing expired keys has drawn versions, too: a reply may wait for one of them.
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
