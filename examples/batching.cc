// batching.cc: threads count the readings of many sensors, one operation at a time each; the
// batcher executes their operations in batches. batching.expected is what it prints.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "skep/batcher.h"
#include "skep/store.h"

namespace {

constexpr uint32_t kSensors = 1000;
constexpr uint32_t kReadings = 20'000;  // of each thread
constexpr uint32_t kThreads = 4;

// An example ends at the first failure; a program would look at error().code().
template <typename T>
T Must(skep::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().ToString().c_str());
    std::exit(EXIT_FAILURE);
  }
  return std::move(*result);
}

std::string Key(uint32_t sensor) {
  const std::string digits = std::to_string(sensor);
  return std::string(8 - digits.size(), '0') + digits;
}

}  // namespace

int main() {
  // Keys and values of eight bytes, for large batches.
  const auto store = Must(skep::Store::Open({.engine = "hashleaf,key=8,value=8"}));
  const auto batcher = Must(skep::Batcher::Make(*store, {}));
  const skep::Function* const add =
      skep::FindFunction(skep::FunctionKind::kUpdate, "add", skep::Element::kI64);
  const int64_t one = 1;
  const std::string operand(reinterpret_cast<const char*>(&one), sizeof(one));

  std::atomic<uint64_t> counted{0};
  std::vector<std::jthread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t i = 0; i < kReadings; ++i) {
        const std::string key = Key((i * 7 + thread) % kSensors);
        batcher->UpdateElements(key, add, operand, {.create = 1},
                                [&](const skep::Batch& batch, uint32_t slot) {
                                  counted += batch.outcome(slot).verdict == skep::Verdict::kDone;
                                });
      }
    });
  }
  threads.clear();
  batcher->Drain();
  std::printf("%llu readings counted\n", static_cast<unsigned long long>(counted));

  batcher->Scan(skep::Range::All(), {}, [](const skep::Batch& batch, uint32_t slot) {
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (const skep::Item& item : batch.items(slot)) {
      int64_t count = 0;
      std::memcpy(&count, item.value.data(), sizeof(count));
      least = std::min(least, count);
      most = std::max(most, count);
    }
    std::printf("%u sensors, each has sent %lld to %lld\n", batch.outcome(slot).item_count,
                static_cast<long long>(least), static_cast<long long>(most));
  });
  batcher->Drain();
}
