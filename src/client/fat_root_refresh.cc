#include "client/fat_root_refresh.h"

#include <new>
#include <string>

namespace skep::client {

FatRootRefresh::~FatRootRefresh() {
  if (question_) asked_on_->Abandon(*question_);
}

void FatRootRefresh::Step(size_t connection) {
  // Acquire and release: the fields are as the thread before has left them.
  if (is_busy_.exchange(true, std::memory_order_acquire)) return;
  try {
    if (!question_) {
      Ask(connection);
    } else if (asked_on_->HasEnded(*question_)) {
      TakeAnswer();
    } else if (++steps_ > kStepsMax) {
      GiveUp();
    }
  } catch (const std::bad_alloc&) {
    question_.reset();
    root_.TakeNone(/*is_final=*/false);
  }
  is_busy_.store(false, std::memory_order_release);
}

void FatRootRefresh::Ask(size_t connection) {
  Connection& on = remote_.connection(connection);
  // A server that does not know the kind would hang up.
  if ((on.hello().features & packed::kHasTop) == 0) return;
  const auto payload = root_.Question();
  if (!payload) return;
  FillMessage(question_.emplace(), packed::Kind::kTop, keyspace_, *payload);
  asked_on_ = &on;
  steps_ = 0;
  on.Begin(*question_);
}

void FatRootRefresh::TakeAnswer() {
  const Status status = asked_on_->Await(*question_);
  if (status.ok()) {
    root_.TakeAnswer(question_->payload());
  } else {
    root_.TakeNone(/*is_final=*/status.code() == Code::kNotSupported);
  }
  question_.reset();
}

void FatRootRefresh::GiveUp() {
  asked_on_->Abandon(*question_);
  question_.reset();
  root_.TakeNone(/*is_final=*/false);
}

}  // namespace skep::client
