// fiber.h: code that waits in its midst while others run, all in one thread.
//
//   Resume() --> body ... Suspend() --+            the body goes on where it suspended itself
//      ^  returns  <------------------+
//      +--- Resume() --> body ... end: is_over()
//
// For code that blocks by design, in a simulation that has no threads: what it blocks in suspends
// the fiber. AddressSanitizer is told of each switch.
//
// Cost: a switch saves the registers and the signal mask, two system calls, half a microsecond.
// Thread safety: one owner.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace skep {

class Fiber {
 public:
  static constexpr size_t kStackBytes = 256 * 1024;

  explicit Fiber(std::function<void()> body);
  // Its body has ended, or has never begun: what is on the stack is not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it suspends itself or ends. Not in a fiber; not if it is over.
  void Resume();
  bool is_over() const { return is_over_; }

  // Of the fiber that is running: returns when it is resumed.
  static void Suspend();
  // The fiber that is running; null: none.
  static Fiber* Current();

 private:
  static void Run();

  const std::function<void()> body_;
  const std::unique_ptr<std::byte[]> stack_;
  ucontext_t inside_ = {};
  ucontext_t outside_ = {};
  const void* outside_stack_ = nullptr;  // of the thread, for AddressSanitizer
  size_t outside_stack_bytes_ = 0;
  bool is_begun_ = false;
  bool is_over_ = false;
};

}  // namespace skep
