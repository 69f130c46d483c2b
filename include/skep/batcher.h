// batcher.h: single operations of any threads, executed in batches (HeteroKV, section III-B: the
// stage that gathers requests; a batch costs much less than its operations one by one).
//
//   auto batcher = *skep::Batcher::Make(*store, {});
//   batcher->Get("user:7", [](const skep::Batch& batch, uint32_t slot) {
//     Use(batch.outcome(slot).value);
//   });
//   batcher->Drain();
//
// Two batches are on their way: one is gathered while the other is executed, by a thread of the
// batcher's own. So a batch grows by itself when the store is busy. One that is not full leaves as
// soon as the thread is free, unless more operations are about to come, at the pace at which they
// came lately, and to make it as large as `operations_wanted`: then it waits for them, at most
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
  // A batch has at most so many, and 512 KiB of keys and values, or one operation; 1 to 65536. Who
  // has more waits until it has left.
  uint32_t operations_max = 8192;
  uint32_t operations_wanted = 256;  // 1 to operations_max
  uint32_t wait_us_max = 50;         // up to 1000; 0: no batch waits
};

class Batcher {
 public:
  // The operation is done, or refused: batch.outcome(slot), of a scan also batch.items(slot), which
  // are valid until it returns. May be empty: nobody wants to know. Called by the batcher's thread,
  // one after the other: what it does delays others. It may submit operations, here and elsewhere,
  // and then never waits for room; it must not call Drain, destroy a batcher, throw, or wait for
  // somebody who submits. A batch's answers may have a gibibyte together (kTooLarge).
  using Done = std::move_only_function<void(const Batch& batch, uint32_t slot)>;

  // The store must outlive it.
  //   kInvalidArgument  a number that BatcherOptions does not allow; the store has no such keyspace
  static Result<std::unique_ptr<Batcher>> Make(Store& store, const BatcherOptions& options);
  // Executes what is left, and what its `done`s submit.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // As Batch's, but that the bytes are copied. Thread-safe. They return when the operation is in a
  // batch, which takes some 50 ns, or longer while both batches are full. Where the process has no
  // memory they throw std::bad_alloc, and nothing is submitted; if it has none while the batch is
  // executed, `done` is told kUnavailable: whether the operation was done is not known.
  void Get(std::string_view key, Done done);
  void Put(std::string_view key, std::string_view value, Done done);
  void Insert(std::string_view key, std::string_view value, Done done);
  void Update(std::string_view key, std::string_view value, Done done);
  void Delete(std::string_view key, Done done);
  void Apply(std::string_view key, const Function* function, std::string_view operand, Done done);
  void UpdateElements(std::string_view key, const Function* update, std::string_view operands,
                      const UpdateOptions& options, Done done);
  void Scan(const Range& range, const ScanOptions& options, Done done);

  // Returns when all operations are done whose calls had returned. Nothing waits for more
  // meanwhile. Thread-safe.
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
