// Question: what do reads of a peer's memory cost, many at once and one after the other?
// Sketch:   mem, 64 of 64 B in one Post: a line each from DRAM and a page walk, of which a core has
//           ten and more under way: some tens of nanoseconds each. One at a time: a miss and a
//           walk, 100 to 300 ns. tcp, 64 a message: two system calls a side and message, 10 us and
//           more that 64 operations share, so some hundreds of nanoseconds each; 8 of these under
//           way share a system call, too.
// Compare:  `local` copies the same lines with the same look-ahead and no fabric: the floor of mem.
//           ofi:tcp, one fi_read each: a system call a side and read, and a wake-up of the target:
//           10 us at 0.1 to 0.2 M reads/s, whatever the depth.
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
#ifdef SKEP_OFI
#include "ofi/ofi_fabric.h"
#endif

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

  // In so many Posts, which are under way together.
  void Read(std::span<const Operation> reads, size_t posts = 1) {
    const size_t each = reads.size() / posts;
    for (size_t i = 0; i < posts; ++i) caller_->Post(peer_, i, reads.subspan(i * each, each));
    for (size_t done = 0; done < posts;) {
      for (const Event& event : caller_->Poll(-1)) {
        SKEP_CHECK(event.kind == Event::Kind::kDone && event.status.ok());
        ++done;
      }
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
    // No bytes read are so large; so that each Post begins after the one before.
    next = (next + depth + (local[0] >> 63)) % kReads;
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
  const auto posts = static_cast<size_t>(state.range(1));
  Measure(state, [&](std::span<const Operation> reads) { pair.Read(reads, posts); });
}

#ifdef SKEP_OFI
void BM_OfiTcp(benchmark::State& state) {
  const auto fabric = OfiFabric::Make("tcp").value();
  Pair pair(*fabric, "127.0.0.1:0");
  Measure(state, [&](std::span<const Operation> reads) { pair.Read(reads); });
}
BENCHMARK(BM_OfiTcp)->ArgName("depth")->Arg(1)->Arg(64)->UseRealTime();

void BM_OfiShm(benchmark::State& state) {
  const TemporaryDirectory directory;
  const auto fabric = OfiFabric::Make("shm").value();
  Pair pair(*fabric, "unix:" + directory.path() + "/shm");
  Measure(state, [&](std::span<const Operation> reads) { pair.Read(reads); });
}
BENCHMARK(BM_OfiShm)->ArgName("depth")->Arg(1)->Arg(64)->UseRealTime();
#endif

BENCHMARK(BM_Local)->ArgName("depth")->Arg(1)->Arg(64);
BENCHMARK(BM_Mem)->ArgName("depth")->Arg(1)->Arg(16)->Arg(64);
BENCHMARK(BM_Tcp)
    ->ArgNames({"depth", "posts"})
    ->Args({1, 1})
    ->Args({64, 1})
    ->Args({512, 8})
    ->UseRealTime();

}  // namespace
}  // namespace skep::rma
