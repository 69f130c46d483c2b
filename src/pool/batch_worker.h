// batch_worker.h: executes batches on one session of a pool; pool_engine.h says how.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/batch_writer.h"
#include "engine/engine.h"
#include "pool/client_session.h"
#include "pool/item_writer.h"
#include "pool/lookup.h"
#include "pool/scan_reader.h"

namespace skep::pool {

class BatchWorker {
 public:
  // How often a write that depends on a value is tried.
  static constexpr uint32_t kTriesMax = 1000;

  // As PoolEngineOptions.
  BatchWorker(std::unique_ptr<ClientSession> session, size_t cache_entries, uint32_t scan_window);

  // Fills in the outcomes. What has not come about by the deadline is refused with kUnavailable.
  void Execute(Batch& batch, const EngineTraits& traits, uint64_t deadline_ns);
  // Asks the hash server for anything, so that the session knows whether it answers.
  void Probe(uint64_t deadline_ns);
  // Sees to it that the client is not forgotten and, if it is, that it can be fenced; seals what it
  // does not fill any more.
  void KeepAlive(uint64_t deadline_ns);
  ClientSession& session() { return *session_; }

 private:
  // Slots of points. Of one key there are several only if all of them read.
  using Group = std::vector<uint32_t>;

  // The points, so that a group has nothing that depends on a group behind it; and the ranges,
  // which are independent of all.
  std::vector<Group> GroupPoints(Group* ranges);
  // How many of these points, the first ones, are worked on side by side.
  size_t WindowOf(std::span<const uint32_t> slots) const;
  // GETs alone, which are in no order.
  bool IsPlainGets() const;
  void RunPlainGets();
  size_t WindowOfGets() const;
  void RunPoints(std::span<const uint32_t> slots);
  void LookUp(std::span<const uint32_t> slots);
  void PlanPlain(std::span<const uint32_t> slots);
  // False: the lookup has no answer, and the request is refused.
  bool HasAnswer(uint32_t slot, const Lookup& lookup);
  void AnswerGet(uint32_t slot, const Lookup& lookup);
  void Decide(uint32_t slot, const Lookup& lookup);
  void SettleWrites();
  void SettlePlain(uint32_t slot, const Write& write);

  const std::unique_ptr<ClientSession> session_;
  ItemFinder finder_;
  ItemWriter writer_;
  ScanReader scans_;

  // Of the batch that is being executed.
  Batch* batch_ = nullptr;
  const EngineTraits* traits_ = nullptr;
  BatchWriter* out_ = nullptr;
  std::vector<Lookup> lookups_;
  std::vector<uint32_t> lookup_slots_;
  std::vector<Write> writes_;
  std::vector<uint32_t> write_slots_;
  std::vector<uint32_t> again_;  // slots whose key was changed meanwhile
};

}  // namespace skep::pool
