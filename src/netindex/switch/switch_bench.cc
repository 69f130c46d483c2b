// Question: what does a packet cost in a switch?
// Sketch:   parsing and two checksums 20 to 30 ns; a fat root of 1024 ranges ten dependent steps in
//           8 KiB, about 30 ns; a layer one look-up and four steps in three lines, 20 to 30 ns.
// Compare:  a packet that is none of the switch's; the fat root alone; as a P4 switch looks.
// The kernel times each run, on frames in memory; what a switch writes does not keep the first hop
// from doing all again. Queries of 512 keys by turns, 64 runs each. Needs root to run.
#include <benchmark/benchmark.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "netindex/switch/switch_program.h"
#include "netindex/switch/testing/switch_world.h"

namespace skep::netindex {
namespace {

constexpr int kRepeat = 64;

// Of 64-bit keys spread evenly, 4 to a node: 1024 ranges, and layers below them;
// keys whose leaf they lead to.
TestSwitch MakeSwitch(uint16_t duties, uint32_t layers, std::vector<uint64_t>* keys) {
  std::mt19937_64 rng(1);
  std::vector<ServerLeaves> leaves(1);
  for (uint64_t i = 0; i < 1 << 16; ++i) {
    leaves[0].leaves.push_back({.first = i << 48, .address = 1ull << 48 | i, .hits = 1});
  }
  IndexTree tree = MakeIndexTree(leaves, 4);
  const FatRoot root = BuildFatRoot(tree, SWITCH_RANGES_MAX);
  const auto cached = CacheLayers(tree, root, layers, SWITCH_NODES_MAX);
  TestSwitch made(duties);
  SetServers(1, made.bank.get());
  WriteRoot(tree, root, made.bank.get());
  for (uint32_t i = 0; i < layers; ++i) WriteLayer(tree, cached[i], i, made.bank.get());
  while (keys->size() < 512) {
    const uint64_t key = rng();
    const uint64_t from = made.bank->root.address[SwitchRangeOf(&made.bank->root, key)];
    const bool is_found = SwitchDescend(made.bank.get(), 0, key, from) >> 48 != 0;
    if (layers == 0 || is_found) keys->push_back(key);
  }
  return made;
}

std::optional<SwitchProgram> Load(benchmark::State& state, const TestSwitch& host) {
  std::string problem;
  auto loaded = SwitchProgram::Load(*host.config, &problem);
  if (loaded && loaded->Install(*host.bank).ok()) return std::move(*loaded);
  state.SkipWithError(problem.c_str());
  return std::nullopt;
}

// The time of one run; nothing: the system refuses.
std::optional<uint32_t> TimeRuns(const SwitchProgram& program, const std::string& frame) {
  LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame.data(),
              .data_size_in = static_cast<uint32_t>(frame.size()), .repeat = kRepeat);
  if (bpf_prog_test_run_opts(program.program_fd(SwitchMode::kNative), &options) != 0) {
    return std::nullopt;
  }
  return options.duration;
}

void TimeSwitch(benchmark::State& state, uint16_t duties, uint32_t layers, bool is_query) {
  std::vector<uint64_t> keys;
  const TestSwitch host = MakeSwitch(duties, layers, &keys);
  const auto program = Load(state, host);
  if (!program) return;
  std::vector<uint32_t> times;
  size_t at = 0;
  for (auto _ : state) {
    std::string frame = GetFrame(KeyBytes(keys[at++ % keys.size()]));
    if (!is_query) Put(frame, SWITCH_UDP_TO, htons(kPort + 1));
    const auto ns = TimeRuns(*program, frame);
    if (!ns) return state.SkipWithError("it does not run");
    times.push_back(*ns);
  }
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  state.counters["program_ns"] = times[times.size() / 2];
  state.counters["least_ns"] = *std::ranges::min_element(times);
}

void BM_NoQuery(benchmark::State& state) { TimeSwitch(state, SWITCH_FIRST, 3, false); }
void BM_Root(benchmark::State& state) { TimeSwitch(state, SWITCH_FIRST, 0, true); }
void BM_RootAsP4(benchmark::State& state) {
  TimeSwitch(state, SWITCH_FIRST | SWITCH_AS_P4, 0, true);
}
void BM_RootAndLayers(benchmark::State& state) {
  TimeSwitch(state, SWITCH_FIRST | SWITCH_LAST, 3, true);
}
void BM_RootAndLayersAsP4(benchmark::State& state) {
  TimeSwitch(state, SWITCH_FIRST | SWITCH_LAST | SWITCH_AS_P4, 3, true);
}

BENCHMARK(BM_NoQuery)->Unit(benchmark::kNanosecond);
BENCHMARK(BM_Root)->Unit(benchmark::kNanosecond);
BENCHMARK(BM_RootAsP4)->Unit(benchmark::kNanosecond);
BENCHMARK(BM_RootAndLayers)->Unit(benchmark::kNanosecond);
BENCHMARK(BM_RootAndLayersAsP4)->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace skep::netindex
