// logged_pool_test.h: a simulated pool whose index servers keep logs, each on a disk of its own,
// and a client of it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "pool/disk/disk_index_log.h"
#include "pool/solo_pool_test.h"
#include "sim/sim_file.h"

namespace skep::pool {

// Servers are numbered so that the last digit says which disk they have.
class LoggedPoolTest : public SoloPoolTest {
 protected:
  static constexpr uint32_t kDisks = 4;
  static uint32_t DiskOf(uint32_t id) { return id % 10; }

  void TearDown() override {
    pool_.reset();
    for (auto& log : logs_) log.reset();
  }

  void Begin(uint64_t seed, LogSync sync) {
    client_.reset();
    TearDown();
    sync_ = sync;
    pool_ = std::make_unique<CoordinatedPool>(seed);
    for (auto& disk : disks_) disk = std::make_unique<SimFileSystem>(++seed, trace_);
    pool_->open_log = [this](uint32_t id) { return OpenLog(id); };
    client_ = std::make_unique<CommitClient>(*pool_, seed);
    pool_->each_turn = [this] {
      client_->Turn();
      ++turns_;
      for (auto& log : logs_) {
        const bool rests = log == logs_[slow_disk_] && turns_ % kTurnsOfSlowDisk != 0;
        if (log == nullptr || rests) continue;
        log->Step();
        if (log->IsLong() && log->Compact().value_or(false)) ++compactions_;
      }
    };
  }
  IndexLog* OpenLog(uint32_t id) {
    const uint32_t disk = DiskOf(id);
    logs_[disk].reset();
    std::string problem;
    auto log = DiskIndexLog::Open(*disks_[disk], pool_->clock(),
                                  {.directory = "/index",
                                   .sync = sync_,
                                   .segment_bytes = 4 * 1024,
                                   .compact_bytes_min = compact_bytes_min_,
                                   .make_tree = [this] { return pool_->MakeTree(); },
                                   .wake = {}},
                                  &problem);
    if (!log) problem_ = problem;
    if (log) logs_[disk] = std::move(*log);
    return logs_[disk].get();
  }
  size_t SegmentsOf(uint32_t id) {
    return durable::ListStoreFiles(*disks_[DiskOf(id)], "/index")->segments.size();
  }
  // Ends its process.
  void Kill(uint32_t id) {
    if (pool_->at(id).keeper != nullptr) pool_->Kill(id);
    logs_[DiskOf(id)].reset();
  }
  // The machine of a server loses power.
  void LosePower(uint32_t id) {
    Kill(id);
    disks_[DiskOf(id)]->Crash();
  }
  void BeginPair(uint64_t seed, LogSync sync, uint64_t operations) {
    Begin(seed, sync);
    pool_->Start(kHash);
    pool_->Start(kSorted);
    ASSERT_TRUE(RunUntilDone(operations));
    ASSERT_TRUE(pool_->HasRoles(kHash, kSorted));
  }

  // The server starts, alone, and has what the client has been told.
  void ExpectComesBack(uint32_t id) {
    pool_->Start(id);
    ASSERT_TRUE(pool_->RunUntil([&] { return pool_->HasRoles(id, 0); }));
    ASSERT_NO_FATAL_FAILURE(ExpectAllIsThere(id));
  }

  static constexpr uint32_t kHash = 11;
  static constexpr uint32_t kSorted = 12;

  Trace trace_;
  LogSync sync_ = LogSync::kEverySecond;
  // This disk does its work every so many turns only.
  static constexpr uint64_t kTurnsOfSlowDisk = 30;
  uint32_t slow_disk_ = 0;
  uint64_t turns_ = 0;
  uint64_t compact_bytes_min_ = UINT64_MAX;
  uint64_t compactions_ = 0;  // of all logs
  std::string problem_;       // why a log could not be opened
  std::array<std::unique_ptr<SimFileSystem>, kDisks> disks_;
  std::array<std::unique_ptr<DiskIndexLog>, kDisks> logs_;
};

}  // namespace skep::pool
