// packed_session_fuzz_world.h: the server that packed_session_fuzz.cc talks to: one worker, three
// keyspaces, a simulated network without delays; time passes only when told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "keyspace/factory.h"
#include "server/server.h"
#include "server/watch_counting_engine.h"
#include "sim/simulation.h"

namespace skep::packed_session_fuzz {

// Releases writes at once, or, if it is late, only in ReleaseAll(). Batches with a work limit get a
// small one.
class LateEngine final : public WatchCountingEngine {
 public:
  using WatchCountingEngine::WatchCountingEngine;

  Version Execute(Batch& batch) override {
    constexpr size_t kWorkBytesMax = 64;
    const bool is_divided = batch.kind() == Batch::Kind::kUnordered;
    if (is_divided && batch.work_bytes_max() != SIZE_MAX) batch.set_work_bytes_max(kWorkBytesMax);
    return inner().Execute(batch);
  }
  void Release() override {
    if (!is_late_) ReleaseAll();
  }

  void set_late(bool is_late) { is_late_ = is_late; }
  void ReleaseAll() { WatchCountingEngine::Release(); }

 private:
  bool is_late_ = false;
};

class World {
 public:
  static constexpr uint32_t kKeyspaces = 3;
  static constexpr size_t kBufferBytes = 16 * 1024;  // buffers of a connection, each way
  static constexpr std::string_view kPassword = "sesame";

  explicit World(const EngineInfo& engine) : sim_(1, Quick()) {
    ServerOptions options;
    options.bind = {"127.0.0.1"};
    options.workers = 1;
    options.logfile = "log";
    options.databases = kKeyspaces;
    const Environment environment{sim_.clock(), sim_.random(), sim_.disk(), sim_.network()};
    server_ = std::make_unique<Server>(options, environment, &engine);
    SKEP_CHECK(server_->Start().ok());
  }

  // Empties the keyspaces, and begins a millisecond.
  void Reset(bool needs_password) {
    LetTimePass(1);
    for (uint32_t i = 0; i < kKeyspaces; ++i) {
      engine(i).set_late(false);
      Batch batch;
      batch.set_now_ms(now_ms());
      batch.DeleteAll();
      engine(i).Execute(batch);
      engine(i).ReleaseAll();
    }
    const OptionChange change{"requirepass", needs_password ? kPassword : ""};
    SKEP_CHECK(server_->SetOptions({&change, 1}).empty());
  }

  bool Turn() {
    sim_.clock().Advance(1);  // sent bytes arrive
    return server_->worker(0).Turn(0);
  }
  // Advances the clock until `ms` milliseconds have begun.
  void LetTimePass(uint64_t ms) {
    constexpr uint64_t kMs = 1'000'000;
    SimClock& clock = sim_.clock();
    clock.Advance(ms * kMs - clock.MonotonicNs() % kMs);
  }
  uint64_t now_ms() { return sim_.clock().WallMs(); }

  std::unique_ptr<Stream> Connect() { return std::move(*sim_.network().Connect(kAddress, 0)); }
  size_t connections() const { return server_->connections(); }
  LateEngine& engine(uint32_t keyspace) {
    return static_cast<LateEngine&>(server_->keyspaces().at(keyspace));
  }

 private:
  static constexpr const char* kAddress = "127.0.0.1:6379";
  static SimulationOptions Quick() {
    SimulationOptions options;
    options.network = {.buffer_bytes = kBufferBytes,
                       .delay_ns_min = 0,
                       .delay_ns_max = 0,
                       .segment_bytes_max = 1 << 20,
                       .short_writes_ppm = 0};
    return options;
  }

  Simulation sim_;
  std::unique_ptr<Server> server_;
};

}  // namespace skep::packed_session_fuzz
