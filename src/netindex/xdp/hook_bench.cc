// Question: how many GETs can one core answer in the hook?
// Sketch:   parsing, two sums of some 100 bytes, a hash of two words, three look-ups in an array,
//           the answer's bytes: 150 to 250 ns, and two to three lines that miss the cache.
// Compare:  the same question for a key without an entry, which is what each datagram costs that
//           the hook does not answer; and a write that tells the map.
// The kernel times each run of the program, without driver or interface; the median counts. It has
// one timer's reading too much. Needs root to run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "netindex/xdp/testing/loaded_hook.h"

namespace skep::xdp {
namespace {

constexpr int kKeys = 4096;

std::string KeyAt(int number) { return "user:" + std::to_string(10'000'000 + number); }

// Runs each question once an iteration; a run changes its frame, so it is not repeated.
void TimeHook(benchmark::State& state, bool is_hit) {
  LoadedHook hook;
  if (const std::string problem = hook.Load(); !problem.empty()) {
    return state.SkipWithError(problem.c_str());
  }
  hook.map().TurnOn(2);
  std::vector<std::string> frames;
  for (int i = 0; i < kKeys; ++i) {
    if (is_hit && !hook.Fill(KeyAt(i), "sixteen bytes ..")) continue;
    frames.push_back(FrameOf(Question(KeyAt(i))));
  }
  std::vector<uint32_t> times;
  size_t at = 0;
  for (auto _ : state) {
    const auto result = hook.Run(frames[at++ * 7 % frames.size()]);
    if ((result.verdict == XDP_TX) != is_hit) return state.SkipWithError("the wrong verdict");
    times.push_back(result.ns);
  }
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  state.counters["program_ns"] = times[times.size() / 2];
}

void BM_Hit(benchmark::State& state) { TimeHook(state, true); }
void BM_Miss(benchmark::State& state) { TimeHook(state, false); }

// Measures what a PUT pays beside its own work: for a key with an entry, and for one without.
void BM_WillWrite(benchmark::State& state) {
  const bool has_entry = state.range(0) != 0;
  const auto memory = std::make_unique<XdpMap>();
  HotMap map(*memory, kInstance, 42);
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) {
    keys.push_back(KeyAt(i));
    if (has_entry) map.BeginFill(*KeyOf(0, keys.back()));
  }
  size_t at = 0;
  for (auto _ : state) map.WillWrite(0, keys[at++ * 7 % kKeys]);
}

BENCHMARK(BM_Hit)->Iterations(20'000)->Unit(benchmark::kNanosecond);
BENCHMARK(BM_Miss)->Iterations(20'000)->Unit(benchmark::kNanosecond);
BENCHMARK(BM_WillWrite)->ArgName("entry")->Arg(0)->Arg(1);

}  // namespace
}  // namespace skep::xdp
