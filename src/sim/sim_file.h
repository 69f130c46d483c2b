// sim_file.h: a disk in memory that forgets what was not synced, and fails on request.
//
// The rules of a power loss are those of sim_inode.h (bytes) and sim_names.h (names). Faults come
// from the seed (Options) or from a plan (FailOnce). A call that fails for a fault changes nothing
// that can be read, except Sync: see SimInode, I3.
//
// Beyond file.h: only files can be renamed (ENOTSUP for a directory).
//
// Thread safety: one owner of the disk and all its files. The disk outlives its files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "sim/sim_names.h"
#include "sim/trace.h"

namespace skep {

class SimFileSystem final : public FileSystem {
 public:
  enum class Operation : uint8_t {
    kRead,       // ReadAt
    kWrite,      // Append, WriteAt, Truncate
    kSync,       // Sync, SyncDirectory
    kDirectory,  // Open, Rename, Remove, CreateDirectory, List
  };

  struct Options {
    // How many of a million operations fail with EIO.
    uint32_t read_errors_ppm = 0;
    uint32_t write_errors_ppm = 0;
    uint32_t sync_errors_ppm = 0;
    // How many of a million reads return less than there is.
    uint32_t short_reads_ppm = 100'000;
    // A write that would make all files together larger fails with ENOSPC.
    uint64_t capacity_bytes = UINT64_MAX;
    // What happens while a file's Sync goes on, too late to be synced by it: time passes, say.
    std::function<void()> during_sync = {};
  };

  SimFileSystem(uint64_t seed, Trace& trace, Options options);
  SimFileSystem(uint64_t seed, Trace& trace) : SimFileSystem(seed, trace, Options()) {}

  // The machine loses power and comes back. Files open now fail for ever with EIO.
  void Crash();
  // Lets `successes` operations of the kind pass, then one fails with this errno.
  void FailOnce(Operation operation, uint64_t successes, int error);
  void set_options(const Options& options) { options_ = options; }

  Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status CreateDirectory(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  friend class SimFile;
  class HeldLock;
  struct Plan {
    Operation operation;
    uint64_t successes_left;
    int error;
  };

  // The errno this operation is to fail with; 0: none.
  int DrawFault(Operation operation);
  int PlannedFault(Operation operation);
  uint32_t ErrorsPpm(Operation operation) const;
  bool HasRoom(uint64_t more_bytes) const;

  Trace& trace_;
  Options options_;
  SeededRandom random_;
  SimNames names_;
  std::vector<Plan> plans_;
  std::set<std::string> locks_;
  uint64_t crashes_ = 0;
};

}  // namespace skep
