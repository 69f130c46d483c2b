// trace.h: what happened in a simulated run, as one running hash.
//
// Two runs with equal hashes did the same things in the same order; the first thing that differs
// makes all later hashes differ. Nothing that differs from process to process (a pointer, a real
// time) may be noted.
#pragma once

#include <cstdint>
#include <string_view>

namespace skep {

class Trace {
 public:
  enum class Event : uint64_t {
    kTime = 1,
    kStep,
    kConnect,
    kAccept,
    kRead,
    kWrite,
    kFinish,
    kClose,
    kReset,
    kPart,
    kWake,
    kFileOpen,
    kFileRead,
    kFileWrite,
    kFileSync,
    kFileTruncate,
    kDirectory,
    kFault,
    kCrash,
    kCoordinator,
  };

  // Something took place that somebody may be waiting for.
  void Note(Event event, uint64_t a = 0, uint64_t b = 0) {
    Mix(event, a, b);
    ++events_;
  }
  // A choice that nobody waits for.
  void Mix(Event event, uint64_t a = 0, uint64_t b = 0);

  uint64_t hash() const { return hash_; }
  // How many Note calls there were: unchanged means that nothing has happened.
  uint64_t events() const { return events_; }

  // A number that stands for the bytes, in a Note.
  static uint64_t Of(std::string_view bytes);

 private:
  uint64_t hash_ = 0;
  uint64_t events_ = 0;
};

}  // namespace skep
