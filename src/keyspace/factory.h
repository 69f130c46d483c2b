// factory.h: the one place that knows engines by name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/engine_info.h"

namespace skep {

std::span<const EngineInfo> AllEngines();

// Null if there is no such engine.
const EngineInfo* FindEngine(std::string_view name);

// The options of the engines, out of the options of a store.
IndexOptions IndexOptionsOf(const Options& options);

// The engine that a keyspace is to have, with its options.
struct EngineSpec {
  const EngineInfo* info;
  IndexOptions options;
};

// Parses an engine's name, which options of the engine may follow:
// "hashleaf,key=8,value=16,leaf=262144". Options that do not follow have the values of `defaults`.
// On an error *problem, if given, is a line for a person: it names the engine, the option, and what
// there is instead.
//   kInvalidArgument  no such engine, no such option of it, or not with this value
Result<EngineSpec> ParseEngine(std::string_view text, const IndexOptions& defaults,
                               std::string* problem = nullptr);

// Engine::format() of an engine with this spec.
std::string FormatOf(const EngineSpec& spec);
// Whether the engine can have the options of this spec; errors as EngineInfo::check.
Status CheckEngine(const EngineSpec& spec);

}  // namespace skep
