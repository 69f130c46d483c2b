// Question: what do single requests of clients take while a memory server is drained, beside what
//           they take before, and what does a GET take while the server that has its item hangs?
// Sketch:   a drain copies chunks by reads and writes of 64 KiB in a thread of its own: it costs
//           others a part of the memory's and the processors' time, and no lock. A GET of a server
//           that hangs waits for 3 ms once in 100 ms (client_session.h), else for nobody.
// Compare:  the same clients in the same run, in turns: quiet, drain, quiet, drain ...
// Smoke:    CTest runs --benchmark_filter=Drain.*Mem so the file cannot rot.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/histogram.h"
#include "base/random.h"
#include "pool/client_session.h"
#include "pool/fields.h"
#include "pool/testing/pool_worlds.h"

namespace skep::pool {
namespace {

constexpr uint64_t kItems = 40'000;
constexpr size_t kValueBytes = 1000;
constexpr uint32_t kChunks = 256;  // of a server: what is written meanwhile does not fill them
constexpr uint32_t kFirst = 101;
constexpr int kClients = 2;
constexpr std::chrono::milliseconds kPhase(1000);

void Sleep(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

std::string KeyOf(uint64_t i) { return std::to_string(10'000'000 + i); }

// A pool with items, and clients that ask one request at a time, GETs and PUTs in turns.
template <typename World>
class BusyPool {
 public:
  enum Phase : uint8_t { kQuiet, kDisturbed, kPhases };
  struct Latencies {
    Histogram get, put;
  };

  BusyPool(uint32_t memory_servers, bool has_puts) : has_puts_(has_puts) {
    LocalPoolOptions options = PoolOptionsOf(world_, {});
    options.memory_servers = memory_servers;
    options.chunks = kChunks;
    options.has_agents = true;
    servers_ = std::make_unique<LocalPool>(world_.fabric, options);
    const auto engine = servers_->OpenEngine(kPatientEngine);
    Batch batch;
    for (uint64_t i = 0; i < kItems; i += 64) {
      batch.Clear();
      std::vector<std::string> keys;
      for (uint64_t j = i; j < std::min(i + 64, kItems); ++j) keys.push_back(KeyOf(j));
      for (const std::string& key : keys) batch.Put(key, value_);
      engine->Execute(batch);
      for (uint32_t j = 0; j < keys.size(); ++j) SKEP_CHECK(batch.outcome(j).status.ok());
    }
    latencies_.resize(kClients);
    for (int i = 0; i < kClients; ++i) clients_.emplace_back([this, i] { RunClient(i); });
  }
  ~BusyPool() {
    stops_ = true;
    for (std::thread& client : clients_) client.join();
  }

  LocalPool& servers() { return *servers_; }
  void set_phase(Phase phase) { phase_ = phase; }
  // Drains the server, and returns when it has nothing any more.
  void Drain(uint32_t server) {
    ClientSession session(world_.fabric.Open({}).value(), SystemClock(),
                          [this] { return servers_->map(); });
    session.set_deadline_ns(session.now_ns() + 10'000'000'000);
    std::string request(1, static_cast<char>(MessageKind::kDrain));
    AppendVarint(request, server);
    ReplyCode code;
    SKEP_CHECK(session.Call(ClientSession::To::kHashServer, request, &code).has_value());
    for (bool is_drained = false; !is_drained; Sleep(std::chrono::milliseconds(5))) {
      servers_->Do(1, [&](IndexServer& at) {
        is_drained =
            at.state()->chunks().FindServer(server)->state == Chunks::ServerState::kDrained;
      });
    }
  }
  // Ends the clients, and tells what their requests took.
  void Report(benchmark::State& state) {
    stops_ = true;
    for (std::thread& client : clients_) client.join();
    clients_.clear();
    std::array<Latencies, kPhases> all;
    for (const auto& of_client : latencies_) {
      for (int phase = 0; phase < kPhases; ++phase) {
        all[phase].get.Merge(of_client[phase].get);
        all[phase].put.Merge(of_client[phase].put);
      }
    }
    Report(state, "get", all[kQuiet].get, all[kDisturbed].get);
    if (has_puts_) Report(state, "put", all[kQuiet].put, all[kDisturbed].put);
  }

 private:
  static void Report(benchmark::State& state, const std::string& name, const Histogram& quiet,
                     const Histogram& disturbed) {
    const auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1e3; };
    for (const auto& [text, fraction] : {std::pair("p50", 0.5), {"p99", 0.99}, {"p999", 0.999}}) {
      const uint64_t before = quiet.Quantile(fraction);
      const uint64_t meanwhile = disturbed.Quantile(fraction);
      state.counters[name + "_" + text + "_us"] = us(before);
      state.counters[name + "_" + text + "_disturbed_us"] = us(meanwhile);
    }
    state.counters[name + "_max_disturbed_us"] = us(disturbed.max());
  }
  void RunClient(int number) {
    const auto engine = servers_->OpenEngine({.timeout_ms = 100'000, .cache_entries = 0});
    SeededRandom random(static_cast<uint64_t>(number) + 1);
    Batch batch;
    for (bool puts = false; !stops_; puts = has_puts_ && !puts) {
      const std::string key = KeyOf(random.Below(kItems));
      const Phase phase = phase_;
      batch.Clear();
      puts ? batch.Put(key, value_) : batch.Get(key);
      const uint64_t begin_ns = SystemClock().MonotonicNs();
      engine->Execute(batch);
      const uint64_t ns = SystemClock().MonotonicNs() - begin_ns;
      SKEP_CHECK(batch.outcome(0).status.ok());
      Latencies& to = latencies_[number][std::max(phase, phase_.load())];
      (puts ? to.put : to.get).Record(ns);
    }
  }

  const bool has_puts_;
  const std::string value_ = std::string(kValueBytes, 'v');
  World world_;
  std::unique_ptr<LocalPool> servers_;
  std::atomic<bool> stops_{false};
  std::atomic<Phase> phase_{kQuiet};
  std::vector<std::array<Latencies, kPhases>> latencies_;  // by client: its own thread's
  std::vector<std::thread> clients_;
};

// Each iteration drains one of three servers, after a quiet second; then another one comes.
template <typename World>
void BM_Drain(benchmark::State& state) {
  using Pool = BusyPool<World>;
  Pool pool(3, true);
  uint32_t server = kFirst;
  for (auto _ : state) {
    pool.set_phase(Pool::kQuiet);
    Sleep(kPhase);
    pool.set_phase(Pool::kDisturbed);
    pool.Drain(server);
    pool.set_phase(Pool::kQuiet);
    pool.servers().KillMemoryServer(server);
    pool.servers().AddMemoryServer(server + 3);
    ++server;
  }
  pool.Report(state);
}

// Each iteration has a server hang for so many milliseconds ten times, every 200.
void BM_Hang(benchmark::State& state) {
  using Pool = BusyPool<TcpWorld>;
  const std::chrono::milliseconds hangs(state.range(0));
  Pool pool(2, false);
  for (auto _ : state) {
    pool.set_phase(Pool::kQuiet);
    Sleep(kPhase);
    for (int i = 0; i < 10; ++i) {
      pool.set_phase(Pool::kDisturbed);
      pool.servers().Do(kFirst, [&](MemoryServer&) { Sleep(hangs); });
      pool.set_phase(Pool::kQuiet);
      Sleep(std::chrono::milliseconds(200));
    }
  }
  pool.Report(state);
}

BENCHMARK(BM_Drain<MemWorld>)->Iterations(3)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Drain<TcpWorld>)->Iterations(3)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Hang)->ArgName("ms")->Arg(20)->Arg(200)->Iterations(3)->UseRealTime()->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace skep::pool
