// quickstart.cc: the library in one file: points, a batch, an atomic batch with a condition, a
// scan, a snapshot, statistics. quickstart.expected is what it prints.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "skep/store.h"

namespace {

void Print(std::string_view text) { std::printf("%.*s", int(text.size()), text.data()); }

// An example ends at the first failure; a program would look at status.code().
void Must(skep::Status status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(EXIT_FAILURE);
}

template <typename T>
T Must(skep::Result<T> result) {
  if (!result) Must(result.error());
  return std::move(*result);
}

// Single operations. Each is one atomic step, also when other threads use the store.
void Points(skep::Store& store) {
  Must(store.Put("fruit:apple", "red"));
  const bool inserted = Must(store.Insert("fruit:apple", "green"));
  const bool swapped = Must(store.CompareAndSet("fruit:apple", "red", "yellow"));
  std::printf("insert %d, compare-and-set %d, apple is %s\n", inserted, swapped,
              Must(store.Get("fruit:apple"))->c_str());
}

// Independent operations in one call: the engine overlaps them.
void UnorderedBatch(skep::Store& store) {
  skep::Batch batch;
  batch.Put("fruit:pear", "green");
  batch.Put("fruit:plum", "blue");
  const uint32_t missing = batch.Get("fruit:quince");
  const uint32_t visits = batch.Apply("visits", skep::functions::kAddDecimal, "3");
  Must(store.Execute(batch));
  std::printf("quince %s, visits %lld\n",
              batch.outcome(missing).verdict == skep::Verdict::kAbsent ? "absent" : "present",
              static_cast<long long>(batch.outcome(visits).integer));
}

// An atomic batch, all or nothing: the condition of the second move does not hold, so it changes
// nothing.
void AtomicBatch(skep::Store& store) {
  for (int attempt = 1; attempt <= 2; ++attempt) {
    skep::Batch move(skep::Batch::Kind::kAtomic);
    move.RequireValue("fruit:plum", "blue");
    move.Delete("fruit:plum");
    move.Put("dried:plum", "black");
    Must(store.Execute(move));
    std::printf("move %d: %s\n", attempt, move.applied() ? "applied" : "not applied");
  }
}

void PrintAll(const char* title, skep::Scanner scan) {
  Print(title);
  while (scan.Next()) {
    Print(" ");
    Print(scan.key());
    Print("=");
    Print(scan.value());
  }
  Must(scan.status());
  Print("\n");
}

// A snapshot keeps reading its own version while the store moves on.
void ScanAndSnapshot(skep::Store& store) {
  skep::Scratch scratch;
  const skep::Range fruit = skep::PrefixRange("fruit:", scratch);
  const skep::Snapshot before = Must(store.TakeSnapshot());
  const uint64_t deleted = Must(store.DeleteRange(fruit));
  Must(store.Put("fruit:fig", "brown"));

  std::printf("deleted %llu\n", static_cast<unsigned long long>(deleted));
  PrintAll("now:   ", store.Scan(fruit));
  PrintAll("before:", store.Scan(fruit, {.reverse = true}, 0, &before));
}

void Statistics(const skep::Store& store) {
  for (const auto& keyspace : store.Statistics().keyspaces) {
    std::printf("keyspace %u: engine %s, %llu keys, %llu snapshots\n", keyspace.index,
                keyspace.engine.c_str(), static_cast<unsigned long long>(keyspace.items),
                static_cast<unsigned long long>(keyspace.snapshots));
  }
}

}  // namespace

int main() {
  const auto store = Must(skep::Store::Open({}));
  Points(*store);
  UnorderedBatch(*store);
  AtomicBatch(*store);
  ScanAndSnapshot(*store);
  Statistics(*store);
}
