// factory.h: the one place that knows engines by name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
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

// What a keyspace is to be.
struct EngineSpec {
  const EngineInfo* info;
  HashleafOptions hashleaf;
};

// The engine's name; of "hashleaf", options may follow: "hashleaf,key=8,value=16,leaf=262144".
// Those that do not are `defaults`.
//   kInvalidArgument  no such engine, no such option of it, or not with this value
Result<EngineSpec> ParseEngine(std::string_view text, const HashleafOptions& defaults);

// What says whether data of the one fit into the other: the name, and the sizes of pairs if they
// have fixed ones. ParseEngine reads it.
std::string FormatOf(const EngineTraits& traits);
std::string FormatOf(const EngineSpec& spec);

}  // namespace skep
