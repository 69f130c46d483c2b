// Question: what do reads of a peer's memory cost, many at once and one after the other?
// Sketch:   mem, 64 of 64 B in one Post: a line each from DRAM and a page walk, of which a core has
//           ten and more under way: some tens of nanoseconds each. One at a time: a miss and a walk,
//           100 to 300 ns. tcp, 64 a message: two system calls a side and message, 10 us and more
//           that 64 operations share, so some hundreds of nanoseconds each.
// Compare:  `local` copies the same lines with the same look-ahead and no fabric: the floor of mem.
// Smoke:    CTest runs --benchmark_filter=depth:1(/|$) so the file cannot rot.
#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/prefetch.h"
#include "base/temporary_directory_test.h"
#include "rma/mem_fabric.h"
#include "rma/tcp_fabric.h"
#include "rma/word_copy.h"

namespace skep::rma {
namespace {

constexpr size_t kRegionBytes = size_t{1} << 30;
constexpr uint32_t kReadBytes = 64;
constexpr size_t kReads = size_t{1} << 20;  // drawn before the clock starts

SharedMemory& Memory() {
  static SharedMemory memory = [] {
    auto made = SharedMemory::Create(kRegionBytes, SharedPages::kTransparent);
    SKEP_CHECK(made.has_value());
    for (size_t at = 0; at < kRegionBytes; at += 4096) made->begin()[at] = std::byte{1};
    return std::move(*made);
  }();
  return memory;
}

std::vector<Operation> RandomReads(std::vector<uint64_t>& local, size_t depth) {
  std::mt19937_64 random(1);
  std::vector<Operation> reads(kReads);
  for (size_t i = 0; i < kReads; ++i) {
    reads[i] = {.offset = random() % (kRegionBytes / kReadBytes) * kReadBytes,
                .bytes = kReadBytes,
                .local = &local[i % depth * (kReadBytes / 8)]};
  }
  return reads;
}

// An endpoint that is polled by a thread, and one that is connected to it.
class Pair {
 public:
  Pair(Fabric& fabric, const Address& address)
      : target_(std::move(
            *fabric.Open({.listen = address, .regions = {{&Memory(), Access::kReadWrite}}}))),
        caller_(std::move(*fabric.Open({}))),
        thread_([this] {
          while (!is_done_) target_->Poll(-1);
        }) {
    peer_ = *caller_->Connect(target_->address(), 10'000);
    while (caller_->Poll(-1).empty()) {
    }
  }
  ~Pair() {
    is_done_ = true;
    target_->Wake();
    thread_.join();
  }

  void Read(std::span<const Operation> reads) {
    caller_->Post(peer_, 1, reads);
    for (;;) {
      const auto events = caller_->Poll(-1);
      if (events.empty()) continue;
      SKEP_CHECK(events[0].kind == Event::Kind::kDone && events[0].status.ok());
      return;
    }
  }

 private:
  std::unique_ptr<Endpoint> target_;
  std::unique_ptr<Endpoint> caller_;
  PeerId peer_ = 0;
  std::atomic<bool> is_done_ = false;
  std::thread thread_;
};

// Calls read(a span of reads) again and again.
template <typename Function>
void Measure(benchmark::State& state, Function read) {
  const auto depth = static_cast<size_t>(state.range(0));
  std::vector<uint64_t> local(depth * kReadBytes / 8);
  const std::vector<Operation> reads = RandomReads(local, depth);
  size_t next = 0;
  for (auto _ : state) {
    read(std::span(reads).subspan(next, depth));
    next = (next + depth) % kReads;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetLabel(std::string(NameOf(Memory().pages())));
}

void BM_Local(benchmark::State& state) {
  const std::byte* const begin = Memory().begin();
  Measure(state, [&](std::span<const Operation> reads) {
    for (const Operation& r : reads) FetchLine(begin + r.offset);
    for (const Operation& r : reads) ReadWords(begin + r.offset, r.local, r.bytes);
  });
}

void BM_Mem(benchmark::State& state) {
  const TemporaryDirectory directory;
  MemFabric fabric;
  Pair pair(fabric, "unix:" + directory.path() + "/mem");
  Measure(state, [&](std::span<const Operation> reads) { pair.Read(reads); });
}

void BM_Tcp(benchmark::State& state) {
  TcpFabric fabric(SocketNetwork(), SystemClock());
  Pair pair(fabric, "127.0.0.1:0");
  Measure(state, [&](std::span<const Operation> reads) { pair.Read(reads); });
}

BENCHMARK(BM_Local)->ArgName("depth")->Arg(1)->Arg(64);
BENCHMARK(BM_Mem)->ArgName("depth")->Arg(1)->Arg(16)->Arg(64);
BENCHMARK(BM_Tcp)->ArgName("depth")->Arg(1)->Arg(64)->Arg(1024)->UseRealTime();

}  // namespace
}  // namespace skep::rma
