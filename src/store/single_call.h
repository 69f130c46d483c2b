// single_call.h: the batch of a call that is about one key.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "skep/batch.h"

namespace skep {

// Lends a call the batch of its thread, which keeps its memory from call to call: requests,
// outcomes and two blocks of Scratch::kKeptBytesMax at most. So a Get that hits allocates its
// result and nothing else. A call that begins inside another one of its thread gets a batch of its
// own.
//
// Owner: one call.
class SingleCall {
 public:
  SingleCall() : batch_(has_ended_ ? nullptr : std::move(kept_.batch)) {
    if (batch_ == nullptr) batch_ = std::make_unique<Batch>();
  }
  ~SingleCall() {
    if (has_ended_) return;
    try {
      batch_->Clear();
      kept_.batch = std::move(batch_);
    } catch (const std::bad_alloc&) {  // the next call makes a new batch
    }
  }
  SingleCall(const SingleCall&) = delete;
  SingleCall& operator=(const SingleCall&) = delete;

  Batch& batch() { return *batch_; }

 private:
  struct Kept {
    std::unique_ptr<Batch> batch;  // null while a call has it
    ~Kept() { has_ended_ = true; }
  };
  static inline thread_local Kept kept_;
  // Whether kept_ was destroyed. Objects of the thread that are destroyed later may call a store,
  // too.
  static inline thread_local bool has_ended_ = false;

  std::unique_ptr<Batch> batch_;
};

}  // namespace skep
