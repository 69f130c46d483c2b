// A pool that has lost both index servers goes on with what either of them has logged.
#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "pool/disk/logged_pool_test.h"

namespace skep::pool {
namespace {

constexpr LogSync kPolicies[] = {LogSync::kNo, LogSync::kEverySecond, LogSync::kAlways};

constexpr uint32_t kThird = 13;
// More than either server sends between two commits.
constexpr uint64_t kMessages = 12;

class BothIndexServersTest : public LoggedPoolTest {
 protected:
  void LosesBoth(uint32_t id, uint64_t k, bool loses_power);
  void DiskFails(uint32_t id, const SimFileSystem::Fault& fault);
};

// Each of the two comes back first, and alone; then the other one, which gets the state.
TEST_F(BothIndexServersTest, EitherMayComeBackFirst) {
  for (const LogSync sync : kPolicies) {
    for (const uint32_t first : {kHash, kSorted}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(sync) << ", " << first);
      BeginPair(first, sync, 100);
      Kill(kHash);
      Kill(kSorted);
      const uint32_t back = first + 20;
      const uint32_t other = kHash + kSorted - first + 20;
      ASSERT_NO_FATAL_FAILURE(ExpectComesBack(back));
      pool_->Start(other);
      ASSERT_TRUE(RunUntilPaired(back, other));
      ASSERT_TRUE(RunUntilDone(50));
      Kill(back);
      ASSERT_NO_FATAL_FAILURE(ExpectAllIsThere(other));
    }
  }
}

// Both start at the same time: one of them comes back, the other one is its newcomer.
TEST_F(BothIndexServersTest, BothMayComeBackAtOnce) {
  BeginPair(1, LogSync::kEverySecond, 100);
  for (uint32_t round = 2; round < 5; ++round) {
    for (const uint32_t id : pool_->ids()) {
      if (pool_->at(id).runs()) Kill(id);
    }
    pool_->Start(kHash + 10 * round);
    pool_->Start(kSorted + 10 * round);
    ASSERT_TRUE(pool_->RunUntil([&] { return pool_->map().epoch != 0 && pool_->IsPaired(); }));
    ASSERT_TRUE(RunUntilDone(50));
  }
  const uint32_t last = pool_->map().sorted_server;
  Kill(pool_->map().hash_server);
  ASSERT_NO_FATAL_FAILURE(ExpectAllIsThere(last));
}

// Both processes are killed, or both machines lose power, before the k-th message of a server.
void BothIndexServersTest::LosesBoth(uint32_t id, uint64_t k, bool loses_power) {
  const uint32_t back = (k % 2 == 0 ? kHash : kSorted) + 20;
  slow_disk_ = DiskOf(back);
  compact_bytes_min_ = 1024;
  BeginPair(k, loses_power ? LogSync::kAlways : LogSync::kEverySecond, 40);
  MessageCount& messages = pool_->at(id).messages;
  messages.sent_max = messages.sent + k;
  EXPECT_TRUE(pool_->RunUntil([&] { return !pool_->at(id).runs(); }));
  slow_disk_ = 0;
  for (const uint32_t server : {kHash, kSorted}) {
    if (loses_power) {
      LosePower(server);
    } else {
      Kill(server);
    }
  }
  ExpectComesBack(back);
}

TEST_F(BothIndexServersTest, BothMayDieBeforeAnyMessage) {
  for (const uint32_t id : {kHash, kSorted}) {
    for (const bool loses_power : {false, true}) {
      for (uint64_t k = 0; k < kMessages && !HasFailure(); ++k) {
        SCOPED_TRACE(testing::Message() << id << ", " << k << ", " << loses_power);
        LosesBoth(id, k, loses_power);
      }
    }
  }
}

// D4: whatever else a power loss takes, a client that has joined is known, and has its chunk.
TEST_F(BothIndexServersTest, APowerLossTakesNoClientAndNoLease) {
  for (uint64_t seed = 1; seed < 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    BeginPair(seed, LogSync::kNo, 1);
    std::vector<uint32_t> leased = StateOf(kHash)->chunks().LeasedBy(1);
    ASSERT_EQ(leased.size(), 1u);
    LosePower(kHash);
    LosePower(kSorted);
    pool_->Start(kHash + 20);
    client_->Rest(true);
    ASSERT_TRUE(pool_->RunUntil([&] { return pool_->HasRoles(kHash + 20, 0); }));
    const IndexState& state = *StateOf(kHash + 20);
    EXPECT_TRUE(state.sessions().Knows(1));
    EXPECT_EQ(state.chunks().LeasedBy(1), leased);
  }
}

// D2: the directory of a server that was none of the last two is of no use, alone or first.
TEST_F(BothIndexServersTest, AServerOfEarlierRolesDoesNotComeBack) {
  BeginPair(1, LogSync::kEverySecond, 50);
  Kill(kSorted);
  ASSERT_TRUE(pool_->RunUntil([&] { return pool_->HasRoles(kHash, 0); }));
  pool_->Start(kThird);
  ASSERT_TRUE(RunUntilPaired(kHash, kThird));
  ASSERT_TRUE(RunUntilDone(50));
  Kill(kHash);
  Kill(kThird);
  pool_->Start(kSorted + 20);
  for (int i = 0; i < 500; ++i) pool_->Turn();
  EXPECT_TRUE(pool_->HasRoles(kHash, kThird));
  EXPECT_EQ(StateOf(kSorted + 20), nullptr);
  pool_->Start(kThird + 20);
  ASSERT_TRUE(RunUntilPaired(kThird + 20, kSorted + 20));
  ASSERT_TRUE(RunUntilDone(20));
  Kill(kThird + 20);
  ASSERT_NO_FATAL_FAILURE(ExpectAllIsThere(kSorted + 20));
}

// One that lives, also if it has not been heard of for a moment, has its roles.
TEST_F(BothIndexServersTest, NobodyComesBackWhileAServerLives) {
  BeginPair(1, LogSync::kEverySecond, 50);
  Kill(kHash);
  pool_->Start(kHash + 20);
  ASSERT_TRUE(RunUntilPaired(kSorted, kHash + 20));
  ASSERT_TRUE(RunUntilDone(20));
  Kill(kSorted);
  ASSERT_NO_FATAL_FAILURE(ExpectAllIsThere(kHash + 20));
}

// Whatever call of either disk fails, once or for some time, what was acknowledged is there.
void BothIndexServersTest::DiskFails(uint32_t id, const SimFileSystem::Fault& fault) {
  compact_bytes_min_ = 1024;
  BeginPair(fault.passed, fault.passed % 2 == 0 ? LogSync::kEverySecond : LogSync::kAlways, 30);
  SimFileSystem& disk = *disks_[DiskOf(id)];
  disk.Plan(fault);
  for (int i = 0; i < 600; ++i) pool_->Turn();
  disk.ClearFaults();
  const uint32_t last = pool_->map().sorted_server != 0 && fault.passed % 4 < 2
                            ? pool_->map().sorted_server
                            : pool_->map().hash_server;
  for (const uint32_t server : pool_->ids()) {
    if (pool_->at(server).runs()) Kill(server);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectComesBack(5000 + DiskOf(last)));
}

TEST_F(BothIndexServersTest, AnyCallOfADiskMayFail) {
  using Call = SimFileSystem::Call;
  for (const Call call : {Call::kOpen, Call::kWrite, Call::kAllocate, Call::kSync, Call::kRename,
                          Call::kRemove, Call::kList, Call::kSyncDirectory, Call::kRead}) {
    for (uint64_t passed = 0; passed < 3 && !HasFailure(); ++passed) {
      for (const bool is_for_ever : {false, true}) {
        for (const uint32_t id : {kHash, kSorted}) {
          SCOPED_TRACE(testing::Message() << id << ", call " << static_cast<int>(call) << ", "
                                          << passed << ", " << is_for_ever);
          DiskFails(id, {.call = call,
                         .passed = passed,
                         .error = passed % 2 == 0 ? EIO : ENOSPC,
                         .extent = SimFileSystem::Extent::kPart,
                         .is_for_ever = is_for_ever});
        }
      }
    }
  }
}

// Logs do not grow for ever, of whichever server, and what is left of them is the whole state.
TEST_F(BothIndexServersTest, LogsAreCompacted) {
  compact_bytes_min_ = 12 * 1024;
  for (const uint32_t back : {kHash, kSorted}) {
    compactions_ = 0;
    BeginPair(back, LogSync::kEverySecond, 30);
    for (int round = 1; round < 8; ++round) {
      ASSERT_TRUE(RunUntilDone(200));
      for (const uint32_t id : {kHash, kSorted}) EXPECT_LT(SegmentsOf(id), 15u);
    }
    EXPECT_GT(compactions_, 8u);
    Kill(kHash);
    Kill(kSorted);
    ASSERT_NO_FATAL_FAILURE(ExpectComesBack(back + 20));
  }
}

// The log of another pool is told from that of this one by the digest keys.
TEST_F(BothIndexServersTest, ADirectoryOfAnotherPoolIsRefused) {
  BeginPair(1, LogSync::kEverySecond, 20);
  Kill(kHash);
  auto disk = std::move(disks_[DiskOf(kHash)]);
  BeginPair(2, LogSync::kEverySecond, 20);
  Kill(kHash);
  disks_[DiskOf(kHash)] = std::move(disk);
  pool_->Start(kHash + 20);
  ASSERT_TRUE(RunUntilDone(20));
  EXPECT_FALSE(pool_->at(kHash + 20).index->problem().empty());
  EXPECT_TRUE(pool_->HasRoles(kSorted, 0));
}

}  // namespace
}  // namespace skep::pool
