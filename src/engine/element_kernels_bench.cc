// Kernels of functions of elements, on vectors in the caches: bytes a second of the vector.
#include <benchmark/benchmark.h>

#include <string>

#include "skep/function.h"

namespace skep {
namespace {

void Updates(benchmark::State& state, const char* name, Element element) {
  const Function& f = *FindFunction(FunctionKind::kUpdate, name, element);
  const auto bytes = static_cast<size_t>(state.range(0));
  const std::string operand(16, '\1');
  std::string vector(bytes, '\1');
  for (auto _ : state) {
    f.kernel.update(f, vector.data(), operand.data(), false, bytes / BytesOf(element));
    benchmark::DoNotOptimize(vector.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void Reductions(benchmark::State& state, const char* name, Element element) {
  const Function& f = *FindFunction(FunctionKind::kReduce, name, element);
  const auto bytes = static_cast<size_t>(state.range(0));
  const std::string in(bytes, '\1');
  char sum[8] = {};
  for (auto _ : state) {
    f.kernel.reduce(f, in.data(), bytes / BytesOf(element), sum);
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void Filters(benchmark::State& state, const char* name, Element element) {
  const Function& f = *FindFunction(FunctionKind::kFilter, name, element);
  const auto bytes = static_cast<size_t>(state.range(0));
  const std::string in(bytes, '\1');
  std::string out(bytes, '\0');
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        f.kernel.filter(f, in.data(), in.data(), out.data(), bytes / BytesOf(element)));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

// The last size does not fit the caches.
#define SKEP_SIZES Arg(64)->Arg(4096)->Arg(65536)->Arg(64 << 20)
BENCHMARK_CAPTURE(Updates, add_i8, "add", Element::kI8)->SKEP_SIZES;
BENCHMARK_CAPTURE(Updates, add_i64, "add", Element::kI64)->SKEP_SIZES;
BENCHMARK_CAPTURE(Updates, add_f32, "add", Element::kF32)->SKEP_SIZES;
BENCHMARK_CAPTURE(Updates, mul_i32, "mul", Element::kI32)->SKEP_SIZES;
BENCHMARK_CAPTURE(Updates, cas_i64, "cas", Element::kI64)->SKEP_SIZES;
BENCHMARK_CAPTURE(Reductions, sum_i32, "sum", Element::kI32)->SKEP_SIZES;
BENCHMARK_CAPTURE(Reductions, sum_f32, "sum", Element::kF32)->SKEP_SIZES;
BENCHMARK_CAPTURE(Reductions, min_i64, "min", Element::kI64)->SKEP_SIZES;
BENCHMARK_CAPTURE(Filters, lt_i32, "lt", Element::kI32)->SKEP_SIZES;
#undef SKEP_SIZES

}  // namespace
}  // namespace skep
