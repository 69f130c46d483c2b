// piecemeal_engine.h: an engine that executes each unordered batch in pieces, like a caller that
// limits the work of a batch. For tests: nobody must see a difference.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "engine/batch_writer.h"
#include "engine/forwarding_engine.h"

namespace skep {

// Thread safety: none.
class PiecemealEngine final : public ForwardingEngine {
 public:
  // The limit of each piece is drawn below `work_bytes_max`.
  PiecemealEngine(std::unique_ptr<Engine> inner, uint64_t seed, size_t work_bytes_max)
      : ForwardingEngine(std::move(inner)), random_(seed), work_bytes_max_(work_bytes_max) {}

  Version Execute(Batch& batch) override {
    if (batch.kind() == Batch::Kind::kAtomic) return Pass(batch);
    batch.set_work_bytes_max(random_.Below(work_bytes_max_));
    Version ticket = Pass(batch);
    std::vector<uint32_t> left = Postponed(batch);
    BatchWriter out(batch, BatchWriter::KeepOutcomes());
    while (!left.empty()) {
      Batch piece;
      piece.set_now_ms(batch.now_ms());
      piece.set_snapshot(batch.snapshot());
      piece.set_scan_bytes_max(batch.scan_bytes_max());
      piece.set_scan_visits_max(batch.scan_visits_max());
      piece.set_work_bytes_max(random_.Below(work_bytes_max_));
      for (const uint32_t slot : left) piece.Add(batch.requests()[slot]);
      ticket = std::max(ticket, Pass(piece));
      const std::vector<uint32_t> again = Postponed(piece);
      SKEP_CHECK(again.size() < left.size());
      std::vector<uint32_t> kept;
      for (const uint32_t i : again) kept.push_back(left[i]);
      for (uint32_t i = 0; i < left.size(); ++i) {
        if (piece.outcome(i).verdict != Verdict::kPostponed) CopyOutcome(piece, i, out, left[i]);
      }
      left = std::move(kept);
      ++pieces_;
    }
    return ticket;
  }
  uint64_t pieces() const { return pieces_; }

 private:
  Version Pass(Batch& batch) {
    const Version ticket = inner().Execute(batch);
    Release();
    return ticket;
  }
  void Release() override {
    inner().Release();
    gate_.Release(inner().gate().released());
  }

  static std::vector<uint32_t> Postponed(const Batch& batch) {
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      if (batch.outcome(slot).verdict == Verdict::kPostponed) slots.push_back(slot);
    }
    SKEP_CHECK(slots.empty() || batch.work_bytes() > batch.work_bytes_max());
    return slots;
  }

  SeededRandom random_;
  const size_t work_bytes_max_;
  uint64_t pieces_ = 0;
};

}  // namespace skep
