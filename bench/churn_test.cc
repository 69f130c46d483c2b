#include "bench/churn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace skep::bench {
namespace {

const KeyFormat kFormat = KeyFormat::Random(16);

std::set<std::string> LoadedKeys(uint64_t items) {
  OpStream stream(kFormat);
  KeySweep(OpKind::kInsert, items, 0, 1, 1).Fill(stream, items);
  std::set<std::string> keys;
  for (size_t i = 0; i < items; ++i) keys.emplace(stream.at(i).key);
  return keys;
}

// Applies the operation to the model, which must allow it.
void Apply(const YcsbOp& op, std::set<std::string>& model) {
  const std::string key(op.key);
  switch (op.kind) {
    case OpKind::kInsert:
      ASSERT_TRUE(model.insert(key).second);
      break;
    case OpKind::kDelete:
      ASSERT_EQ(model.erase(key), 1u);
      break;
    default:
      ASSERT_EQ(op.kind, OpKind::kUpdate);
      ASSERT_TRUE(model.contains(key));
  }
}

void ApplyAll(OpSource& source, uint64_t ops, std::set<std::string>& model) {
  OpStream stream(kFormat);
  source.Fill(stream, ops);
  for (size_t i = 0; i < stream.size(); ++i) ASSERT_NO_FATAL_FAILURE(Apply(stream.at(i), model));
}

// Goal: every change is possible with the current keys, whatever other threads do, and Undo brings
// back the loaded keys.
// Method: a set of keys is the model. Few items for many changes, so that all loaded keys are
// deleted and inserted ones too; many items for few changes; one item for each thread.
TEST(Churn, AgreesWithModelAndIsUndone) {
  for (const auto& [items, ops] : std::map<uint64_t, uint64_t>{{3, 500}, {50, 3000}, {1000, 400}}) {
    for (uint32_t threads : {1, 3}) {
      SCOPED_TRACE(testing::Message() << items << " items, " << ops << " ops, " << threads);
      std::set<std::string> model = LoadedKeys(items);
      const std::set<std::string> loaded = model;
      std::vector<std::unique_ptr<Churn>> churns;
      for (uint32_t thread = 0; thread < threads; ++thread) {
        churns.push_back(
            std::make_unique<Churn>(*FindWorkload("churn"), items, thread, threads, 5));
      }
      for (uint64_t done = 0; done < ops; done += 100) {
        for (auto& churn : churns) ASSERT_NO_FATAL_FAILURE(ApplyAll(*churn, 100, model));
      }
      EXPECT_NE(model, loaded);
      for (auto& churn : churns) {
        Churn::Undo undo(*churn);
        ASSERT_NO_FATAL_FAILURE(ApplyAll(undo, undo.ops(), model));
      }
      EXPECT_EQ(model, loaded);
    }
  }
}

// Goal: kinds occur as often as the workload says, so the number of items stays.
// Method: five standard deviations of a binomial.
TEST(Churn, KeepsTheNumberOfItems) {
  constexpr uint64_t kOps = 30'000;
  Churn churn(*FindWorkload("churn"), 10'000, 0, 1, 7);
  OpStream stream(kFormat);
  churn.Fill(stream, kOps);
  std::map<OpKind, double> counts;
  for (size_t i = 0; i < kOps; ++i) ++counts[stream.at(i).kind];
  for (const auto& [kind, share] :
       std::map<OpKind, double>{{OpKind::kUpdate, 0.34}, {OpKind::kInsert, 0.33}}) {
    EXPECT_NEAR(counts[kind], kOps * share, 5 * std::sqrt(kOps * share * (1 - share)));
  }
  EXPECT_EQ(counts[OpKind::kUpdate] + counts[OpKind::kInsert] + counts[OpKind::kDelete], kOps);
}

// Goal: equal arguments give equal changes, other seeds give others.
TEST(Churn, IsDeterministic) {
  const auto keys = [](uint64_t seed) {
    Churn churn(*FindWorkload("churn"), 100, 1, 2, seed);
    OpStream stream(kFormat);
    churn.Fill(stream, 50);
    std::string all;
    for (size_t i = 0; i < stream.size(); ++i) all += stream.at(i).key;
    return all;
  };
  EXPECT_EQ(keys(1), keys(1));
  EXPECT_NE(keys(1), keys(2));
}

}  // namespace
}  // namespace skep::bench
