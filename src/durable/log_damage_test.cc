// Every byte of a directory damaged, one at a time, and its log cut at every byte: damage is
// reported with file and offset, or what is recovered is a state that there was.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/sanitized.h"
#include "durable/log_test.h"

namespace skep::durable {
namespace {

constexpr uint64_t kSegmentBytes = 700;
constexpr size_t kStep = kSanitized ? 13 : 1;  // bytes: a sanitizer needs to see each kind
constexpr size_t kStepInZeroes = 101;          // behind all that was written
constexpr size_t kEndBytes = 100;              // of what a log ends with, at most
constexpr uint64_t kFar = 4'000'000'000'000;

// Batches: one for each kind of change, and some with several changes.
std::vector<std::function<void(Batch&)>> AllChanges() {
  return {
      [](Batch& b) { b.Put("a", "1"), b.Put("b", "2"), b.Put("c", std::string_view("\0\xff", 2)); },
      [](Batch& b) { b.Add({.op = Op::kPut, .key = "d", .value = "due", .deadline_ms = kFar}); },
      [](Batch& b) {
        b.Apply("b", FindFunction("append"), b.scratch().Copy(std::string(300, 'x')));
      },
      [](Batch& b) { b.Apply("b", FindFunction("append"), "y"); },
      [](Batch& b) { b.Apply("n", FindFunction("add-decimal"), "17"); },
      [](Batch& b) {
        b.UpdateElements("b", FindFunction(FunctionKind::kUpdate, "xor", Element::kU8), "\x01");
      },
      [](Batch& b) { b.Expire("a", kFar + 1); },
      [](Batch& b) { b.Persist("d"); },
      [](Batch& b) { b.Move("a", "z"); },
      [](Batch& b) { b.Delete("z"); },
      [](Batch& b) { b.DeleteRange(Range::Between("b", "c")); },
      [](Batch& b) { b.Put("e", "5"), b.Put("f", "6"), b.Put("g", "7"); },
      [](Batch& b) { b.DeleteRange(Range::All(), 1); },
      [](Batch& b) { b.DeleteRange(Range::From("f")); },
      [](Batch& b) { b.DeleteAll(); },
      [](Batch& b) { b.Put("h", "8"); },
      // The last one: what follows goes into one segment, as space for a long record is taken.
      [](Batch& b) { b.ExpireRange(Range::From("h"), kFar + 2); },
  };
}

// The states of a store over time. The i-th one was there when i batches were executed.
struct History {
  Image image;
  std::vector<std::vector<State>> states;
  std::vector<uint64_t> ends;  // position in the log behind the records of each state
  uint64_t synced = 0;         // position up to which the log says that it was synced
};

History MakeHistory(bool is_closed) {
  TestStore store({}, LogSync::kNo, kSegmentBytes);
  History history{.states = {store.States()}, .ends = {0}};
  const auto execute = [&](const std::function<void(Batch&)>& fill) {
    for (uint32_t keyspace = 0; keyspace < TestStore::kKeyspaces; ++keyspace) {
      Batch batch(Batch::Kind::kAtomic);
      batch.set_now_ms(store.now_ms());
      fill(batch);
      store.engine(keyspace).Execute(batch);
      store.log().Publish();
      history.states.push_back(store.States());
      history.ends.push_back(store.log().statistics().position);
    }
    store.log().Step();
  };
  const auto sync = [&] {
    store.engine(0).WantSync(0, false);
    store.log().Step();
  };
  const auto changes = AllChanges();
  for (size_t i = 0; i + 1 < changes.size(); ++i) execute(changes[i]);
  sync();
  EXPECT_TRUE(store.persistence().saver().Save().ok());
  for (const auto& fill : changes) execute(fill), sync();
  history.synced = store.log().statistics().synced_position;
  for (const char* const key : {"k", "l", "m"}) execute([&](Batch& b) { b.Put(key, "late"); });
  if (is_closed) {
    EXPECT_TRUE(store.persistence().Close().ok());
    history.synced = UINT64_MAX;
  }
  history.image = TakeImage(store.disk());
  return history;
}

// Counts the outcomes of damage.
struct Fates {
  int harmless = 0, reported = 0, cut = 0;
};

class Damage {
 public:
  explicit Damage(const History& history) : history_(history) {}

