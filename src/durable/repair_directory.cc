#include "durable/repair_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "durable/directory.h"
#include "durable/keyspace_file.h"
#include "durable/snapshot_reader.h"
#include "engine/keyspaces.h"

namespace skep::durable {
namespace {

// As the newest snapshot says whose footer is good.
Result<KeyspaceEngines> EnginesOfSnapshots(FileSystem& files, const std::string& directory) {
  const auto found = ListStoreFiles(files, directory);
  if (!found) return Fail(found.error());
  KeyspaceEngines engines;
  for (const uint64_t position : std::views::reverse(found->snapshots)) {
    const auto reader = SnapshotReader::Open(files, directory + "/" + SnapshotName(position));
    if (!reader) continue;
    for (const SnapshotKeyspace& keyspace : (*reader)->keyspaces()) {
      engines[keyspace.index] = keyspace.engine;
    }
    break;
  }
  return engines;
}

// Puts a damaged list of keyspaces aside.
Result<KeyspaceEngines> FindEngines(FileSystem& files, const std::string& directory,
                                    RepairReport* report) {
  const auto recorded = ReadKeyspaceFile(files, directory);
  if (recorded && !recorded->empty()) return recorded;
  if (!recorded && recorded.error().code() != Code::kCorrupt) return recorded;
  auto engines = EnginesOfSnapshots(files, directory);
  if (recorded || !engines) return engines;

  const std::string path = directory + "/" + kKeyspaceFile;
  const std::string aside = path + kDamagedSuffix;
  const auto text = files.ReadAll(path);
  if (!text) return Fail(text.error());
  auto& places = engines->empty() ? report->lost : report->made_good;
  places.push_back({.file = path, .offset = 0, .bytes = text->size(), .what = "the keyspaces"});
  if (const Status s = files.Rename(path, aside); !s.ok()) return Fail(s);
  report->put_aside.push_back(aside);
  return engines;
}

}  // namespace

Result<RecoveryReport> RepairDirectory(FileSystem& files, Clock& clock, Options options,
                                       std::string* problem) {
  const std::string& directory = options.directory;
  RecoveryReport report;
  RepairReport of_list;
  {
    const auto lock = files.Lock(directory + "/" + kLockFile);
    const auto engines = lock ? FindEngines(files, directory, &of_list)
                              : Result<KeyspaceEngines>(Fail(lock.error()));
    if (!engines) {
      *problem = fmt::format("{}: {}", directory, engines.error().ToString());
      return Fail(engines.error());
    }
    for (const auto& [index, engine] : *engines) {
      options.keyspace_engines[index] = engine;
      options.keyspaces = std::max(options.keyspaces, index + 1);
    }
  }
  auto persistence = Persistence::Open(files, clock, options, problem, true);
  if (!persistence) return Fail(persistence.error());
  auto keyspaces = Keyspaces::Make(options, nullptr, persistence->get());
  if (!keyspaces) {
    *problem = fmt::format("{}: {}", directory, keyspaces.error().ToString());
    return Fail(keyspaces.error());
  }
  Status s = (*persistence)->Recover(**keyspaces, &report, problem);
  if (!s.ok()) return Fail(s);
  s = (*persistence)->Close();
  if (!s.ok()) {
    *problem = fmt::format("{}: {}", directory, s.ToString());
    return Fail(s);
  }
  RepairReport& repair = report.repair;
  repair.lost.insert(repair.lost.begin(), of_list.lost.begin(), of_list.lost.end());
  repair.made_good.insert(repair.made_good.begin(), of_list.made_good.begin(),
                          of_list.made_good.end());
  repair.put_aside.insert(repair.put_aside.begin(), of_list.put_aside.begin(),
                          of_list.put_aside.end());
  return report;
}

}  // namespace skep::durable
