// HyperLogLogs: both forms have the same registers, and estimates are near.
#include "types/hyperloglog.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "types/collection.h"
#include "types/function_table.h"

namespace skep::types {
namespace {

// A key that has a HyperLogLog, and what an engine does with the effects of functions.
class Log {
 public:
  FunctionEffect Run(std::string_view name, std::string_view operand = {}) {
    for (const TypeFunction& function : HyperLogLogFunctions()) {
      if (function.name != name) continue;
      std::optional<std::string_view> value;
      if (value_) value = *value_;
      const FunctionEffect effect = function.body({.value = value,
                                                   .operand = operand,
                                                   .scratch = &scratch_,
                                                   .function = nullptr,
                                                   .value_bytes_max = size_t{1} << 20});
      if (effect.action == FunctionEffect::Action::kReplace) value_ = std::string(effect.value);
      return effect;
    }
    SKEP_CHECK(false);
    return {};
  }
  int64_t Add(const std::vector<std::string>& elements) {
    const std::vector<std::string_view> views(elements.begin(), elements.end());
    Scratch scratch;
    return Run("hll-add", JoinTexts(views, scratch)).integer;
  }
  std::string Registers() { return std::string(Run("hll-union").returned); }
  bool is_dense() const { return (*value_)[4] == 0; }
  std::optional<std::string>& value() { return value_; }

 private:
  std::optional<std::string> value_;
  Scratch scratch_;
};

// Goal: a sparse one and a dense one that are given the same elements have the same registers, a
// sparse one is never too long, and nothing changes if nothing is new.
// Method: elements from few, so that they repeat; the dense one is dense from its beginning.
TEST(HyperLogLog, BothFormsAgree) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  Log sparse;
  Log dense;
  types::Registers none{.is_dense = 1};
  dense.Run("hll-store", {reinterpret_cast<const char*>(&none), sizeof none});
  ASSERT_TRUE(dense.is_dense());
  EXPECT_EQ(sparse.Add({}), 1);
  for (int step = 0; step < 4000; ++step) {
    const std::string element = std::to_string(rng() % 3000);
    ASSERT_EQ(sparse.Add({element}), dense.Add({element})) << step;
    if (!sparse.is_dense()) ASSERT_LE(sparse.value()->size(), kSparseBytesMax);
    if (step % 100 != 0) continue;
    ASSERT_EQ(sparse.Registers().substr(1), dense.Registers().substr(1)) << step;
    ASSERT_EQ(sparse.Run("hll-count").integer, dense.Run("hll-count").integer);
  }
  EXPECT_TRUE(sparse.is_dense());
}

// Goal: estimates are within 3 % or 2, for few elements and for many.
TEST(HyperLogLog, EstimatesAreNear) {
  Log log;
  EXPECT_EQ(log.Run("hll-count").integer, 0);
  int added = 0;
  for (const int count : {1, 2, 10, 100, 1000, 10'000, 100'000}) {
    std::vector<std::string> elements;
    for (; added < count; ++added) elements.push_back("element " + std::to_string(added));
    log.Add(elements);
    EXPECT_NEAR(static_cast<double>(log.Run("hll-count").integer), count, 2 + count * 0.03);
  }
}

// Goal: a union has the larger of each register, and is stored as one.
TEST(HyperLogLog, Unions) {
  Log a;
  Log b;
  Log both;
  for (int i = 0; i < 500; ++i) {
    (i % 3 == 0 ? a : b).Add({std::to_string(i)});
    both.Add({std::to_string(i)});
  }
  const std::string registers = a.Registers();
  const std::string united(b.Run("hll-union", registers).returned);
  EXPECT_EQ(united, both.Registers());
  Log stored;
  stored.Run("hll-store", united);
  EXPECT_EQ(stored.Registers(), united);
  EXPECT_FALSE(stored.is_dense());
}

// Goal: bytes that are none, or are cut or changed anywhere, are an error or are counted, and
// nothing else.
TEST(HyperLogLog, WrongBytes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  Log good;
  for (int i = 0; i < 200; ++i) good.Add({std::to_string(i)});
  const std::string bytes = *good.value();
  for (size_t length = 0; length < 16; ++length) {
    Log log;
    log.value() = bytes.substr(0, length);
    EXPECT_EQ(log.Run("hll-count").status.code(), Code::kWrongType);
  }
  for (int i = 0; i < 2000; ++i) {
    Log log;
    log.value() = bytes.substr(0, 16 + rng() % (bytes.size() - 15));
    if (rng() % 2 == 0) (*log.value())[rng() % log.value()->size()] = static_cast<char>(rng());
    log.Add({std::to_string(rng())});
    log.Registers();
    log.Run("hll-count");
  }
  Log log;
  EXPECT_EQ(log.Run("hll-store", "short").status.code(), Code::kInvalidArgument);
}

// Goal: hll-dense changes the form, once, and no register; hll-runs has all registers of a sparse
// one, and nothing of a dense one.
TEST(HyperLogLog, BecomesDenseAndIsDescribed) {
  Log log;
  EXPECT_EQ(log.Run("hll-dense").integer, 0) << "there is none";
  EXPECT_EQ(log.Run("hll-runs").integer, 0);
  EXPECT_FALSE(log.value());
  log.Add({});
  EXPECT_EQ(log.Run("hll-runs").returned, "Z:16384");
  log.Add({"a", "b", "c"});
  std::istringstream runs{std::string(log.Run("hll-runs").returned)};
  size_t registers = 0;
  size_t raised = 0;
  for (std::string run; runs >> run;) {
    const size_t comma = run.find(',');
    const size_t length = std::stoul(run.substr(comma == std::string::npos ? 2 : comma + 1));
    registers += length;
    if (run[0] == 'v') raised += length;
    EXPECT_EQ(run[0] == 'Z', length > 64 && run[0] != 'v') << run;
  }
  EXPECT_EQ(registers, kRegisters);
  EXPECT_EQ(raised, 3u);
  const std::string before = log.Registers();
  EXPECT_EQ(log.Run("hll-dense").integer, 1);
  EXPECT_TRUE(log.is_dense());
  EXPECT_EQ(log.Registers().substr(1), before.substr(1));
  EXPECT_EQ(log.Run("hll-dense").integer, 0);
  EXPECT_EQ(log.Run("hll-runs").integer, 0);
  log.value() = "no HyperLogLog";
  EXPECT_EQ(log.Run("hll-dense").status.code(), Code::kWrongType);
  EXPECT_EQ(log.Run("hll-runs").status.code(), Code::kWrongType);
}

TEST(HyperLogLog, PassesItsSelfTest) { EXPECT_TRUE(PassesSelfTest()); }

}  // namespace
}  // namespace skep::types
