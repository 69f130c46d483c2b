#include "bench/op_generator.h"

#include <algorithm>

namespace skep::bench {
namespace {

// Streams of different threads must not be shifted copies of each other; SeededRandom spreads any
// input, so any injective mix will do.
uint64_t SeedOf(const WorkloadPlan& plan, uint32_t thread) {
  return plan.seed * 0x9e3779b97f4a7c15 + thread;
}

}  // namespace

KeyChooser::KeyChooser(const WorkloadPlan& plan, uint32_t thread)
    : plan_(plan),
      thread_(thread),
      scrambled_(plan.records + plan.InsertsForeseen()),
      ages_(plan.records) {}

uint64_t KeyChooser::Draw(Random& random, uint64_t inserted) {
  switch (plan_.distribution) {
    case Distribution::kUniform:
      return random.Below(plan_.records);
    case Distribution::kZipfian:
      return DrawZipfian(random, inserted);
    case Distribution::kLatest:
      return DrawLatest(random, inserted);
  }
  return 0;
}

// Draws as YCSB does: over all keys that will exist, again until it is one that does.
uint64_t KeyChooser::DrawZipfian(Random& random, uint64_t inserted) {
  uint64_t number;
  do {
    number = scrambled_.Draw(random);
  } while (!Exists(number, inserted));
  return number;
}

uint64_t KeyChooser::DrawLatest(Random& random, uint64_t inserted) {
  const uint64_t known = plan_.records + inserted;
  if (ages_.items() != known) ages_.Resize(known);
  const uint64_t age = ages_.Draw(random);
  return age < inserted ? InsertedNumber(inserted - 1 - age) : known - 1 - age;
}

bool KeyChooser::Exists(uint64_t number, uint64_t inserted) const {
  if (number < plan_.records) return true;
  const uint64_t beyond = number - plan_.records;
  return beyond % plan_.threads == thread_ && beyond / plan_.threads < inserted;
}

// Inserted keys belong to their thread already.
uint64_t KeyChooser::Own(uint64_t number) const {
  if (number >= plan_.records) return number;
  const uint64_t own = number - number % plan_.threads + thread_;
  return own < plan_.records ? own : own - plan_.threads;
}

OpGenerator::OpGenerator(const WorkloadPlan& plan, uint32_t thread)
    : workload_(plan.workload),
      own_updates_(plan.own_updates),
      group_(plan.group),
      random_(SeedOf(plan, thread)),
      keys_(plan, thread) {}

void OpGenerator::Fill(OpStream& stream, size_t count) {
  for (size_t i = 0; i < count; i += group_) {
    const OpKind kind = DrawKind();
    for (uint32_t j = 0; j < group_; ++j) Add(kind, stream);
  }
}

void OpGenerator::Add(OpKind kind, OpStream& stream) {
  if (kind == OpKind::kInsert) return stream.Add(kind, keys_.InsertedNumber(inserted_++));
  const uint64_t number = keys_.Draw(random_, inserted_);
  if (kind == OpKind::kScan) {
    const uint64_t lengths = workload_.scan_items_max - workload_.scan_items_min + 1;
    return stream.Add(kind, number,
                      workload_.scan_items_min + static_cast<uint32_t>(random_.Below(lengths)));
  }
  stream.Add(kind, own_updates_ && kind != OpKind::kRead ? keys_.Own(number) : number);
}

OpKind OpGenerator::DrawKind() {
  int ticket = static_cast<int>(random_.Below(100));
  if ((ticket -= workload_.read) < 0) return OpKind::kRead;
  if ((ticket -= workload_.update) < 0) return OpKind::kUpdate;
  if ((ticket -= workload_.insert) < 0) return OpKind::kInsert;
  if ((ticket -= workload_.scan) < 0) return OpKind::kScan;
  return OpKind::kReadModifyWrite;
}

void LoadGenerator::Fill(OpStream& stream, size_t count) {
  for (size_t i = 0; i < count; ++i, next_ += threads_) stream.Add(OpKind::kInsert, next_);
}

}  // namespace skep::bench
