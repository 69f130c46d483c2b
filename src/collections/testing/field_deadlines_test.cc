// Fields of hashes have deadlines, in both forms of a hash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/sanitized.h"
#include "collections/field_sweeper.h"
#include "collections/testing/collection_world_test.h"
#include "types/hash_fields.h"

namespace skep::collections {
namespace {

using types::FieldDeadline;

constexpr uint64_t kStartMs = 1000;
constexpr int kSteps = kSanitized ? 300 : 3000;

std::string Until(uint8_t when, uint64_t deadline_ms, const Words& words) {
  return FieldDeadlineOperand(deadline_ms, words, when);
}

std::vector<int64_t> NumbersOf(const std::string& bytes) {
  std::vector<int64_t> numbers(bytes.size() / sizeof(int64_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// A hash as a map, which does what the documentation of the commands says.
class Model {
 public:
  struct Field {
    std::string value;
    uint64_t deadline_ms = 0;  // 0: none
  };

  void Advance(uint64_t now_ms) {
    now_ms_ = now_ms;
    std::erase_if(fields_, [&](const auto& f) { return HasPassed(f.second.deadline_ms); });
  }
  Field* Find(const std::string& name) {
    const auto at = fields_.find(name);
    return at == fields_.end() ? nullptr : &at->second;
  }
  int64_t Set(const Words& pairs) {
    const size_t before = fields_.size();
    for (size_t i = 0; i < pairs.size(); i += 2) fields_[pairs[i]] = {.value = pairs[i + 1]};
    return static_cast<int64_t>(fields_.size() - before);
  }
  int64_t Delete(const Words& names) {
    int64_t deleted = 0;
    for (const std::string& name : names) deleted += static_cast<int64_t>(fields_.erase(name));
    return deleted;
  }
  int64_t Expire(uint8_t when, uint64_t deadline_ms, const std::string& name) {
    Field* const field = Find(name);
    if (field == nullptr) return -2;
    const uint64_t old = field->deadline_ms;
    const bool holds = when == FieldDeadline::kHasNone   ? old == 0
                       : when == FieldDeadline::kHasOne  ? old != 0
                       : when == FieldDeadline::kLater   ? old != 0 && deadline_ms > old
                       : when == FieldDeadline::kEarlier ? old == 0 || deadline_ms < old
                                                         : true;
    if (!holds) return 0;
    return Give(name, deadline_ms) ? 1 : 2;
  }
  // False: the deadline has passed, so the field is gone.
  bool Give(const std::string& name, uint64_t deadline_ms) {
    fields_[name].deadline_ms = deadline_ms;
    if (!HasPassed(deadline_ms)) return true;
    fields_.erase(name);
    return false;
  }
  int64_t Persist(const std::string& name) {
    Field* const field = Find(name);
    if (field == nullptr) return -2;
    if (field->deadline_ms == 0) return -1;
    field->deadline_ms = 0;
    return 1;
  }
  std::map<std::string, Field>& fields() { return fields_; }

 private:
  bool HasPassed(uint64_t deadline_ms) const { return deadline_ms != 0 && deadline_ms <= now_ms_; }

  uint64_t now_ms_ = kStartMs;
  std::map<std::string, Field> fields_;
};

class FieldDeadlines : public testing::TestWithParam<size_t> {
 protected:
  size_t Below(size_t bound) { return rng_() % bound; }
  // Names meet often, have all bytes, and now and then lengths at which varints grow.
  std::string Name() {
    const size_t kind = Below(40);
    if (kind == 0) return {};
    if (kind == 1) return std::string(125 + Below(4), static_cast<char>(Below(256)));
    std::string name(1, static_cast<char>(Below(2) == 0 ? Below(256) : Below(4)));
    if (Below(2) == 0) name += static_cast<char>(Below(2));
    return name;
  }
  Words Names(size_t most) {
    Words names;
    for (size_t i = Below(most) + 1; i > 0; --i) names.push_back(Name());
    return names;
  }
  Words Pairs() {
    Words pairs;
    for (const std::string& name : Names(Below(6) == 0 ? 20 : 3)) {
      pairs.insert(pairs.end(), {name, std::to_string(static_cast<int>(Below(99)) - 50)});
    }
    return pairs;
  }
  uint64_t Deadline() { return Below(6) == 0 ? now_ms_ - Below(3) : now_ms_ + 1 + Below(60); }

  Reply Ask(std::string_view function, const std::string& operand) {
    return Call(world_.engine(), "hash", function, operand, now_ms_);
  }
  void ExpectValues(const std::string& bytes, const std::vector<std::optional<std::string>>& want) {
    std::string_view rest = bytes;
    for (const auto& value : want) {
      std::optional<std::string_view> found;
      ASSERT_TRUE(types::TakeMaybeText(rest, &found));
      ASSERT_EQ(found ? std::optional(std::string(*found)) : std::nullopt, value);
    }
    ASSERT_TRUE(rest.empty());
  }
  std::vector<std::optional<std::string>> ValuesOf(const Words& names) {
    std::vector<std::optional<std::string>> values;
    for (const std::string& name : names) {
      const Model::Field* const field = model_.Find(name);
      values.push_back(field ? std::optional(field->value) : std::nullopt);
    }
    return values;
  }

  void Set();
  void Expire(const Words& names, uint64_t deadline_ms);
  void Persist(const Words& names);
  void Take(const Words& names);
  void GetUntil(const Words& names, uint64_t deadline_ms);
  void SetUntil(uint64_t deadline_ms);
  void AddTo(const std::string& name);
  void Step();
  void CheckAll();

  const unsigned seed_ = std::random_device{}();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  std::mt19937 rng_{seed_};
  World world_{GetParam()};
  Model model_;
  uint64_t now_ms_ = kStartMs;
};

void FieldDeadlines::Set() {
  const Words pairs = Pairs();
  ASSERT_EQ(Ask("hash-set", TextsOperand(pairs)).integer, model_.Set(pairs));
}

void FieldDeadlines::Expire(const Words& names, uint64_t deadline_ms) {
  static constexpr uint8_t kWhen[] = {0, FieldDeadline::kHasNone, FieldDeadline::kHasOne,
                                      FieldDeadline::kLater, FieldDeadline::kEarlier};
  const uint8_t when = kWhen[Below(std::size(kWhen))];
  const Reply reply = Ask("hash-expire", Until(when, deadline_ms, names));
  std::vector<int64_t> want;
  for (const std::string& name : names) {
    want.push_back(model_.Expire(when, deadline_ms, name));
  }
  ASSERT_EQ(NumbersOf(reply.value), want);
}

void FieldDeadlines::Persist(const Words& names) {
  const Reply reply = Ask("hash-persist", TextsOperand(names));
  std::vector<int64_t> want;
  for (const std::string& name : names) want.push_back(model_.Persist(name));
  ASSERT_EQ(NumbersOf(reply.value), want);
}

void FieldDeadlines::Take(const Words& names) {
  std::vector<std::optional<std::string>> want;
  for (const std::string& name : names) {
    want.push_back(ValuesOf({name}).front());
    model_.Delete({name});
  }
  ExpectValues(Ask("hash-take", TextsOperand(names)).value, want);
}

void FieldDeadlines::GetUntil(const Words& names, uint64_t deadline_ms) {
  const uint64_t given_ms = Below(3) == 0 ? 0 : deadline_ms;
  std::vector<std::optional<std::string>> want;
  for (const std::string& name : names) {
    want.push_back(ValuesOf({name}).front());
    if (model_.Find(name) != nullptr) model_.Give(name, given_ms);
  }
  ExpectValues(Ask("hash-get-until", Until(0, given_ms, names)).value, want);
}

void FieldDeadlines::SetUntil(uint64_t deadline_ms) {
  const Words pairs = Pairs();
  static constexpr uint8_t kWhen[] = {0, FieldDeadline::kNoneThere, FieldDeadline::kAllThere};
  const bool keeps = Below(3) == 0;
  const uint64_t given_ms = keeps || Below(4) == 0 ? 0 : deadline_ms;
  const uint8_t condition = kWhen[Below(3)];
  bool holds = true;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const bool is_there = model_.Find(pairs[i]) != nullptr;
    if (condition != 0 && is_there != (condition == FieldDeadline::kAllThere)) holds = false;
  }
  const auto when = static_cast<uint8_t>(condition | (keeps ? FieldDeadline::kKeeps : 0));
  ASSERT_EQ(Ask("hash-set-until", Until(when, given_ms, pairs)).integer, holds ? 1 : 0);
  for (size_t i = 0; holds && i < pairs.size(); i += 2) {
    model_.fields()[pairs[i]].value = pairs[i + 1];
    if (!keeps) model_.fields()[pairs[i]].deadline_ms = given_ms;
  }
  model_.Advance(now_ms_);
}

void FieldDeadlines::AddTo(const std::string& name) {
  Model::Field& field = model_.fields()[name];
  field.value = std::to_string(std::atoi(field.value.c_str()) + 3);
  ASSERT_EQ(Ask("hash-add", TextsOperand({name, "3"})).value, field.value);
}

void FieldDeadlines::Step() {
  const Words names = Names(Below(9) == 0 ? 30 : 3);
  const uint64_t deadline_ms = Deadline();
  switch (Below(12)) {
    case 0:
    case 1:
      return Set();
    case 2:
      ASSERT_EQ(Ask("hash-delete", TextsOperand(names)).integer, model_.Delete(names));
      return;
    case 3:
    case 4:
    case 5:
      return Expire(names, deadline_ms);
    case 6:
      return Persist(names);
    case 7:
      return Take(names);
    case 8:
      return GetUntil(names, deadline_ms);
    case 9:
      return SetUntil(deadline_ms);
    case 10:
      return AddTo(names.front());
    default:
      now_ms_ += Below(4) == 0 ? Below(80) : Below(4);
      model_.Advance(now_ms_);
  }
}

// Everything that can be read of the hash.
void FieldDeadlines::CheckAll() {
  Words all;
  std::vector<int64_t> deadlines;
  for (const auto& [name, field] : model_.fields()) {
    all.push_back(name);
    deadlines.push_back(field.deadline_ms == 0 ? -1 : static_cast<int64_t>(field.deadline_ms));
  }
  ASSERT_EQ(Ask("hash-length", {}).integer, static_cast<int64_t>(all.size()));
  if (!all.empty()) {
    ASSERT_EQ(NumbersOf(Ask("hash-deadlines", TextsOperand(all)).value), deadlines);
    ExpectValues(Ask("hash-get", TextsOperand(all)).value, ValuesOf(all));
  }
  for (const char* const function : {"hash-all", "hash-scan", "hash-draw"}) {
    Scratch scratch;
    const bool draws = std::string_view(function) == "hash-draw";
    const std::string operand =
        draws ? std::string(types::WriteDrawRequest({.seed = rng_(), .count = 1 << 20}, scratch))
              : TextsOperand({"", "1000000"});
    const std::string bytes = Ask(function, function[5] == 'a' ? "" : operand).value;
    std::string_view rest = bytes;
    if (function[5] == 's') rest.remove_prefix(std::min<size_t>(rest.size(), 1));
    types::Texts texts;
    ASSERT_TRUE(types::TakeTexts(rest, &texts)) << function;
    std::map<std::string, std::string> found;
    for (size_t i = 0; i < texts.size(); i += 2) found.emplace(texts[i], texts[i + 1]);
    ASSERT_EQ(texts.size(), 2 * all.size()) << function;
    for (const auto& [name, field] : model_.fields()) ASSERT_EQ(found[name], field.value);
  }
  if (!all.empty()) {
    Scratch scratch;
    const std::string operand(types::WriteDrawRequest({.seed = rng_(), .count = -2}, scratch));
    types::Texts drawn;
    const std::string bytes = Ask("hash-draw", operand).value;
    ASSERT_TRUE(types::TakeTexts(bytes, &drawn));
    ASSERT_EQ(drawn.size(), 4);
    for (size_t i = 0; i < 4; i += 2) ASSERT_NE(model_.Find(std::string(drawn[i])), nullptr);
  }
}

// Goal: both forms of a hash answer what the documentation of the commands says.
// Method: random calls on few names of all bytes, a clock that jumps over deadlines, and the sweep
// at random moments; after every step all that can be read is compared with a map.
TEST_P(FieldDeadlines, AgreeWithAModel) {
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    ASSERT_NO_FATAL_FAILURE(Step());
    ASSERT_NO_FATAL_FAILURE(CheckAll());
    if (Below(20) == 0) world_.MaintainAll(now_ms_);
    if (step % 32 == 0) {
      ASSERT_EQ(world_.engine().Verify(), nullptr);
    }
  }
}

// Goal: what is due is removed without a command, and a hash without other fields is gone.
// Method: all fields get deadlines; after the last of them the sweep runs to its end.
TEST_P(FieldDeadlines, TheSweepRemovesAHashWhoseFieldsAreDue) {
  for (int i = 0; i < 100; ++i) {
    const std::string name = "field" + std::to_string(i);
    Ask("hash-set", TextsOperand({name, "value"}));
    Ask("hash-expire", Until(0, now_ms_ + 1 + static_cast<uint64_t>(i), {name}));
  }
  world_.MaintainAll(now_ms_);
  EXPECT_EQ(Ask("hash-length", {}).integer, 100);
  now_ms_ += 10'000;
  EXPECT_EQ(Ask("hash-length", {}).integer, 0);
  EXPECT_EQ(world_.engine().Statistics().items, 1u);
  world_.MaintainAll(now_ms_);
  EXPECT_EQ(world_.engine().Statistics().items, 0u);
  EXPECT_EQ(world_.engine().Verify(), nullptr);
}

// Goal: a hash with deadlines is found under the key to which it was moved.
TEST_P(FieldDeadlines, TheSweepFollowsARename) {
  for (int i = 0; i < 100; ++i) {
    Ask("hash-set-until", Until(0, now_ms_ + 5, {"field" + std::to_string(i), "value"}));
  }
  Batch batch(Batch::Kind::kAtomic);
  batch.set_now_ms(now_ms_);
  batch.Move("hash", "other");
  world_.engine().Execute(batch);
  now_ms_ += 100;
  world_.MaintainAll(now_ms_);
  EXPECT_EQ(world_.engine().Statistics().items, 0u);
}

INSTANTIATE_TEST_SUITE_P(Forms, FieldDeadlines,
                         testing::Values(size_t{48}, size_t{300}, size_t{1} << 20));

// Goal: a step of the sweep looks at a bounded number of hashes, or of segments of one.
// Method: many hashes, and one of many segments, are due at once; after each step what is gone is
// counted.
TEST(FieldSweep, AStepIsBounded) {
  World world(64);
  Engine& engine = world.engine();
  while (engine.Maintain(1)) {
  }
  constexpr int kHashes = 100;
  for (int i = 0; i < kHashes; ++i) {
    Call(engine, "small" + std::to_string(i), "hash-set-until", Until(0, 10, {"f", "v"}), 1);
  }
  uint64_t items = engine.Statistics().items;
  int steps = 0;
  while (engine.Maintain(10)) {
    ++steps;
    const uint64_t now = engine.Statistics().items;
    ASSERT_LE(items - now, kSweepHashes);
    items = now;
  }
  EXPECT_EQ(items, 0u);
  EXPECT_GE(steps, kHashes / static_cast<int>(kSweepHashes));

  Call(engine, "large", "hash-set", TextsOperand({"zz", "stays"}), 10);
  for (int i = 0; i < 1000; ++i) {
    Call(engine, "large", "hash-set-until", Until(0, 20, {std::to_string(1000 + i), "v"}), 10);
  }
  uint64_t segments = world.ItemsOf(Part::kMembers);
  ASSERT_GT(segments, 8 * kSweepSegments);
  while (engine.Maintain(20)) {
    const uint64_t now = world.ItemsOf(Part::kMembers);
    ASSERT_LE(segments - now, kSweepSegments);
    segments = now;
  }
  EXPECT_EQ(Call(engine, "large", "hash-length", {}, 20).integer, 1);
  EXPECT_LE(segments, 2u);
}

// Goal: the hint of a large hash is not lost when a transaction puts the hash back into one value
// while it is looked at.
// Method: that happens before each of the batches that a look reads; of the fields that are left
// the deadlines pass later, so only a look can remove them.
TEST(FieldSweep, AHashThatComesBackIntoOneValueKeepsItsHint) {
  Words most;
  for (int i = 0; i < 60; ++i) most.push_back("later" + std::to_string(100 + i));
  constexpr int kBatches = 4;  // the type, the record, the segments and the record again
  for (int batches = 0; batches < kBatches; ++batches) {
    SCOPED_TRACE(batches);
    World world(256);
    Engine& engine = world.engine();
    for (int i = 0; i < 20; ++i) {
      Call(engine, "h", "hash-set-until", Until(0, 100, {std::to_string(i), "v"}), 1);
    }
    for (const char* const name : {"a", "b"}) {
      Call(engine, "h", "hash-set-until", Until(0, 1000, {name, "v"}), 1);
    }
    for (const std::string& name : most) {
      Call(engine, "h", "hash-set-until", Until(0, 1000, {name, "v"}), 1);
    }
    world.MaintainAll(50);
    const std::string operand = TextsOperand(most);
    bool is_interrupted = false;
    world.reads().Interrupt(batches, [&] {
      is_interrupted = true;
      Batch batch(Batch::Kind::kAtomic);
      batch.set_now_ms(150);
      batch.Apply("h", Named("hash-delete"), operand);
      batch.Apply("h", Named("hash-all"), {});
      engine.Execute(batch);
    });
    engine.Maintain(150);
    world.reads().Interrupt(0, nullptr);
    world.MaintainAll(200);
    ASSERT_TRUE(is_interrupted);
    ASSERT_EQ(engine.Statistics().items, 1u);
    ASSERT_EQ(world.ItemsOf(Part::kMembers), 0u);
    world.MaintainAll(2000);
    EXPECT_EQ(engine.Statistics().items, 0u);
  }
}

// Goal: hints are bounded, and what lost its hint is found by a pass.
// Method: more hashes than there may be hints.
TEST(FieldSweep, HintsAreBounded) {
  World world(1 << 20);
  Engine& engine = world.engine();
  Batch batch;
  const std::string operand = Until(0, 10, {"f", "v"});
  std::vector<std::string> keys;
  for (size_t i = 0; i < kHintsMax + 5000; ++i) keys.push_back("key" + std::to_string(i));
  for (const std::string& key : keys) batch.Apply(key, Named("hash-set-until"), operand);
  batch.set_now_ms(1);
  engine.Execute(batch);
  ASSERT_EQ(engine.Statistics().items, keys.size());
  world.MaintainAll(10);
  EXPECT_EQ(engine.Statistics().items, 0u);
}

}  // namespace
}  // namespace skep::collections
