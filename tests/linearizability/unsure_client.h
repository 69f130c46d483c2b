// unsure_client.h: a client of a store that is elsewhere.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "tests/linearizability/kv_client.h"

namespace skep::linearizability {

// A request that was refused may have been done: its answer may have been lost. Counts calls, and
// rests after each of them, so that a round lasts as long as what happens meanwhile.
class UnsureClient final : public KvClient {
 public:
  UnsureClient(std::unique_ptr<KvClient> inner, std::atomic<uint64_t>& calls,
               std::chrono::microseconds rest = {})
      : inner_(std::move(inner)), calls_(calls), rest_(rest) {}

  bool Supports(const Operation& operation) const override { return inner_->Supports(operation); }
  Reply Perform(Operation& operation) override {
    calls_.fetch_add(1, std::memory_order_relaxed);
    const Reply reply = inner_->Perform(operation);
    if (rest_.count() > 0) std::this_thread::sleep_for(rest_);
    return reply == Reply::kRefused ? Reply::kLost : reply;
  }

 private:
  const std::unique_ptr<KvClient> inner_;
  std::atomic<uint64_t>& calls_;
  const std::chrono::microseconds rest_;
};

}  // namespace skep::linearizability
