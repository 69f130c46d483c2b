// durable_keyspaces.h: the engines of a store that log their writes, and the list of their
// keyspaces in the directory (keyspace_file.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/mutex.h"
#include "durable/directory_engines.h"
#include "durable/durable_engine.h"
#include "durable/keyspace_file.h"
#include "durable/log.h"
#include "keyspace/keyspaces.h"

namespace skep::durable {

// Wraps the engines of a store, and keeps the list of its keyspaces. Thread-safe.
class DurableKeyspaces final : public EngineWrapper {
 public:
  // `found`: the engines that the directory has. `files` and `log` must outlive it.
  DurableKeyspaces(FileSystem& files, const std::string& directory, Log& log,
                   const DirectoryEngines& found);

  // Makes a DurableEngine of the engine. Once StartList() was called, a keyspace that the list does
  // not have is added to it.
  std::unique_ptr<Engine> Wrap(uint32_t keyspace, std::unique_ptr<Engine> engine) override;

  // From now on each keyspace is listed when it is first used. Lists the keyspaces that were used
  // before: those that a load makes are listed when the load has succeeded.
  Status StartList();
  // Writes the list if an earlier writing has failed.
  Status List();

  // The engine of a keyspace; null if the keyspace was never used.
  DurableEngine* Find(uint32_t keyspace) const;
  std::map<uint32_t, DurableEngine*> All() const;
  // Bytes of memory that the engines have together.
  uint64_t MemoryBytes() const;

 private:
  Status WriteList() SKEP_REQUIRES(mutex_);

  FileSystem& files_;
  const std::string directory_;
  Log& log_;

  mutable Mutex mutex_;
  std::map<uint32_t, DurableEngine*> engines_ SKEP_GUARDED_BY(mutex_);
  KeyspaceEngines recorded_ SKEP_GUARDED_BY(mutex_);
  bool is_listed_ SKEP_GUARDED_BY(mutex_) = false;  // the list has all of recorded_
  bool lists_ SKEP_GUARDED_BY(mutex_) = false;      // StartList() was called
};

}  // namespace skep::durable
