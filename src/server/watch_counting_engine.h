// watch_counting_engine.h: an engine for tests that counts the watches of the engine that it wraps.
//
// Thread safety: none, unlike other engines': one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "engine/forwarding_engine.h"

namespace skep {

class WatchCountingEngine : public ForwardingEngine {
 public:
  explicit WatchCountingEngine(std::unique_ptr<Engine> inner)
      : ForwardingEngine(std::move(inner)) {}

  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override {
    const auto watch = inner().Watch(key, now_ms);
    if (watch) watches_.insert(*watch);
    return watch;
  }
  void Unwatch(uint64_t watch) override {
    inner().Unwatch(watch);
    watches_.erase(watch);
  }
  // Writes become visible as they do in the inner engine.
  void Release() override {
    inner().Release();
    gate_.Release(inner().gate().released());
  }
  size_t watches() const { return watches_.size(); }

 private:
  std::set<uint64_t> watches_;
};

}  // namespace skep
