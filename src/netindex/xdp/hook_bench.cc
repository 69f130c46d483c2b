// Question: how many GETs can one core answer in the hook?
// Sketch:   parsing, two sums of some 100 bytes, a hash of two words, three look-ups in an array,
//           the answer's bytes: 150 to 250 ns, and two to three lines that miss the cache.
// Compare:  the same question for a key without an entry, which is what each datagram costs that
//           the hook does not answer; and a write that tells the map.
// BM_Hit and BM_Miss: the kernel times each run of the program, without driver or interface; the
// median counts. It has one timer's reading too much, and is cold, behind a system call.
// BM_Stream: questions that a program makes and the hook answers, one behind the other on one core;
// BM_Made beside it: they are made and dropped. What is between the two is the hook's.
// BM_LiveFrames: frames that are made, cross a pair of interfaces to the hook in a driver, are
// answered and cross back to where they are dropped: all of it on the core that the benchmark has
// (taskset). Needs root to run.
#include <benchmark/benchmark.h>
#include <net/if.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "netindex/bpf/bpf_program.h"
#include "netindex/xdp/testing/loaded_hook.h"
#include "netindex/xdp/testing/questions.h"

SKEP_EMBED(skep_xdp_questions, SKEP_XDP_QUESTIONS_PROGRAM);

namespace skep::xdp {
namespace {

constexpr int kKeys = XDP_QUESTIONS;
constexpr uint32_t kFrames = 100'000;  // a run of the kernel's

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

// Questions that the kernel makes, and the hook, whose map has all their keys.
class Stream {
 public:
  // Why it cannot be had; empty: it can. Sends to this interface, if it is not 0.
  std::string Load(uint32_t interface) {
    std::string problem = hook_.Load();
    if (!problem.empty()) return problem;
    const XdpQuestionsConfig config = {.interface = interface, .unused = 0};
    auto loaded = netindex::BpfProgram::Load({skep_xdp_questions, skep_xdp_questions_end},
                                             std::as_bytes(std::span(&config, 1)), &problem);
    if (!loaded) return problem;
    programs_.emplace(std::move(*loaded));
    hook_.map().TurnOn(2);
    const uint32_t first = 0;
    const int hook = hook_.hook().program_fd();
    bpf_map_update_elem(programs_->MapNamed("hook"), &first, &hook, BPF_ANY);
    int number = 0;
    for (uint32_t i = 0; i < XDP_QUESTIONS; ++i) {
      while (!hook_.Fill(KeyAt(number), "sixteen bytes ..")) ++number;  // its set is full
      const std::string frame = FrameOf(Question(KeyAt(number++)));
      XdpQuestion question{};
      std::memcpy(&question, frame.data(), std::min(frame.size(), sizeof(question)));
      bpf_map_update_elem(programs_->MapNamed("questions"), &i, &question, BPF_ANY);
    }
    return "";
  }
  // Runs one of the programs for kFrames frames. Returns the nanoseconds of each; 0: it does not
  // run.
  uint32_t Run(const char* program, uint32_t flags) {
    const std::string frame(sizeof(XdpQuestion), '\0');
    LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame.data(),
                .data_size_in = static_cast<uint32_t>(frame.size()),
                .repeat = static_cast<int>(kFrames), .flags = flags);
    const int run = bpf_prog_test_run_opts(programs_->ProgramNamed(program), &options);
    return run == 0 ? std::max(options.duration, 1u) : 0;
  }
  // Attaches one of the programs to the driver's hook of an interface.
  FileDescriptor Attach(const char* program, const char* interface) const {
    return FileDescriptor(bpf_link_create(programs_->ProgramNamed(program),
                                          static_cast<int>(if_nametoindex(interface)), BPF_XDP,
                                          nullptr));
  }
  LoadedHook& hook() { return hook_; }

 private:
  LoadedHook hook_;
  std::optional<netindex::BpfProgram> programs_;
};

void TimeStream(benchmark::State& state, const char* program, bool hits) {
  Stream stream;
  if (const std::string problem = stream.Load(0); !problem.empty()) {
    return state.SkipWithError(problem.c_str());
  }
  std::vector<uint32_t> times;
  for (auto _ : state) {
    times.push_back(stream.Run(program, 0));
    if (times.back() == 0) return state.SkipWithError("it does not run");
  }
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  state.counters["program_ns"] = times[times.size() / 2];
  state.counters["least_ns"] = *std::ranges::min_element(times);
  const auto runs = static_cast<uint64_t>(state.iterations());
  if (stream.hook().map().statistics().hits != (hits ? runs * kFrames : 0)) {
    state.SkipWithError("not each question was answered");
  }
}

void BM_Made(benchmark::State& state) { TimeStream(state, "make", false); }
void BM_Stream(benchmark::State& state) { TimeStream(state, "ask", true); }

void BM_LiveFrames(benchmark::State& state) {
  static const bool has_network =
      unshare(CLONE_NEWNET) == 0 &&
      std::system(
          "ip link add near type veth peer name far && ip link set near up && "
          "ip link set far up") == 0;
  if (!has_network) return state.SkipWithError("no interfaces of its own");
  Stream stream;
  if (const std::string problem = stream.Load(if_nametoindex("near")); !problem.empty()) {
    return state.SkipWithError(problem.c_str());
  }
  const FileDescriptor sink = stream.Attach("sink", "near");
  const auto far = stream.hook().hook().Attach(if_nametoindex("far"), Mode::kNative);
  if (!sink.valid() || !far) return state.SkipWithError("the driver takes no programs");
  for (auto _ : state) {
    if (stream.Run("send", BPF_F_TEST_XDP_LIVE_FRAMES) == 0) {
      return state.SkipWithError("the kernel has no live frames");
    }
  }
  const auto hits = static_cast<int64_t>(stream.hook().map().statistics().hits);
  state.counters["answered_share"] =
      static_cast<double>(hits) / static_cast<double>(state.iterations() * kFrames);
  state.SetItemsProcessed(hits);
}

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
BENCHMARK(BM_Made)->Iterations(50)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Stream)->Iterations(50)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_LiveFrames)->Iterations(20)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_WillWrite)->ArgName("entry")->Arg(0)->Arg(1);

}  // namespace
}  // namespace skep::xdp
