// sim_file.h: a disk in memory that loses data that was not synced, and fails on request.
//
// The rules of a power loss are those of sim_inode.h (bytes) and sim_names.h (names). Faults come
// from the seed (Options) or from a plan: FailOnce() counts operations of a kind, Plan() calls of
// one function, and says how much of the call is done before it fails. Any other call that fails
// changes nothing that can be read, except Sync: see SimInode, I3.
//
// Narrower than file.h: only files can be renamed (ENOTSUP for a directory).
//
// Thread safety: one owner of the disk and all its files. The disk must outlive its files.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
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
    kWrite,      // Append, WriteAt, Allocate, Truncate
    kSync,       // Sync, SyncDirectory
    kDirectory,  // Open, Rename, Remove, CreateDirectory, List, Lock
    kOther,      // Size
  };
  // The functions of file.h that can fail.
  enum class Call : uint8_t {
    kOpen,
    kRead,
    kWrite,  // Append, WriteAt
    kAllocate,
    kTruncate,
    kSync,
    kSize,
    kRename,
    kRemove,
    kCreateDirectory,
    kList,
    kSyncDirectory,
    kLock,
  };
  static constexpr size_t kCalls = static_cast<size_t>(Call::kLock) + 1;

  // How much of a call is done although it fails.
  enum class Extent : uint8_t {
    kNone,
    kPart,  // half of a write, an allocation or a truncation; nothing of other calls
    kAll,   // everything; but what is opened, read or listed is not returned
  };
  struct Fault {
    Call call = Call::kWrite;
    uint64_t passed = 0;  // how many calls succeed first
    int error = EIO;
    Extent extent = Extent::kNone;
    bool is_for_ever = false;  // else once
  };

  struct Options {
    // How many of a million operations of a kind fail with EIO.
    uint32_t read_errors_ppm = 0;
    uint32_t write_errors_ppm = 0;
    uint32_t sync_errors_ppm = 0;
    // How many of a million reads return less than there is.
    uint32_t short_reads_ppm = 100'000;
    // A write that would make all files together larger fails with ENOSPC.
    uint64_t capacity_bytes = UINT64_MAX;
    // Called during a file's Sync; changes made in it are too late for that Sync.
    std::function<void()> during_sync = {};
  };

  SimFileSystem(uint64_t seed, Trace& trace, Options options);
  SimFileSystem(uint64_t seed, Trace& trace) : SimFileSystem(seed, trace, Options()) {}

  // The machine loses power and comes back. Files open now fail for ever with EIO.
  void Crash();
  // Lets `successes` operations of the kind pass, then one fails with this errno.
  void FailOnce(Operation operation, uint64_t successes, int error);
  // Adds a fault to the plan from now on; several may be planned.
  void Plan(const Fault& fault) { faults_.push_back(fault); }
  // Drops the plan.
  void ClearFaults() { faults_.clear(); }
  // Returns how many calls have failed because of Plan().
  uint64_t faults_met() const { return faults_met_; }
  void set_options(const Options& options) { options_ = options; }

  Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status CreateDirectory(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;
  uint64_t FreeBytes(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  friend class SimFile;
  class HeldLock;
  struct Count {
    Operation operation;
    uint64_t successes_left;
    int error;
  };

  // The errno that a call is to fail with; 0: none.
  struct Failure {
    int error = 0;
    Extent extent = Extent::kNone;
  };
  static Operation OperationOf(Call call);
  Failure DrawFault(Call call);
  Failure PlannedFault(Call call);
  int CountedFault(Operation operation);
  Result<std::shared_ptr<SimInode>> OpenInode(const std::string& path, Mode mode);
  uint32_t ErrorsPpm(Operation operation) const;
  bool HasRoom(uint64_t more_bytes) const;

  Trace& trace_;
  Options options_;
  SeededRandom random_;
  SimNames names_;
  std::vector<Count> counts_;
  std::vector<Fault> faults_;
  uint64_t faults_met_ = 0;
  // A file is locked by itself, a directory by its path.
  using Locked = std::pair<std::shared_ptr<SimInode>, std::string>;
  std::set<Locked> locks_;
  uint64_t crashes_ = 0;
};

}  // namespace skep
