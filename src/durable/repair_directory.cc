#include "durable/repair_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "durable/directory.h"
#include "durable/directory_engines.h"
#include "durable/open_keyspaces.h"

namespace skep::durable {
namespace {

// Puts a list of keyspaces aside that is damaged or contradicts the newest snapshot, and writes
// what is known instead.
Result<KeyspaceEngines> TakeEngines(FileSystem& files, const std::string& directory,
                                    RepairReport* report) {
  const DirectoryEngines found = FindEngines(files, directory);
  const Status& status = found.list_status;
  if (!status.ok() && status.code() != Code::kCorrupt) return Fail(status);
  KeyspaceEngines engines = found.all();
  if (status.ok() && !found.Contradiction()) return engines;

  const std::string path = directory + "/" + kKeyspaceFile;
  const std::string aside = path + kDamagedSuffix;
  const auto text = files.ReadAll(path);
  if (!text) return Fail(text.error());
  auto& places = engines.empty() ? report->lost : report->made_good;
  places.push_back({.file = path,
                    .offset = 0,
                    .bytes = text->size(),
                    .what = status.ok() ? kContradictoryList : kDamagedList});
  if (const Status s = files.Rename(path, aside); !s.ok()) return Fail(s);
  report->put_aside.push_back(aside);
  if (engines.empty()) return engines;
  const Status s = WriteKeyspaceFile(files, directory, engines);
  return s.ok() ? Result<KeyspaceEngines>(std::move(engines)) : Fail(s);
}

}  // namespace

Result<RecoveryReport> RepairDirectory(FileSystem& files, Clock& clock, Options options,
                                       std::string* problem) {
  const std::string& directory = options.directory;
  RepairReport of_list;
  {
    const auto lock = LockDirectory(files, directory, problem);
    if (!lock) return Fail(lock.error());
    const auto engines = TakeEngines(files, directory, &of_list);
    if (!engines) {
      *problem = fmt::format("{}: {}", directory, engines.error().ToString());
      return Fail(engines.error());
    }
    for (const auto& [index, engine] : *engines) {
      options.keyspace_engines[index] = engine;
      options.keyspaces = std::max(options.keyspaces, index + 1);
    }
  }
  auto opened = OpenKeyspaces(files, clock, options, problem, OpenMode::kRepair);
  if (!opened) return Fail(opened.error());
  if (const Status s = opened->persistence->Close(); !s.ok()) {
    *problem = fmt::format("{}: {}", directory, s.ToString());
    return Fail(s);
  }
  RepairReport& repair = opened->report.repair;
  repair.lost.insert(repair.lost.begin(), of_list.lost.begin(), of_list.lost.end());
  repair.made_good.insert(repair.made_good.begin(), of_list.made_good.begin(),
                          of_list.made_good.end());
  repair.put_aside.insert(repair.put_aside.begin(), of_list.put_aside.begin(),
                          of_list.put_aside.end());
  return std::move(opened->report);
}

}  // namespace skep::durable
