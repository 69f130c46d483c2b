#include "durable/directory_engines.h"

#include <ranges>

#include "durable/directory.h"
#include "durable/snapshot_reader.h"

namespace skep::durable {

std::optional<uint32_t> DirectoryEngines::Contradiction() const {
  for (const auto& [index, engine] : listed) {
    const auto at = in_snapshot.find(index);
    if (at != in_snapshot.end() && at->second != engine) return index;
  }
  return std::nullopt;
}

KeyspaceEngines DirectoryEngines::all() const {
  KeyspaceEngines engines = in_snapshot;
  engines.insert(listed.begin(), listed.end());  // keeps what is there
  return engines;
}

DirectoryEngines FindEngines(FileSystem& files, const std::string& directory) {
  DirectoryEngines engines;
  auto listed = ReadKeyspaceFile(files, directory);
  if (listed) {
    engines.listed = std::move(*listed);
  } else {
    engines.list_status = listed.error();
  }
  const auto found = ListStoreFiles(files, directory);
  if (!found) {
    engines.list_status = found.error();
    return engines;
  }
  for (const uint64_t position : std::views::reverse(found->snapshots)) {
    const std::string path = directory + "/" + SnapshotName(position);
    const auto reader = SnapshotReader::Open(files, path);
    if (!reader) continue;  // what reads its items says why
    engines.snapshot = path;
    for (const SnapshotKeyspace& keyspace : (*reader)->keyspaces()) {
      engines.in_snapshot[keyspace.index] = keyspace.engine;
    }
    break;
  }
  return engines;
}

}  // namespace skep::durable
