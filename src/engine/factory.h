// factory.h: the one place that knows engines by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine/engine.h"

namespace skep {

struct EngineInfo {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Engine> (*make)(const EngineOptions& options);
};

std::span<const EngineInfo> AllEngines();

// Null if there is no such engine.
const EngineInfo* FindEngine(std::string_view name);

}  // namespace skep
