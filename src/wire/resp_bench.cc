// Question: does the codec cost less than the cache miss of the operation it carries?
// Sketch:   a GET is 3 length lines and 2 arguments, about 40 bytes. A length line is 4 bytes: a
//           compare, a loop of one or two digits and a mispredicted exit, about 5 ns; an argument
//           is one store of 16 bytes. So 15 to 20 ns a GET, 20 to 25 ns a SET, all in L1 and L2.
//           A bulk of 100 bytes is one growth check, 3 digits and one copy: about 10 ns. A DRAM
//           miss is 100 ns.
// Compare:  copying the same bytes (BM_Copy), which every reader of a request has to touch.
// Smoke:    CTest runs the cases of 16 commands or replies.

#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "wire/resp_decoder.h"
#include "wire/resp_reply.h"
#include "wire/resp_writer.h"

namespace skep {
namespace {

constexpr uint64_t kSeed = 1;

// `count` commands: GETs, or SETs of values of value_bytes if that is not 0. Keys of 16 bytes.
std::string Pipeline(int64_t count, size_t value_bytes) {
  SeededRandom random(kSeed);
  const std::string value(value_bytes, 'v');
  std::string out;
  for (int64_t i = 0; i < count; ++i) {
    const std::string key = "user" + std::to_string(100'000'000'000 + random.Below(1'000'000'000));
    if (value_bytes == 0) {
      AppendCommand(out, {"GET", key});
    } else {
      AppendCommand(out, {"SET", key, value});
    }
  }
  return out;
}

void Report(benchmark::State& state, size_t bytes_each_round) {
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes_each_round));
}

void BM_Copy(benchmark::State& state) {
  const std::string input = Pipeline(state.range(0), static_cast<size_t>(state.range(1)));
  std::string copy(input.size(), '\0');
  for (auto _ : state) {
    std::memcpy(copy.data(), input.data(), input.size());
    benchmark::DoNotOptimize(copy.data());
    benchmark::ClobberMemory();
  }
  Report(state, input.size());
}

void BM_Decode(benchmark::State& state) {
  const std::string input = Pipeline(state.range(0), static_cast<size_t>(state.range(1)));
  const RespLimits limits;
  RespDecoder decoder;
  std::vector<std::string_view> args;
  uint64_t checksum = 0;
  for (auto _ : state) {
    std::string_view rest = input;
    checksum = 0;
    while (decoder.Next(rest, limits, args) == RespDecoder::Event::kCommand) {
      for (const std::string_view arg : args) checksum += arg.size();
      rest.remove_prefix(decoder.consumed());
    }
  }
  state.counters["checksum"] = static_cast<double>(checksum);
  Report(state, input.size());
}

// Every command is cut once, in the middle: measures the cost of the second pass.
void BM_DecodeHalves(benchmark::State& state) {
  const std::string input = Pipeline(1, static_cast<size_t>(state.range(1)));
  const std::string_view half = std::string_view(input).substr(0, input.size() / 2);
  const RespLimits limits;
  RespDecoder decoder;
  std::vector<std::string_view> args;
  for (auto _ : state) {
    for (int64_t i = 0; i < state.range(0); ++i) {
      benchmark::DoNotOptimize(decoder.Next(half, limits, args));
      benchmark::DoNotOptimize(decoder.Next(input, limits, args));
    }
  }
  Report(state, input.size() * static_cast<size_t>(state.range(0)));
}

void BM_WriteBulks(benchmark::State& state) {
  const std::string value(static_cast<size_t>(state.range(1)), 'v');
  std::string out;
  for (auto _ : state) {
    out.clear();
    RespWriter writer(out, 2);
    for (int64_t i = 0; i < state.range(0); ++i) writer.Bulk(value);
    benchmark::DoNotOptimize(out.data());
  }
  Report(state, out.size());
}

void BM_WriteIntegers(benchmark::State& state) {
  SeededRandom random(kSeed);
  std::vector<int64_t> values(static_cast<size_t>(state.range(0)));
  for (int64_t& value : values) value = static_cast<int64_t>(random.Next() >> random.Below(64));
  std::string out;
  for (auto _ : state) {
    out.clear();
    RespWriter writer(out, 2);
    for (const int64_t value : values) writer.Integer(value);
    benchmark::DoNotOptimize(out.data());
  }
  Report(state, out.size());
}

// Replies to GETs, as a load generator counts them.
void BM_SkipReplies(benchmark::State& state) {
  const std::string value(static_cast<size_t>(state.range(1)), 'v');
  std::string input;
  RespWriter writer(input, 2);
  for (int64_t i = 0; i < state.range(0); ++i) writer.Bulk(value);
  RespReplyParser parser;
  for (auto _ : state) {
    std::string_view rest = input;
    while (parser.Skip(rest) == RespReplyParser::Event::kReply) {
      rest.remove_prefix(parser.consumed());
    }
  }
  Report(state, input.size());
}

constexpr int64_t kGet = 0;

BENCHMARK(BM_Copy)->ArgNames({"commands", "value_bytes"})->ArgsProduct({{16, 256}, {kGet, 100}});
BENCHMARK(BM_Decode)->ArgNames({"commands", "value_bytes"})->ArgsProduct({{16, 256}, {kGet, 100}});
BENCHMARK(BM_DecodeHalves)->ArgNames({"commands", "value_bytes"})->ArgsProduct({{16}, {kGet, 100}});
BENCHMARK(BM_WriteBulks)->ArgNames({"replies", "value_bytes"})->ArgsProduct({{16, 256}, {8, 100}});
BENCHMARK(BM_WriteIntegers)->ArgName("replies")->Arg(16)->Arg(256);
BENCHMARK(BM_SkipReplies)->ArgNames({"replies", "value_bytes"})->ArgsProduct({{16, 256}, {8, 100}});

}  // namespace
}  // namespace skep
