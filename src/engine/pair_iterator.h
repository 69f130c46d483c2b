// pair_iterator.h: every pair of an engine as of one instant, piece by piece, while other threads
// write: the contents of a snapshot file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "skep/batch.h"
#include "skep/status.h"

namespace skep {

class Engine;

// A key with its value and deadline. A view.
struct Pair {
  std::string_view key;
  std::string_view value;
  uint64_t deadline_ms = 0;  // 0: none
  uint8_t type = kPlainType;
};

// Thread safety: one owner. Must be destroyed before the engine.
class PairIterator {
 public:
  virtual ~PairIterator() = default;
  // The next pairs; none at the end. An ordered engine gives them in order. No time passes: a pair
  // past its deadline is given as well, unless it was reclaimed. Valid until the next call.
  //   kSnapshotTooOld  there was no memory for what has changed since the instant; every later call
  //                    returns it as well
  virtual Result<std::span<const Pair>> Next() = 0;

  // The instant: all writes up to this version, or number (Engine::Latest), and none after it.
  Version version() const { return version_; }
  uint64_t now_ms() const { return now_ms_; }  // not before any "now" of those writes

 protected:
  Version version_ = 0;
  uint64_t now_ms_ = 0;
};

// Iterates by scans at a snapshot of the engine, which the iterator closes in the end.
std::unique_ptr<PairIterator> IterateBySnapshot(Engine& engine, SnapshotRef snapshot);

}  // namespace skep