  // `position` of the log is the first that is damaged; nothing: it is not in the log.
  void Check(const Image& image, const std::string& name, uint64_t offset,
             std::optional<uint64_t> position) {
    SCOPED_TRACE(name + " at " + std::to_string(offset));
    TestStore store(image, LogSync::kNo, kSegmentBytes);
    if (!store.status().ok()) return CheckReport(store, name, offset, position.has_value());
    const auto& states = history_.states;
    const auto found = std::ranges::find(states.rbegin(), states.rend(), store.States());
    ASSERT_NE(found, states.rend()) << "a state that there never was";
    const auto number = static_cast<size_t>(states.rend() - found) - 1;
    if (number == states.size() - 1) {
      ++fates.harmless;
    } else {
      ++fates.cut;
      ASSERT_TRUE(position.has_value()) << "an older state";
      EXPECT_GE(*position, history_.synced) << "what was synced was cut";
      EXPECT_GT(history_.ends[number + 1], *position) << "what is good was cut";
      EXPECT_FALSE(store.report().torn_file.empty() && image.at(name).size() > offset);
      EXPECT_LE(store.report().torn_offset, offset);
    }
    CheckGoesOn(store);
  }

  Fates fates;

 private:
  void CheckReport(const TestStore& store, const std::string& name, uint64_t offset, bool is_log) {
    ++fates.reported;
    const Status& status = store.status();
    EXPECT_TRUE(status.code() == Code::kCorrupt || status.code() == Code::kNotSupported)
        << status.ToString();
    EXPECT_NE(store.problem().find(name), std::string::npos) << store.problem();
    EXPECT_LE(status.detail(), history_.image.at(name).size()) << store.problem();
    if (is_log) {
      EXPECT_LE(status.detail(), offset) << store.problem();
    }
  }

  // Checks that later writes are there at the next start, beside the recovered pairs.
  static void CheckGoesOn(TestStore& store) {
    const Version before = store.engine(0).Latest();
    Batch batch;
    batch.set_now_ms(store.now_ms());
    batch.Put("next", "1");
    EXPECT_GT(store.engine(0).Execute(batch), before);
    store.log().Publish();
    TestStore next(TakeImage(store.disk()), LogSync::kNo, kSegmentBytes);
    ASSERT_TRUE(next.status().ok()) << next.problem();
    EXPECT_EQ(next.States(), store.States());
  }

