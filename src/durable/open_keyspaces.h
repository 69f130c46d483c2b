// open_keyspaces.h: opens the keyspaces of a store, in memory or out of its directory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "durable/persistence.h"
#include "engine/engine_info.h"
#include "keyspace/keyspaces.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep::durable {

// The keyspaces of a store that is open, and the findings of its recovery.
struct OpenedKeyspaces {
  // Declared in the order in which they must outlive each other.
  std::unique_ptr<Persistence> persistence;  // null: in memory only
  std::unique_ptr<Keyspaces> keyspaces;
  RecoveryReport report;
};

enum class OpenMode : uint8_t {
  kStart,     // the store is ready for writes
  kRepair,    // damage is mended, then the store is ready for writes (Persistence::Open)
  kRehearse,  // the keyspaces are filled and nothing is written: they may be read, then destroyed
};

// Opens the keyspaces of a store, and fills them from options.directory, unless that is empty. No
// threads are started. `files`, `clock` and `engine` must outlive the result.
// `engine`, if given, is used instead of the one that options.engine names.
// On an error *problem is a line for a person.
//   kInvalidArgument  options that Keyspaces::Make refuses
//   others            as Persistence::Open and Persistence::Recover
Result<OpenedKeyspaces> OpenKeyspaces(FileSystem& files, Clock& clock, const Options& options,
                                      std::string* problem, OpenMode mode = OpenMode::kStart,
                                      const EngineInfo* engine = nullptr);

}  // namespace skep::durable
