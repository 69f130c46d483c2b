// snapshot_loader.h: from the items of a snapshot to engines.
#pragma once

#include <functional>
#include <string>

#include "base/file.h"
#include "durable/snapshot_reader.h"
#include "durable/snapshot_salvage.h"
#include "engine/engine.h"

namespace skep::durable {

// The engine of a keyspace. An error ends the loading.
using EngineOfKeyspace = std::function<Result<Engine*>(uint32_t keyspace)>;

// Puts all items into their engines, as of no time: nothing expires. An engine that has a bulk load
// gets its items by that. After an error the engines are good for nothing but to be destroyed.
// Memory, of each thread: a block, and a Feed of items.
//   kCorrupt, kIo  of the reader; or items that should be in the order of their keys are not
//   kOutOfMemory   of an engine
//   others         of `engine_of`
Status LoadSnapshot(const SnapshotReader& reader, const EngineOfKeyspace& engine_of,
                    uint32_t threads_max);

// The same of what is good in a damaged file; on one core.
//   kNotSupported  a newer Skep wrote it
Result<SnapshotSalvage> LoadDamagedSnapshot(FileSystem& files, const std::string& path,
                                            const EngineOfKeyspace& engine_of);

}  // namespace skep::durable
