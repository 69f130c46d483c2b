// directory_engines.h: which engine each keyspace of a directory has. The list of keyspaces says it
// (keyspace_file.h), and each snapshot says it of the keyspaces in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "durable/keyspace_file.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep::durable {

// What is wrong with a list of keyspaces, as Damage::what.
inline constexpr const char* kDamagedList = "the list of keyspaces";
inline constexpr const char* kContradictoryList =
    "the list of keyspaces names another engine than the newest snapshot";

struct DirectoryEngines {
  // As ReadKeyspaceFile has returned it. If it is not kOk the list is taken for empty.
  Status list_status;
  KeyspaceEngines listed;
  std::string snapshot;  // the path of the newest one whose footer is good; empty: there is none
  KeyspaceEngines in_snapshot;  // what that snapshot says

  // A keyspace for which the list and the snapshot name different engines. The snapshot is right:
  // its items were written by the engine that it names.
  std::optional<uint32_t> Contradiction() const;
  // The engine of each keyspace: what the snapshot says or, if it does not have the keyspace, the
  // list.
  KeyspaceEngines all() const;
};
// Finds the engines of a directory. Cost: reads the list, and the header and footer of the newest
// snapshot.
DirectoryEngines FindEngines(FileSystem& files, const std::string& directory);
// Whether a store with these options may go on with the directory's keyspaces. If not, *problem is
// a line for a person.
//   kCorrupt          the list is damaged, or contradicts the snapshot
//   kNotSupported     a newer Skep wrote the list
//   kInvalidArgument  the options do not have a keyspace, or have another engine for it
//   kIo
Status CheckConfigured(const DirectoryEngines& engines, const Options& options,
                       std::string* problem);

}  // namespace skep::durable
