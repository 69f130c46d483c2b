// factory.h: the one place that knows engines by name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/engine.h"

namespace skep {

struct EngineInfo {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Engine> (*make)(const EngineOptions& options);
  // Of one store: each may reserve much address space.
  uint32_t keyspaces_max = UINT32_MAX;
};

std::span<const EngineInfo> AllEngines();

// Null if there is no such engine.
const EngineInfo* FindEngine(std::string_view name);

}  // namespace skep
