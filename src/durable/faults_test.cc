// Every call of the file system fails, one at a time: what was acknowledged is there afterwards.
//
// A scripted load runs on a store on a simulated disk. The n-th call of each function of
// base/file.h fails, for every n there is: with EIO and ENOSPC; before anything is done, half-way,
// and when all is done; once, for ever, and until the disk is well again. It fails while a store is
// made, while it serves and writes a snapshot, while it recovers, and while it is repaired. Then
// the process is closed, killed or without power, the next one starts, and its state has to be one
// that there was, not older than the last that was acknowledged.
//
// SKEP_FAULTS=all tries every fault; without it each test tries a fixed slice of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/wanted_faults_test.h"
#include "durable/directory_check.h"
#include "durable/log_test.h"
#include "durable/repair_directory.h"

namespace skep::durable {
namespace {

using Fault = SimFileSystem::Fault;
using Call = SimFileSystem::Call;
using Extent = SimFileSystem::Extent;

constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr uint64_t kFar = 4'000'000'000'000;
constexpr uint32_t kKeyspaces = 2;

enum class End : uint8_t { kClose, kKill, kPowerLoss };
enum class Phase : uint8_t { kMaking, kServing, kRecovering };

struct Scenario {
  LogSync policy = LogSync::kAlways;
  End end = End::kKill;
  Phase phase = Phase::kServing;
  bool heals = false;       // what fails for ever is well again before the end
  bool saves = false;       // a snapshot behind the fault, before the end
  bool is_default = false;  // segments of the default size, else of 1 MiB
  uint64_t seed = 1;        // of the disk
  std::string engine = "model";
};

std::string TextOf(const Fault& fault) {
  std::ostringstream out;
  constexpr const char* kNames[] = {
      "open", "read",           "write",  "allocate", "truncate",
      "sync", "size",           "rename", "remove",   "create directory",
      "list", "sync directory", "lock"};
  constexpr const char* kExtents[] = {"nothing", "half", "all"};
  out << kNames[static_cast<size_t>(fault.call)] << " number " << fault.passed
      << (fault.is_for_ever ? " and all behind it fail" : " fails") << " with " << fault.error
      << ", " << kExtents[static_cast<size_t>(fault.extent)] << " done";
  return out.str();
}

std::ostream& operator<<(std::ostream& out, const Scenario& setup) {
  constexpr const char* kPolicies[] = {"no", "everysec", "always"};
  constexpr const char* kEnds[] = {"close", "kill", "power loss"};
  constexpr const char* kPhases[] = {"making", "serving", "recovering"};
  return out << kPhases[static_cast<size_t>(setup.phase)] << ", "
             << kPolicies[static_cast<size_t>(setup.policy)] << ", "
             << kEnds[static_cast<size_t>(setup.end)] << (setup.heals ? ", heals" : "")
             << (setup.saves ? ", saves" : "") << (setup.is_default ? ", 64 MiB" : ", 1 MiB")
             << ", " << setup.engine << ", seed " << setup.seed;
}

// All pairs of a keyspace: checksums of the values, and the deadlines.
using Digest = std::map<std::string, std::pair<uint32_t, uint64_t>>;

Digest DigestOf(Engine& engine, uint64_t now_ms) {
  Digest digest;
  const auto walk = *engine.OpenPairIterator(now_ms);
  while (true) {
    const auto pairs = walk->Next();
    SKEP_CHECK(pairs.has_value());
    if (pairs->empty()) return digest;
    for (const Pair& pair : *pairs) {
      digest[std::string(pair.key)] = {Crc32c(pair.value), pair.deadline_ms};
    }
  }
}

// The batch of a number: of all kinds of changes, small and large.
void Fill(Batch& batch, uint64_t number) {
  const auto copy = [&](std::string text) { return batch.scratch().Copy(text); };
  const std::string n = std::to_string(number % 5);
  const std::string_view key = copy("key " + n);
  switch (number % 8) {
    case 0:
    case 4:
      batch.Put(copy("large " + n),
                copy(std::string(150'000, static_cast<char>('a' + number % 26))));
      batch.Put(key, copy("beside " + std::to_string(number)));
      break;
    case 1:
      batch.Apply("counter", FindFunction("add-decimal"), "1");
      batch.Put(key, copy("counted " + std::to_string(number)));
      break;
    case 2:
      batch.Apply("text", FindFunction("append"), copy(n));
      batch.Apply("counter", FindFunction("add-decimal"), "10");
      break;
    case 3:
      batch.Add({.op = Op::kPut, .key = key, .value = "due", .deadline_ms = kFar + number});
      break;
    case 5:
      batch.Put("from", copy("moved " + std::to_string(number)));
      batch.Persist(key);
      break;
    case 6:
      batch.Move("from", copy("to " + n));
      break;
    case 7:
      batch.DeleteRange(Range::Between("key 2", "key 4"));
      batch.Delete("to 1");
      batch.Put("z", copy(std::to_string(number)));
  }
}

// A store through several processes, and what is to be found in it.
class Store {
 public:
  explicit Store(const Scenario& setup)
      : setup_(setup),
        disk_(setup.seed, trace_, {.short_reads_ppm = 0}),
        store_{.engine = setup.engine,
               .keyspaces = kKeyspaces,
               .directory = kTestDirectory,
               .log_sync = setup.policy,
               .log_segment_bytes = setup.is_default ? Options().log_segment_bytes : kMebibyte,
               .recovery_threads = 1} {}

  SimFileSystem& disk() { return disk_; }
  Log& log() { return persistence_->log(); }

  // Starts a process. If the disk does not let it, it may be tried again.
  Status Start() {
    problem_.clear();
    auto opened = OpenKeyspaces(disk_, clock_, store_, &problem_);
    if (!opened) return opened.error();
    persistence_ = std::move(opened->persistence);
    keyspaces_ = std::move(opened->keyspaces);
    Compare();
    return {};
  }
  // Starts a process on a disk that is well.
  void StartWell() {
    disk_.ClearFaults();
    CheckFiles();
    const Status s = Start();
    ASSERT_TRUE(s.ok()) << problem_;
    Rest();
  }

  // Executes so many batches, each acknowledged as the policy says, and steps of the log's thread
  // beside them.
  void Serve(uint64_t batches) {
    for (const uint64_t end = number_ + batches; number_ < end; ++number_) {
      Execute();
      Step();
    }
  }
  // Lets the log's thread do its work while no batch comes.
  void Rest() {
    for (int i = 0; i < 4; ++i) Step();
  }
  Status Save() {
    const Status s = persistence_->saver().Save();
    Step();
    return s;
  }
  // Checks that writes are taken and acknowledged when the disk is well.
  void CheckIsWell() {
    Rest();
    ASSERT_TRUE(log().admits()) << log().status().ToString();
    Execute();
    ++number_;
    for (auto& [index, kept] : kept_) keyspaces_->at(index).WantSync(kept.ticket, false);
    Rest();
    NoteAnswered();
    for (auto& [index, kept] : kept_) {
      EXPECT_TRUE(kept.waiting.empty()) << "a write is not acknowledged";
    }
  }

  void Stop(End end) {
    NoteAnswered();
    if (end == End::kClose) {
      const bool is_closed = persistence_->Close().ok();
      for (auto& [index, kept] : kept_) {
        if (is_closed) kept.answered = kept.first + kept.states.size() - 1;
      }
    }
    for (auto& [index, kept] : kept_) {
      // A power loss may take batches that were written and not synced.
      if (end == End::kPowerLoss) kept.answered = kept.synced;
      kept.waiting.clear();
    }
    Drop();
    if (end == End::kPowerLoss) disk_.Crash();
  }
  // Turns a bit in the middle of the first file of these names, as if it had decayed on the disk.
  void Decay(std::string_view prefix) {
    const auto names = *disk_.List(kTestDirectory);
    for (const std::string& name : names) {
      if (!name.starts_with(prefix)) continue;
      const std::string path = std::string(kTestDirectory) + "/" + name;
      auto file = *disk_.Open(path, FileSystem::Mode::kReadWrite);
      const uint64_t middle = std::min(*file->Size() / 2, uint64_t{200'000});
      char byte = 0;
      SKEP_CHECK(*file->ReadAt(middle, &byte, 1) == 1);
      byte ^= 4;
      SKEP_CHECK(file->WriteAt(middle, {&byte, 1}).ok() && file->Sync().ok());
      return;
    }
    FAIL() << "no " << prefix;
  }
  Status Repair() {
    problem_.clear();
    const auto report = RepairDirectory(disk_, clock_, store_, &problem_);
    return report ? Status() : report.error();
  }
  // The state from now on is the one that the next start finds.
  std::vector<Digest> StartAnew() {
    disk_.ClearFaults();
    kept_.clear();
    is_known_ = false;
    const Status s = Start();
    is_known_ = true;
    EXPECT_TRUE(s.ok()) << problem_;
    std::vector<Digest> digests;
    for (auto& [index, kept] : kept_) digests.push_back(kept.states.back());
    return digests;
  }

  // The power is lost while no process runs: what a start that failed has done is not synced.
  void LosePower() {
    for (auto& [index, kept] : kept_) kept.answered = std::min(kept.answered, kept.synced);
    disk_.Crash();
  }

 private:
  struct Waiting {
    size_t state;
    Version ticket;
    bool is_answered = false;
  };
  struct Kept {
    std::deque<Digest> states = {{}};
    size_t first = 0;     // number of states[0]
    size_t answered = 0;  // the last state that was acknowledged
    size_t synced = 0;    // the last one that was acknowledged as synced
    std::deque<Waiting> waiting;
    Version ticket = 0;  // the highest
  };

  uint64_t now_ms() { return clock_.WallMs(); }

  void Drop() {
    keyspaces_.reset();
    persistence_.reset();
  }

  void Execute() {
    const auto index = static_cast<uint32_t>(number_ % 3 == 0 ? 1 : 0);
    Engine& engine = keyspaces_->at(index);
    Batch batch(Batch::Kind::kAtomic);
    batch.set_now_ms(now_ms());
    Fill(batch, number_);
    Kept& kept = kept_[index];
    kept.ticket = std::max(kept.ticket, engine.Execute(batch));
    kept.states.push_back(DigestOf(engine, now_ms()));
    kept.waiting.push_back({.state = kept.first + kept.states.size() - 1, .ticket = kept.ticket});
    if (setup_.policy == LogSync::kAlways) {
      engine.WantSync(kept.ticket, true);
    } else {
      log().Publish();
    }
    NoteAnswered();
  }

  void Step() {
    clock_.Advance(250'000'000);
    log().Step();
    if (++steps_ % 8 == 0) {
      persistence_->saver().Step();
      for (uint32_t i = 0; i < kKeyspaces; ++i) keyspaces_->at(i).Maintain(now_ms());
    }
    NoteAnswered();
  }

  void NoteAnswered() {
    for (auto& [index, kept] : kept_) {
      Engine& engine = keyspaces_->at(index);
      for (const Waiting& waiting : kept.waiting) {
        if (engine.gate().IsReleased(waiting.ticket)) kept.answered = waiting.state;
      }
      while (!kept.waiting.empty() &&
             engine.synced_gate().IsReleased(kept.waiting.front().ticket)) {
        kept.synced = kept.waiting.front().state;
        kept.waiting.pop_front();
      }
    }
  }

  // Checks that skep-check finds no damage.
  void CheckFiles() {
    std::string problem;
    const auto check = CheckDirectory(disk_, kTestDirectory, nullptr, &problem);
    if (!check) {  // nothing was made yet
      EXPECT_TRUE(check.error().code() == Code::kInvalidArgument ||
                  check.error().detail() == ENOENT)
          << problem;
      return;
    }
    for (const Damage& damage : check->damage) {
      ADD_FAILURE() << damage.file << ", byte " << damage.offset << ": " << damage.bytes
                    << " bytes of " << damage.what;
    }
  }

  void Compare() {
    for (uint32_t index = 0; index < kKeyspaces; ++index) {
      Kept& kept = kept_[index];
      Digest recovered = DigestOf(keyspaces_->at(index), now_ms());
      size_t at = kept.answered - kept.first;
      while (at < kept.states.size() && kept.states[at] != recovered) ++at;
      if (at == kept.states.size() && is_known_) {
        const auto old = std::ranges::find(kept.states, recovered);
        ADD_FAILURE() << "keyspace " << index << " of " << recovered.size() << " keys is "
                      << (old == kept.states.end()
                              ? "no state that there was"
                              : "state " + std::to_string(old - kept.states.begin() +
                                                          static_cast<ptrdiff_t>(kept.first)))
                      << ", not one of those from " << kept.answered << " to "
                      << kept.first + kept.states.size() - 1;
      }
      kept = {.states = {std::move(recovered)}};
    }
  }

  const Scenario setup_;
  Trace trace_;
  SimClock clock_;
  SimFileSystem disk_;
  const Options store_;
  std::string problem_;
  std::unique_ptr<Persistence> persistence_;
  std::unique_ptr<Keyspaces> keyspaces_;
  std::map<uint32_t, Kept> kept_;
  uint64_t number_ = 0;   // of the next batch
  uint64_t steps_ = 0;    // so far
  bool is_known_ = true;  // what a start has to find
};

// A start that fails leaves everything as it was, however often it is tried.
void StartSomehow(Store& store, const Scenario& setup, size_t faults) {
  for (size_t tries = 0; tries <= faults; ++tries) {
    if (store.Start().ok()) return store.Rest();
    if (setup.end == End::kPowerLoss) store.LosePower();
  }
  store.StartWell();
}

// Runs the scenario with these faults. Returns how many calls have failed.
uint64_t RunFaults(const Scenario& setup, const std::vector<Fault>& faults) {
  Store store(setup);
  const auto plan = [&] {
    for (const Fault& fault : faults) store.disk().Plan(fault);
  };
  if (setup.phase == Phase::kMaking) {
    plan();
    StartSomehow(store, setup, faults.size());
    store.Serve(10);
  } else {
    store.StartWell();
    store.Serve(12);
  }
  if (setup.phase == Phase::kServing) plan();
  static_cast<void>(store.Save());
  store.Serve(22);
  static_cast<void>(store.Save());
  store.Serve(4);
  if (setup.heals) store.disk().ClearFaults();
  const bool is_well =
      setup.heals || std::ranges::none_of(faults, [](const Fault& f) { return f.is_for_ever; });
  if (setup.saves) {
    const bool is_past = setup.heals || store.disk().faults_met() == faults.size();
    const Status s = store.Save();
    EXPECT_TRUE(s.ok() || !is_well || !is_past) << s.ToString();
    store.Serve(3);
  }
  if (is_well && faults.size() == 1) store.CheckIsWell();
  store.Stop(setup.end);
  if (setup.phase == Phase::kRecovering) {
    plan();
    StartSomehow(store, setup, faults.size());
    store.Serve(5);
    store.Stop(setup.end);
  }
  const uint64_t met = store.disk().faults_met();
  store.StartWell();
  if (testing::Test::HasFatalFailure()) return met;
  store.Serve(3);
  store.CheckIsWell();
  store.Stop(End::kClose);
  store.StartWell();
  return met;
}

struct Tried {
  uint64_t runs = 0, met = 0;
  // Prints the numbers, and checks that so many calls have failed, at least.
  void Print(const char* what, uint64_t met_min) const {
    EXPECT_GE(met, met_min);
    std::printf("faults: %s: %llu faults tried, %llu calls failed\n", what,
                static_cast<unsigned long long>(runs), static_cast<unsigned long long>(met));
  }
};

// How a call can fail.
std::vector<Fault> WaysOf(Call call) {
  std::vector<Fault> ways;
  for (const int error : {EIO, ENOSPC}) {
    for (const Extent extent : {Extent::kNone, Extent::kPart, Extent::kAll}) {
      const bool is_read =
          call == Call::kRead || call == Call::kSize || call == Call::kList || call == Call::kLock;
      const bool has_part =
          call == Call::kWrite || call == Call::kAllocate || call == Call::kTruncate;
      if (is_read && (extent != Extent::kNone || error == ENOSPC)) continue;
      if (extent == Extent::kPart && !has_part) continue;
      for (const bool is_for_ever : {false, true}) {
        ways.push_back(
            {.call = call, .error = error, .extent = extent, .is_for_ever = is_for_ever});
      }
    }
  }
  return ways;
}

// The numbers of the faults that a row tries: with SKEP_FAULTS=all every number, until no call
// fails; otherwise one number in one row of `stride`. Calls that a run makes rarely get low
// numbers.
class Row {
 public:
  Row(Call call, uint64_t number, uint64_t stride) {
    if (WantsAllFaults()) return;
    const bool is_often =
        call == Call::kWrite || call == Call::kSync || call == Call::kSyncDirectory;
    const uint64_t mixed = number * 0x9e3779b97f4a7c15 >> 40;
    is_over_ = mixed % stride != 0;
    next_ = mixed / stride % (is_often ? 24 : 3);
  }
  // The next number; nothing at the end.
  std::optional<uint64_t> Next() {
    if (is_over_) return std::nullopt;
    is_over_ = !WantsAllFaults();
    return next_++;
  }
  void End() { is_over_ = true; }

 private:
  bool is_over_ = false;
  uint64_t next_ = 0;
};

// Tries the faults of a phase: all of them, or a slice of one row in `stride`.
Tried TryEach(Phase phase, LogSync policy, uint64_t stride) {
  Tried tried;
  uint64_t number = static_cast<uint64_t>(policy) << 32;  // of the row, or the fault
  for (size_t call = 0; call < SimFileSystem::kCalls; ++call) {
    for (const Fault& way : WaysOf(static_cast<Call>(call))) {
      for (int lasting = 0; lasting < (way.is_for_ever ? 2 : 1); ++lasting) {
        for (const End end : {End::kClose, End::kKill, End::kPowerLoss}) {
          Row row(static_cast<Call>(call), ++number, stride);
          while (const auto n = row.Next()) {
            Fault fault = way;
            fault.passed = *n;
            const uint64_t mixed = ++number * 0x9e3779b97f4a7c15;
            const Scenario setup = {.policy = policy,
                                    .end = end,
                                    .phase = phase,
                                    .heals = lasting == 1,
                                    .saves = (mixed >> 60) % 2 == 0,
                                    .is_default = (mixed >> 50) % 16 == 0,
                                    .seed = mixed >> 32};
            SCOPED_TRACE(testing::Message() << setup << ": " << TextOf(fault));
            const uint64_t met = RunFaults(setup, {fault});
            if (testing::Test::HasFailure()) return tried;
            if (met == 0) row.End();
            tried.runs += met > 0 ? 1 : 0;
            tried.met += met;
          }
        }
      }
    }
  }
  return tried;
}

// Repairs a store with a decayed file. Returns its contents.
std::vector<Digest> RunRepair(const Scenario& setup, const char* damaged,
                              const std::vector<Fault>& faults, uint64_t* met) {
  Store store(setup);
  store.StartWell();
  store.Serve(12);
  EXPECT_TRUE(store.Save().ok());
  store.Serve(22);
  store.Stop(End::kClose);
  store.Decay(damaged);
  for (const Fault& fault : faults) store.disk().Plan(fault);
  Status s = store.Repair();
  *met = store.disk().faults_met();
  if (!s.ok() && setup.end == End::kPowerLoss) store.disk().Crash();
  store.disk().ClearFaults();
  if (!s.ok()) s = store.Repair();
  EXPECT_TRUE(s.ok()) << s.ToString();
  if (setup.end == End::kPowerLoss) store.disk().Crash();
  if (testing::Test::HasFailure()) return {};
  const std::vector<Digest> digests = store.StartAnew();
  store.Serve(3);
  store.CheckIsWell();
  store.Stop(End::kClose);
  store.StartWell();
  return digests;
}

class Faults : public testing::TestWithParam<LogSync> {};

// Goal: no call that fails while the store serves, or writes a snapshot, costs what is acknowledged
// before or after.
TEST_P(Faults, WhileServing) {
  TryEach(Phase::kServing, GetParam(), 16).Print("while serving", 20);
}

// Goal: no call that fails while a directory is made costs what is acknowledged.
TEST_P(Faults, WhileMaking) { TryEach(Phase::kMaking, GetParam(), 16).Print("while making", 20); }

// Goal: no call that fails while a store recovers costs what is acknowledged, and a start that
// fails can be done again.
TEST_P(Faults, WhileRecovering) {
  TryEach(Phase::kRecovering, GetParam(), 16).Print("while recovering", 10);
}

// Goal: no call that fails while a directory is repaired costs anything: the repair can be done
// again, and gives what it would have given, also after a power loss.
// Method: a decayed byte in the log, a snapshot, the list of keyspaces; repaired without a fault,
// and with each.
TEST(FaultsOfARepair, WhileRepairing) {
  Tried tried;
  uint64_t number = 0;
  for (const char* const damaged : {"log-0", "snapshot-", "keyspaces"}) {
    uint64_t met = 0;
    const Scenario plain = {.policy = LogSync::kEverySecond, .end = End::kClose};
    const std::vector<Digest> expected = RunRepair(plain, damaged, {}, &met);
    ASSERT_FALSE(HasFailure());
    for (size_t call = 0; call < SimFileSystem::kCalls; ++call) {
      for (const Fault& way : WaysOf(static_cast<Call>(call))) {
        for (const End end : {End::kClose, End::kPowerLoss}) {
          Row row(static_cast<Call>(call), ++number, 12);
          while (const auto n = row.Next()) {
            Fault fault = way;
            fault.passed = *n;
            const Scenario setup = {
                .policy = LogSync::kEverySecond, .end = end, .seed = 1'000 + *n};
            SCOPED_TRACE(testing::Message() << damaged << ", " << setup << ": " << TextOf(fault));
            EXPECT_EQ(RunRepair(setup, damaged, {fault}, &met), expected);
            if (HasFailure()) return;
            if (met == 0) row.End();
            tried.runs += met > 0 ? 1 : 0;
            tried.met += met;
          }
        }
      }
    }
  }
  tried.Print("while repairing", 20);
}

// Goal: no two calls that fail cost what is acknowledged: the second one hits the mending of the
// first, or comes later.
// Method: kinds, numbers, ways and options by seed; on the tree, too. The same seeds each time.
TEST_P(Faults, Pairs) {
  Tried tried;
  const uint64_t count = WantsAllFaults() ? 20'000 : 40;
  for (uint64_t seed = 0; seed < count; ++seed) {
    std::mt19937_64 rng(seed * 3 + static_cast<uint64_t>(GetParam()));
    const Scenario setup = {.policy = GetParam(),
                            .end = static_cast<End>(rng() % 3),
                            .phase = static_cast<Phase>(rng() % 3),
                            .heals = rng() % 2 == 0,
                            .saves = rng() % 2 == 0,
                            .is_default = rng() % 32 == 0,
                            .seed = rng(),
                            .engine = rng() % 4 == 0 ? "btree" : "model"};
    std::vector<Fault> faults;
    for (int i = 0; i < 2; ++i) {
      constexpr Call kOften[] = {Call::kWrite, Call::kSync, Call::kSyncDirectory, Call::kRename};
      const bool is_often = rng() % 2 == 0;
      const Call call =
          is_often ? kOften[rng() % 4] : static_cast<Call>(rng() % SimFileSystem::kCalls);
      const auto ways = WaysOf(call);
      Fault fault = ways[rng() % ways.size()];
      fault.passed = rng() % (rng() % 2 == 0 ? 8 : 60);
      faults.push_back(fault);
    }
    SCOPED_TRACE(testing::Message()
                 << setup << ": " << TextOf(faults[0]) << "; " << TextOf(faults[1]));
    const uint64_t met = RunFaults(setup, faults);
    if (testing::Test::HasFailure()) return;
    ++tried.runs;
    tried.met += met;
  }
  tried.Print("pairs", count / 2);
}

std::string NameOf(const testing::TestParamInfo<LogSync>& policy) {
  return policy.param == LogSync::kNo            ? "No"
         : policy.param == LogSync::kEverySecond ? "EverySecond"
                                                 : "Always";
}
INSTANTIATE_TEST_SUITE_P(Policies, Faults,
                         testing::Values(LogSync::kAlways, LogSync::kEverySecond, LogSync::kNo),
                         NameOf);

}  // namespace
}  // namespace skep::durable
