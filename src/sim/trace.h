// trace.h: the events of a simulated run, as one running hash.
//
// Two runs with equal hashes did the same things in the same order; the first difference makes all
// later hashes differ. A value that differs from process to process (a pointer, a real time) must
// not be noted.
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
    kFabric,
  };

  // Notes an event that an actor may be waiting for.
  void Note(Event event, uint64_t a = 0, uint64_t b = 0) {
    Mix(event, a, b);
    ++events_;
  }
  // Mixes in a choice that no actor waits for.
  void Mix(Event event, uint64_t a = 0, uint64_t b = 0);

  uint64_t hash() const { return hash_; }
  // Returns how often Note was called: unchanged means that nothing has happened.
  uint64_t events() const { return events_; }

  // Returns a number that stands for the bytes, for Note.
  static uint64_t Of(std::string_view bytes);

 private:
  uint64_t hash_ = 0;
  uint64_t events_ = 0;
};

}  // namespace skep
