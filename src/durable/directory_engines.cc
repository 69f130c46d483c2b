#include "durable/directory_engines.h"

#include <fmt/format.h>

#include <ranges>

#include "durable/directory.h"
#include "durable/snapshot_reader.h"
#include "keyspace/factory.h"

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
  engines.insert(listed.begin(), listed.end());  // does not replace an entry
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
    if (!reader) continue;  // the recovery says what is wrong with it
    engines.snapshot = path;
    for (const SnapshotKeyspace& keyspace : (*reader)->keyspaces()) {
      engines.in_snapshot[keyspace.index] = keyspace.engine;
    }
    break;
  }
  return engines;
}

Status CheckConfigured(const DirectoryEngines& engines, const Options& options,
                       std::string* problem) {
  const std::string& directory = options.directory;
  const std::string list = directory + "/" + kKeyspaceFile;
  const auto fail = [&](const Status& status, std::string_view what) {
    *problem = fmt::format("{}: {}", what, status.ToString());
    return status;
  };
  if (!engines.list_status.ok()) return fail(engines.list_status, list);
  if (const auto index = engines.Contradiction()) {
    *problem = fmt::format(
        "{}: keyspace {} is of the engine {}, {} says {}; skep-check --repair goes by the snapshot",
        list, *index, engines.listed.at(*index), engines.snapshot, engines.in_snapshot.at(*index));
    return {Code::kCorrupt, "the list of keyspaces contradicts the snapshot", *index};
  }
  for (const auto& [index, engine] : engines.all()) {
    const auto own = options.keyspace_engines.find(index);
    const auto spec =
        ParseEngine(own != options.keyspace_engines.end() ? own->second : options.engine,
                    IndexOptionsOf(options), problem);
    if (!spec) {
      *problem = fmt::format("keyspace {}: {}", index, *problem);
      return spec.error();
    }
    const std::string wanted = FormatOf(*spec);
    if (index < options.keyspaces && wanted == engine) continue;
    *problem = index < options.keyspaces
                   ? fmt::format("{}: keyspace {} is of the engine {}, the configuration says {}",
                                 directory, index, engine, wanted)
                   : fmt::format("{}: there is a keyspace {}, the configuration has only {}",
                                 directory, index, options.keyspaces);
    return {Code::kInvalidArgument, "a keyspace is configured otherwise"};
  }
  return {};
}

}  // namespace skep::durable
