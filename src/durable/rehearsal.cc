#include "durable/rehearsal.h"

#include <errno.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "durable/directory.h"
#include "durable/directory_engines.h"
#include "durable/log_format.h"
#include "durable/open_keyspaces.h"

namespace skep::durable {
namespace {

constexpr Status kNoWrites(Code::kIo, "a rehearsal writes nothing", EROFS);

// Files that can be read and not changed, but for the lock file.
class ReadOnlyFiles final : public FileSystem {
 public:
  explicit ReadOnlyFiles(FileSystem& files) : files_(files) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    if (mode != Mode::kRead) return Fail(kNoWrites);
    return files_.Open(path, mode);
  }
  Result<std::vector<std::string>> List(const std::string& path) override {
    return files_.List(path);
  }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    return files_.Lock(path);
  }
  Status Rename(const std::string&, const std::string&) override { return kNoWrites; }
  Status Remove(const std::string&) override { return kNoWrites; }
  // Nothing is to do, as the directory is there.
  Status CreateDirectory(const std::string&) override { return {}; }
  Status SyncDirectory(const std::string&) override { return {}; }

 private:
  FileSystem& files_;
};

}  // namespace

Result<Rehearsal> RehearseStart(FileSystem& files, Clock& clock, Options options,
                                std::string* problem) {
  const std::string& directory = options.directory;
  const auto fail = [&](const Status& status) {
    if (problem->empty()) *problem = fmt::format("{}: {}", directory, status.ToString());
    return Fail(status);
  };
  const auto names = files.List(directory);
  if (!names) return fail(names.error());
  const bool is_store = std::ranges::any_of(*names, [](const std::string& name) {
    return name == kKeyspaceFile || PositionOfSegment(name) || PositionOfSnapshot(name);
  });
  if (!is_store) return fail({Code::kInvalidArgument, "nothing of a store is here"});
  for (const auto& [index, engine] : FindEngines(files, directory).all()) {
    options.keyspace_engines[index] = engine;
    options.keyspaces = std::max(options.keyspaces, index + 1);
  }
  ReadOnlyFiles readable(files);
  const auto opened = OpenKeyspaces(readable, clock, options, problem, OpenMode::kRehearse);
  if (!opened) return fail(opened.error());
  Rehearsal rehearsal{.report = opened->report, .items = {}};
  for (uint32_t i = 0; i < opened->keyspaces->count(); ++i) {
    const Engine* const engine = opened->keyspaces->if_used(i);
    if (engine != nullptr) rehearsal.items[i] = engine->Statistics().items;
  }
  return rehearsal;
}

}  // namespace skep::durable
