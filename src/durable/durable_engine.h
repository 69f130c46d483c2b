// durable_engine.h: an engine whose writes are logged before they are answered.
//
// It forwards to the engine it wraps, but has a gate of its own: a version is released when the
// writes up to it are in the log, as far as the policy of the log says (log.h). A batch that may
// write enters the log, is executed, and leaves a record of what it has changed: for each write
// that was done what it stored, erased or was to do (log_change.h).
//
// A write that the log does not let in (it cannot be written, or the disk is full) is refused with
// the log's error: kIo, with the errno; the rest of its batch is executed. On a full disk deletes
// are let in longer than writes that store (log.h).
#pragma once

#include <memory>
#include <string>

#include "durable/log.h"
#include "engine/forwarding_engine.h"
#include "engine/plain_gets.h"

namespace skep::durable {

class DurableEngine final : public ForwardingEngine, public PlainGets {
 public:
  // Wraps an engine that has versions or numbers its writes. The log must outlive it.
  DurableEngine(std::unique_ptr<Engine> inner, uint32_t keyspace, Log& log);

  Version Execute(Batch& batch) override;
  // The log knows no reads.
  std::optional<Version> GetPlain(std::string_view key,
                                  std::optional<std::string>* value) override {
    return plain_gets_ != nullptr ? plain_gets_->GetPlain(key, value) : std::nullopt;
  }
  Version GetManyPlain(std::span<const std::string_view> keys, std::span<GetAnswer> answers,
                       PlainValues values) override {
    return plain_gets_ != nullptr ? plain_gets_->GetManyPlain(keys, answers, values) : 0;
  }
  // The gates are released up to the version: all that the engine has is in the log, or in a
  // snapshot.
  void StartAfter(Version version, uint64_t now_ms) override;
  bool Maintain(uint64_t now_ms) override;
  void Release() override;

  ReleaseGate& synced_gate() override { return synced_gate_; }
  void WantSync(Version ticket, bool here) override;
  bool syncs_to_release() const override { return log_.policy() == LogSync::kAlways; }

 private:
  Version LastOf(const Batch& batch) noexcept;
  Version ExecuteLogged(Batch& batch, Log::Floor floor);

  PlainGets* const plain_gets_;  // of the wrapped engine; null: it has none
  const uint32_t keyspace_;
  Log& log_;
  ReleaseGate synced_gate_;
};

}  // namespace skep::durable
