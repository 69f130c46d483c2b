#include "sim/fiber.h"

#include <utility>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace skep {
namespace {

thread_local Fiber* current = nullptr;

// `keeper` keeps what AddressSanitizer knows of the stack that is left; null: it is left for good.
void BeginSwitch([[maybe_unused]] void** keeper, [[maybe_unused]] const void* stack,
                 [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(keeper, stack, bytes);
#endif
}

void EndSwitch([[maybe_unused]] void* kept, [[maybe_unused]] const void** stack,
               [[maybe_unused]] size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(kept, stack, bytes);
#endif
}

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(std::make_unique_for_overwrite<std::byte[]>(kStackBytes)) {
  SKEP_CHECK(getcontext(&inside_) == 0);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  makecontext(&inside_, &Fiber::Run, 0);
}

Fiber::~Fiber() { SKEP_CHECK(is_over_ || !is_begun_); }

Fiber* Fiber::Current() { return current; }

void Fiber::Resume() {
  SKEP_CHECK(current == nullptr && !is_over_);
  current = this;
  is_begun_ = true;
  void* kept = nullptr;
  BeginSwitch(&kept, stack_.get(), kStackBytes);
  SKEP_CHECK(swapcontext(&outside_, &inside_) == 0);
  EndSwitch(kept, nullptr, nullptr);
  current = nullptr;
}

void Fiber::Suspend() {
  Fiber& fiber = *current;
  void* kept = nullptr;
  BeginSwitch(&kept, fiber.outside_stack_, fiber.outside_stack_bytes_);
  SKEP_CHECK(swapcontext(&fiber.inside_, &fiber.outside_) == 0);
  EndSwitch(kept, &fiber.outside_stack_, &fiber.outside_stack_bytes_);
}

void Fiber::Run() {
  Fiber& fiber = *current;
  EndSwitch(nullptr, &fiber.outside_stack_, &fiber.outside_stack_bytes_);
  fiber.body_();
  fiber.is_over_ = true;
  BeginSwitch(nullptr, fiber.outside_stack_, fiber.outside_stack_bytes_);
  setcontext(&fiber.outside_);
}

}  // namespace skep
