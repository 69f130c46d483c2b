// batcher.h: single operations of any threads, executed in batches (HeteroKV, section III-B: the
// stage that gathers requests). A batch costs much less than its operations one by one.
//
//   auto batcher = *skep::Batcher::Make(*store, {});
//   batcher->Get("user:7", [](const skep::Batch& batch, uint32_t slot) {
//     Use(batch.outcome(slot).value);
//   });
//   batcher->Drain();
//
// The batcher has two batches: one is gathered while the batcher's own thread executes the other,
// so batches grow by themselves when the store is busy. A batch that is not full is executed as
// soon as the thread is free, unless more operations are about to come, at the pace of the last
// ones, and to make it as large as `operations_wanted`: then it waits for them, at most
// `wait_us_max`.
//
// Each operation takes effect at one instant between its call and the call of its `done`.
// Operations on one key, of one thread, keep their order; nothing else is ordered. With a store
// that is a server's (Store::Connect) a batch is one message.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "skep/batch.h"
#include "skep/status.h"

namespace skep {

class Store;

struct BatcherOptions {
  uint32_t keyspace = 0;
  // A batch has at most this many operations, and 512 KiB of keys and values, or one operation; 1
  // to 65536. A thread that submits more waits until the batch has left.
  uint32_t operations_max = 8192;
  uint32_t operations_wanted = 256;  // 1 to operations_max
  uint32_t wait_us_max = 50;         // up to 1000; 0: no batch waits
};

class Batcher {
 public:
  // Told that the operation is done, or refused: batch.outcome(slot), and after a scan
  // batch.items(slot), are valid until the function returns. May be empty. The batcher's thread
  // calls the functions one after the other, so a slow one delays others. It may submit operations,
  // to this batcher and others, and then never waits for room; it must not call Drain, destroy a
  // batcher, throw, or wait for a thread that submits. The answers of a batch may take a gibibyte
  // together (else kTooLarge).
  using Done = std::move_only_function<void(const Batch& batch, uint32_t slot)>;

  // The store must outlive the batcher.
  //   kInvalidArgument  a number that BatcherOptions does not allow; the store has no such keyspace
  static Result<std::unique_ptr<Batcher>> Make(Store& store, const BatcherOptions& options);
  // Executes the operations that are left, and those that their `done`s submit.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // As Batch's, but they copy the bytes. Thread-safe. They return when the operation is in a batch,
  // which takes some 50 ns, or longer while both batches are full. If the process has no memory
  // they throw std::bad_alloc, and nothing is submitted; if it has none while the batch is
  // executed, `done` is told kUnavailable, and whether the operation was done is not known.
  void Get(std::string_view key, Done done);
  void Put(std::string_view key, std::string_view value, Done done);
  void Insert(std::string_view key, std::string_view value, Done done);
  void Update(std::string_view key, std::string_view value, Done done);
  void Delete(std::string_view key, Done done);
  void Apply(std::string_view key, const Function* function, std::string_view operand, Done done);
  void UpdateElements(std::string_view key, const Function* update, std::string_view operands,
                      const UpdateOptions& options, Done done);
  void Scan(const Range& range, const ScanOptions& options, Done done);

  // Returns when all operations are done whose calls had returned. Batches do not wait for further
  // operations meanwhile. Thread-safe.
  void Drain();

  // Batches that were executed, and the operations in them. Thread-safe.
  struct Statistics {
    uint64_t batches = 0;
    uint64_t operations = 0;
  };
  Statistics statistics() const;

 private:
  class Gatherer;
  explicit Batcher(std::unique_ptr<Gatherer> gatherer);

  std::unique_ptr<Gatherer> gatherer_;
};

}  // namespace skep
