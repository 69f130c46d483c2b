#include "durable/durable_keyspaces.h"

#include <utility>

namespace skep::durable {

DurableKeyspaces::DurableKeyspaces(FileSystem& files, const std::string& directory, Log& log,
                                   const DirectoryEngines& found)
    : files_(files),
      directory_(directory),
      log_(log),
      recorded_(found.all()),
      is_listed_(found.listed == recorded_) {}

std::unique_ptr<Engine> DurableKeyspaces::Wrap(uint32_t keyspace, std::unique_ptr<Engine> engine) {
  const std::string name = engine->format();
  auto durable = std::make_unique<DurableEngine>(std::move(engine), keyspace, log_);
  const MutexLock lock(mutex_);
  engines_[keyspace] = durable.get();
  const auto [at, is_new] = recorded_.emplace(keyspace, name);
  if (is_new) {
    is_listed_ = false;
    if (lists_) static_cast<void>(WriteList());  // if it fails the saver's thread tries again
  } else {
    durable->StartAfter(kVersionsUntold, 0);  // the log may have nothing of it
  }
  return durable;
}

Status DurableKeyspaces::StartList() {
  const MutexLock lock(mutex_);
  lists_ = true;
  return WriteList();
}

Status DurableKeyspaces::List() {
  const MutexLock lock(mutex_);
  return WriteList();
}

Status DurableKeyspaces::WriteList() {
  if (is_listed_) return {};
  const Status s = WriteKeyspaceFile(files_, directory_, recorded_);
  is_listed_ = s.ok();
  return s;
}

DurableEngine* DurableKeyspaces::Find(uint32_t keyspace) const {
  const MutexLock lock(mutex_);
  const auto at = engines_.find(keyspace);
  return at == engines_.end() ? nullptr : at->second;
}

std::map<uint32_t, DurableEngine*> DurableKeyspaces::All() const {
  const MutexLock lock(mutex_);
  return engines_;
}

uint64_t DurableKeyspaces::MemoryBytes() const {
  const MutexLock lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [index, engine] : engines_) bytes += engine->Statistics().bytes;
  return bytes;
}

}  // namespace skep::durable
