// expiry_observer.h: who wants to know which keys have expired.
//
// An engine tells its observer of a key when the key leaves the index because its deadline has
// passed: when it is reclaimed, or when a write takes its place. Each such key is told once. An
// engine may leave out the keys whose place a write takes, as that of hash keyspaces does. Until
// then the key is gone for readers, but nobody is told. Keys that leave with a range, or with
// everything, are not told.
#pragma once

#include <string_view>

namespace skep {

// Thread-safe. Its methods run on the threads that write or maintain the engine, which may hold
// locks of it, for up to some thousand keys in a row: they must not call the engine, wait for a
// thread that does, or throw, and they must be short. What takes longer for a key than copying it
// belongs to a later moment.
class ExpiryObserver {
 public:
  virtual ~ExpiryObserver() = default;
  // Whether keys are to be told now. Cost: some loads.
  virtual bool wants_expired() const noexcept = 0;
  virtual void HasExpired(std::string_view key) noexcept = 0;
};

// Tells the observer of a key, if there is one and it wants to know.
inline void TellExpired(ExpiryObserver* observer, std::string_view key) {
  if (observer != nullptr && observer->wants_expired()) observer->HasExpired(key);
}

// An engine that can tell. Thread-safe.
class ExpirySource {
 public:
  virtual ~ExpirySource() = default;
  // Tells `observer` from now on, in place of another one. It must outlive the engine.
  virtual void ObserveExpiry(ExpiryObserver* observer) = 0;
};

// Has an engine tell, if it can: one without deadlines, or whose data are elsewhere, cannot.
template <class AnyEngine>
void ObserveExpiryOf(AnyEngine& engine, ExpiryObserver* observer) {
  if (auto* const source = dynamic_cast<ExpirySource*>(&engine)) source->ObserveExpiry(observer);
}

}  // namespace skep
