#include "durable/open_keyspaces.h"

#include <utility>

namespace skep::durable {

Result<OpenedKeyspaces> OpenKeyspaces(FileSystem& files, Clock& clock, const Options& options,
                                      std::string* problem, OpenMode mode,
                                      const EngineInfo* engine) {
  OpenedKeyspaces result;
  if (!options.directory.empty()) {
    auto persistence = Persistence::Open(files, clock, options, problem, mode == OpenMode::kRepair);
    if (!persistence) return Fail(persistence.error());
    result.persistence = std::move(*persistence);
  }
  EngineWrapper* const wrapper =
      result.persistence != nullptr ? &result.persistence->wrapper() : nullptr;
  auto keyspaces = Keyspaces::Make(options, engine, wrapper, problem);
  if (!keyspaces) return Fail(keyspaces.error());
  result.keyspaces = std::move(*keyspaces);
  if (result.persistence == nullptr) return result;
  const Status s = mode == OpenMode::kRehearse
                       ? result.persistence->Rehearse(*result.keyspaces, &result.report, problem)
                       : result.persistence->Recover(*result.keyspaces, &result.report, problem);
  if (!s.ok()) return Fail(s);
  if (const Status check = result.keyspaces->CheckCollections(problem); !check.ok())
    return Fail(check);
  return result;
}

}  // namespace skep::durable
