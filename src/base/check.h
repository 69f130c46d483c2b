// check.h: our own bugs stop the process; nothing a client or the world does may get here.
#pragma once

namespace skep {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}  // namespace skep

// Stops the process if the condition is false. Always on, so the condition must be cheap.
#define SKEP_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::skep::CheckFailed(#condition, __FILE__, __LINE__))

// Stops the process if the condition is false, in debug builds only; the condition may be slow.
#ifdef NDEBUG
#define SKEP_DCHECK(condition) static_cast<void>(sizeof(condition))
#else
#define SKEP_DCHECK(condition) SKEP_CHECK(condition)
#endif
