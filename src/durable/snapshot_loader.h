// snapshot_loader.h: loads the items of a snapshot into engines.
#pragma once

#include <functional>
#include <string>

#include "base/file.h"
#include "durable/snapshot_reader.h"
#include "durable/snapshot_salvage.h"
#include "engine/engine.h"

namespace skep::durable {

// Returns the engine of a keyspace. An error ends the loading.
using EngineOfKeyspace = std::function<Result<Engine*>(uint32_t keyspace)>;

// Loads all items into their engines, by the bulk load of an engine that has one. The items get no
// time, so nothing expires. After an error the engines can only be destroyed. Memory: a block and a
// Feed for each thread.
//   kCorrupt, kIo  of the reader; or items of an ordered engine are not in the order of their keys
//   kOutOfMemory   of an engine
//   others         of `engine_of`
Status LoadSnapshot(const SnapshotReader& reader, const EngineOfKeyspace& engine_of,
                    uint32_t threads_max);

// Loads the good items of a damaged file, by one thread.
//   kNotSupported  a newer Skep wrote it
Result<SnapshotSalvage> LoadDamagedSnapshot(FileSystem& files, const std::string& path,
                                            const EngineOfKeyspace& engine_of);

}  // namespace skep::durable
