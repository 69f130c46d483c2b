// engine_info.h: what is known of an engine before there is one: its name, its options, and how it
// is made. Each engine defines its own; keyspace/factory.h lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep {

struct EngineInfo {
  std::string_view name;
  std::string_view summary;
  // Returns null if there is no memory, or no address space. `check` must have accepted the
  // options. Null: there is `connect` instead.
  std::unique_ptr<Engine> (*make)(const EngineOptions& options) = nullptr;
  // How an engine is made that has to reach others first, and may fail to: when a store is opened,
  // whatever its keyspace. Null: it is made by `make` when it is first used.
  Result<std::unique_ptr<Engine>> (*connect)(const IndexOptions& options,
                                             std::string* problem) = nullptr;
  // The data are elsewhere, and outlive this process: they are neither logged nor saved here, and
  // no engine can be made without options that say where.
  bool external = false;
  // The most keyspaces a store may have of this engine: each may reserve much address space.
  uint32_t keyspaces_max = UINT32_MAX;
  // Whether the engine can have these options; a null pointer: it can have any.
  //   kInvalidArgument  a number that options.h does not allow, which is the detail
  Status (*check)(const IndexOptions& options) = nullptr;
  // The names of the options NAME=VALUE that may follow the engine's name.
  std::span<const std::string_view> option_names = {};
  // Reads one of those options; a null pointer: there are none.
  //   kInvalidArgument  what is wrong with the value
  Status (*read_option)(std::string_view name, std::string_view value,
                        IndexOptions& options) = nullptr;
  // Returns Engine::format() of an engine with these options; a null pointer: it is the name.
  std::string (*format)(const IndexOptions& options) = nullptr;
};

}  // namespace skep