  const History& history_;
};

std::string LastSegment(const Image& image) {
  std::string last;
  for (const auto& [name, bytes] : image) {
    if (PositionOfSegment(name)) last = name;
  }
  return last;
}

void Tell(const char* what, const Fates& fates) {
  std::printf("%s: %d reported, %d cut, %d of no effect\n", what, fates.reported, fates.cut,
              fates.harmless);
}

class LogDamage : public testing::TestWithParam<bool> {};

// Goal: the test's directory has all that it should.
TEST_P(LogDamage, UndamagedIsRecovered) {
  const History history = MakeHistory(GetParam());
  TestStore store(history.image, LogSync::kNo, kSegmentBytes);
  ASSERT_TRUE(store.status().ok()) << store.problem();
  EXPECT_EQ(store.States(), history.states.back());
  EXPECT_FALSE(store.report().snapshot.empty());
  EXPECT_GT(store.report().log_changes, 0u);
  EXPECT_FALSE(store.report().lacks_log);
  const auto segments = std::ranges::count_if(
      history.image, [](const auto& file) { return PositionOfSegment(file.first).has_value(); });
  EXPECT_GE(segments, 4);
}

// Goal: no flipped bit is ever served; what was synced is never cut.
// Method: a directory with a snapshot and segments with all kinds of changes, as a process that was
// killed leaves it, or one that has ended; in each byte of each file the lowest or all bits are
// turned.
TEST_P(LogDamage, EveryByteTurned) {
  const History history = MakeHistory(GetParam());
  Damage damage(history);
  for (const auto& [name, bytes] : history.image) {
    const auto begin = PositionOfSegment(name);
    const size_t end = begin ? history.ends.back() + kEndBytes - *begin : bytes.size();
    for (size_t i = 0; i < bytes.size() && !HasFailure(); i += i < end ? kStep : kStepInZeroes) {
      for (const int bits : {0x01, 0xff}) {
        Image image = history.image;
        image[name][i] = static_cast<char>(bytes[i] ^ bits);
        damage.Check(image, name, i, begin ? std::optional(*begin + i) : std::nullopt);
      }
    }
  }
  Tell("turned", damage.fates);
  EXPECT_GT(damage.fates.reported, 0);
  // The log of a store that was closed has no end that may be torn.
  EXPECT_EQ(damage.fates.cut > 0, !GetParam());
}

// Goal: a log that ends anywhere in its last segment is recovered up to there.
TEST_P(LogDamage, EveryLengthOfTheLastSegment) {
  History history = MakeHistory(GetParam());
  const std::string name = LastSegment(history.image);
  const uint64_t begin = *PositionOfSegment(name);
  history.synced = begin;  // who says more is cut off with it
  Damage damage(history);
  const size_t end = history.ends.back() + kEndBytes - begin;
  for (size_t length = 0; length < history.image[name].size() && !HasFailure();
       length += length < end ? 1 : kStepInZeroes) {
    Image image = history.image;
    image[name].resize(length);
    damage.Check(image, name, length, begin + length);
  }
  Tell("cut short", damage.fates);
  EXPECT_GT(damage.fates.cut, 0);
}

// Goal: a segment that is gone, or is short, is found if others follow.
TEST_P(LogDamage, EverySegmentMissing) {
  const History history = MakeHistory(GetParam());
  std::vector<std::string> needed;
  for (const auto& [name, bytes] : history.image) {
    if (PositionOfSegment(name)) needed.push_back(name);
  }
  needed.pop_back();  // behind the last one nothing follows
  for (const std::string& name : needed) {
    SCOPED_TRACE(name);
    for (const bool is_empty : {false, true}) {
      Image image = history.image;
      if (is_empty) {
        image[name].clear();
      } else {
        image.erase(name);
      }
      TestStore store(image, LogSync::kNo, kSegmentBytes);
      EXPECT_EQ(store.status().code(), Code::kCorrupt) << store.problem();
    }
  }
}

// Goal: a snapshot without a log is taken, which is told once: the next start finds a log.
TEST_P(LogDamage, AllSegmentsMissing) {
  const History history = MakeHistory(GetParam());
  Image image = history.image;
  std::erase_if(image, [](const auto& file) { return PositionOfSegment(file.first).has_value(); });
  TestStore store(image, LogSync::kNo, kSegmentBytes);
  ASSERT_TRUE(store.status().ok()) << store.problem();
  EXPECT_NE(std::ranges::find(history.states, store.States()), history.states.end());
  EXPECT_TRUE(store.report().lacks_log);
  TestStore next(TakeImage(store.disk()), LogSync::kNo, kSegmentBytes);
  EXPECT_EQ(next.States(), store.States());
  EXPECT_FALSE(next.report().lacks_log);
}

INSTANTIATE_TEST_SUITE_P(Ends, LogDamage, testing::Bool(), [](const auto& is_closed) {
  return is_closed.param ? "Closed" : "Killed";
});

}  // namespace
}  // namespace skep::durable
