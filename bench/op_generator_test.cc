#include "bench/op_generator.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace skep::bench {
namespace {

constexpr size_t kKeyBytes = 24;

std::string KeyOf(uint64_t number) {
  std::string key(kKeyBytes, '\0');
  KeyFormat(kKeyBytes).Render(number, key.data());
  return key;
}

WorkloadPlan PlanOf(const std::string& workload,
                    std::optional<Distribution> distribution = std::nullopt) {
  const Workload found = *FindWorkload(workload);
  return {.workload = found,
          .distribution = distribution.value_or(found.distribution),
          .records = 1000,
          .ops = 40'000,
          .threads = 1,
          .seed = 42};
}

OpStream StreamOf(const WorkloadPlan& plan, uint32_t thread = 0) {
  OpStream stream{KeyFormat(kKeyBytes)};
  OpGenerator(plan, thread).Fill(stream, plan.ShareOf(thread, plan.ops));
  return stream;
}

// Goal: a stream returns the operations that were put into it.
TEST(OpStream, RoundTrip) {
  OpStream stream{KeyFormat(kKeyBytes)};
  stream.Add(OpKind::kRead, 1);
  stream.Add(OpKind::kUpdate, 2);
  stream.Add(OpKind::kInsert, 3);
  stream.Add(OpKind::kReadModifyWrite, 4);
  stream.Add(OpKind::kDelete, 5);
  for (uint32_t items = 1; items <= kScanItemsMax; ++items) stream.Add(OpKind::kScan, 6, items);
  ASSERT_EQ(stream.size(), 5u + kScanItemsMax);
  const std::array kinds = {OpKind::kRead, OpKind::kUpdate, OpKind::kInsert,
                            OpKind::kReadModifyWrite, OpKind::kDelete};
  for (uint64_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(stream.at(i).kind, kinds[i]);
    EXPECT_EQ(stream.at(i).scan_items, 0u);
    EXPECT_EQ(stream.at(i).key, KeyOf(i + 1));
  }
  for (uint32_t items = 1; items <= kScanItemsMax; ++items) {
    EXPECT_EQ(stream.at(4 + items).kind, OpKind::kScan);
    EXPECT_EQ(stream.at(4 + items).scan_items, items);
  }
  stream.Clear();
  EXPECT_EQ(stream.size(), 0u);
}

// Goal: each workload does each kind of operation as often as YCSB says.
// Method: five standard deviations of a binomial; kinds it does not have must not occur at all.
TEST(OpGenerator, MixesAreYcsbs) {
  for (const Workload& workload : CoreWorkloads()) {
    SCOPED_TRACE(workload.name);
    const WorkloadPlan plan = PlanOf(workload.name);
    const OpStream stream = StreamOf(plan);
    std::map<OpKind, double> counts;
    for (size_t i = 0; i < stream.size(); ++i) ++counts[stream.at(i).kind];
    const auto total = static_cast<double>(plan.ops);
    const auto expect = [&](OpKind kind, int percent) {
      const double share = percent / 100.0;
      EXPECT_NEAR(counts[kind], share * total, 5 * std::sqrt(total * share * (1 - share)))
          << "kind " << static_cast<int>(kind);
    };
    expect(OpKind::kRead, workload.read);
    expect(OpKind::kUpdate, workload.update);
    expect(OpKind::kInsert, workload.insert);
    expect(OpKind::kScan, workload.scan);
    expect(OpKind::kReadModifyWrite, workload.read_modify_write);
  }
}

// Goal: scans have 1 to 100 items, every length equally often.
TEST(OpGenerator, ScanLengthsAreUniform) {
  constexpr uint32_t kItemsMax = 100;
  const OpStream stream = StreamOf(PlanOf("e"));
  std::vector<double> counts(kItemsMax + 1);
  double scans = 0;
  for (size_t i = 0; i < stream.size(); ++i) {
    if (stream.at(i).kind != OpKind::kScan) continue;
    ++counts.at(stream.at(i).scan_items);
    ++scans;
  }
  const double expected = scans / kItemsMax;
  EXPECT_EQ(counts[0], 0);
  for (size_t items = 1; items < counts.size(); ++items) {
    EXPECT_NEAR(counts[items], expected, 5 * std::sqrt(expected)) << items;
  }
}

// Goal: invariant G1 holds, and insertions are numbered without gaps or clashes over all threads.
// Method: every workload with every distribution on three threads, with so many insertions that
// they matter; a set of the keys that each thread knows to exist is the model.
TEST(OpGenerator, TouchesOnlyWhatExists) {
  for (const Workload& workload : CoreWorkloads()) {
    for (auto distribution :
         {Distribution::kUniform, Distribution::kZipfian, Distribution::kLatest}) {
      SCOPED_TRACE(testing::Message() << workload.name << " " << NameOf(distribution));
      WorkloadPlan plan = PlanOf(workload.name, distribution);
      plan.records = 200;
      plan.ops = 10'000;
      plan.threads = 3;
      std::set<std::string> loaded;
      for (uint64_t number = 0; number < plan.records; ++number) loaded.insert(KeyOf(number));
      std::set<std::string> inserted;
      for (uint32_t thread = 0; thread < plan.threads; ++thread) {
        std::set<std::string> known = loaded;
        const OpStream stream = StreamOf(plan, thread);
        for (size_t i = 0; i < stream.size(); ++i) {
          const std::string key(stream.at(i).key);
          if (stream.at(i).kind != OpKind::kInsert) {
            ASSERT_TRUE(known.contains(key));
          } else {
            ASSERT_TRUE(known.insert(key).second);
            ASSERT_TRUE(inserted.insert(key).second) << "two threads insert one key";
          }
        }
      }
    }
  }
}

TEST(Workload, NamesSayWhatIsDone) {
  EXPECT_EQ(FindWorkload("load")->sweep, OpKind::kInsert);
  EXPECT_EQ(FindWorkload("delete")->sweep, OpKind::kDelete);
  EXPECT_EQ(FindWorkload("update")->update, 100);
  EXPECT_EQ(FindWorkload("get")->distribution, Distribution::kUniform);
  EXPECT_EQ(FindWorkload("c")->distribution, Distribution::kZipfian);
  EXPECT_EQ(FindWorkload("scan24")->scan_items_min, 24u);
  EXPECT_EQ(FindWorkload("scan24")->scan_items_max, 24u);
  EXPECT_EQ(FindWorkload("cloud80")->scan, 80);
  EXPECT_EQ(FindWorkload("cloud80")->insert, 20);
  EXPECT_EQ(FindWorkload("cloud80")->scan_items_min, 3u);
  EXPECT_EQ(FindWorkload("cloud80")->scan_items_max, 4u);
  for (const char* name : {"", "g", "scan", "scan0", "scan10001", "scan-1", "scan3x", "scan 3",
                           "scan4294967299", "cloud", "cloud101", "put"}) {
    EXPECT_FALSE(FindWorkload(name)) << name;
  }
}

// Goal: the contents after updates do not depend on which thread was faster, if that is asked for.
// Method: the keys that three threads update are disjoint, and together all of them.
TEST(OpGenerator, ThreadsMayUpdateKeysOfTheirOwn) {
  for (const char* workload : {"update", "f"}) {
    WorkloadPlan plan = PlanOf(workload, Distribution::kUniform);
    plan.records = 101;
    plan.threads = 3;
    plan.own_updates = true;
    std::map<std::string, uint32_t> owners;
    for (uint32_t thread = 0; thread < plan.threads; ++thread) {
      const OpStream stream = StreamOf(plan, thread);
      for (size_t i = 0; i < stream.size(); ++i) {
        if (stream.at(i).kind == OpKind::kRead) continue;
        const auto [at, is_new] = owners.emplace(stream.at(i).key, thread);
        ASSERT_EQ(at->second, thread);
      }
    }
    EXPECT_EQ(owners.size(), plan.records);
  }
}

// Goal: `latest` prefers the newest: the very last key is read most, ages follow Zipf.
// Method: no insertions, so ages do not move: record 999 has age 0.
TEST(KeyChooser, LatestFavoursTheNewest) {
  WorkloadPlan plan = PlanOf("c", Distribution::kLatest);
  KeyChooser chooser(plan, 0);
  SeededRandom random(3);
  std::vector<double> counts(plan.records);
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(chooser.Draw(random, 0));
  double sum = 0;
  for (uint64_t age = 0; age < plan.records; ++age) {
    sum += std::pow(static_cast<double>(age + 1), -0.99);
  }
  for (uint64_t age : {0, 1, 2, 9, 99}) {
    const double expected = kDraws * std::pow(static_cast<double>(age + 1), -0.99) / sum;
    EXPECT_NEAR(counts[plan.records - 1 - age], expected, 5 * std::sqrt(expected)) << age;
  }
}

// Goal: after insertions the newest is the thread's own last one.
TEST(KeyChooser, LatestFollowsInsertions) {
  WorkloadPlan plan = PlanOf("d");
  plan.threads = 4;
  KeyChooser chooser(plan, 2);
  SeededRandom random(3);
  std::map<uint64_t, int> counts;
  for (int i = 0; i < 50'000; ++i) ++counts[chooser.Draw(random, 5)];
  const uint64_t newest = plan.records + 4 * 4 + 2;
  EXPECT_EQ(chooser.InsertedNumber(4), newest);
  for (const auto& [number, count] : counts) EXPECT_LE(count, counts[newest]) << number;
  EXPECT_EQ(counts.rbegin()->first, newest);
}

// Goal: equal plans give equal streams, cut anywhere; other seeds and threads give others.
TEST(OpGenerator, IsDeterministic) {
  const WorkloadPlan plan = PlanOf("d");
  const OpStream whole = StreamOf(plan);
  OpStream pieces{KeyFormat(kKeyBytes)};
  OpGenerator generator(plan, 0);
  generator.Fill(pieces, 17);
  generator.Fill(pieces, plan.ops - 17);
  WorkloadPlan other_plan = plan;
  other_plan.seed = 43;
  const OpStream other = StreamOf(other_plan);
  size_t differences = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    ASSERT_EQ(whole.at(i).key, pieces.at(i).key);
    ASSERT_EQ(whole.at(i).kind, pieces.at(i).kind);
    if (whole.at(i).key != other.at(i).key) ++differences;
  }
  EXPECT_GT(differences, whole.size() / 2);
}

// Goal: operations come in groups of one kind, and the groups are mixed as the workload says.
TEST(OpGenerator, GroupsAreOfOneKind) {
  constexpr uint32_t kGroup = 8;
  constexpr size_t kGroups = 1000;
  WorkloadPlan plan = PlanOf("b");
  plan.group = kGroup;
  plan.ops = kGroup * kGroups;
  const OpStream stream = StreamOf(plan);
  ASSERT_EQ(stream.size(), kGroup * kGroups);
  size_t reads = 0;
  for (size_t i = 0; i < stream.size(); ++i) {
    ASSERT_EQ(stream.at(i).kind, stream.at(i - i % kGroup).kind);
    reads += stream.at(i).kind == OpKind::kRead ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(reads) / kGroup, 0.95 * kGroups, 40);
}

// Goal: the threads of a load insert every record exactly once.
TEST(LoadGenerator, CoversTheRecords) {
  WorkloadPlan plan = PlanOf("a");
  plan.threads = 3;
  std::set<std::string> keys;
  for (uint32_t thread = 0; thread < plan.threads; ++thread) {
    OpStream stream{KeyFormat(kKeyBytes)};
    LoadGenerator(plan, thread).Fill(stream, plan.ShareOf(thread, plan.records));
    for (size_t i = 0; i < stream.size(); ++i) {
      EXPECT_EQ(stream.at(i).kind, OpKind::kInsert);
      EXPECT_TRUE(keys.insert(std::string(stream.at(i).key)).second);
    }
  }
  ASSERT_EQ(keys.size(), plan.records);
  for (uint64_t number = 0; number < plan.records; ++number) {
    EXPECT_TRUE(keys.contains(KeyOf(number)));
  }
}

}  // namespace
}  // namespace skep::bench
