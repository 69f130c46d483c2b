// Tests that set the machine's clock, forward and back, while the server runs and while it does
// not: a time to live lasts as long as it says, deadlines are those of the clock or come late, and
// no key is lost by it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/simulation/sim_cluster.h"

namespace skep::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kDayMs = 24 * 60 * kMinuteMs;
constexpr int64_t kJumpsMs[] = {kMinuteMs, kDayMs, 365 * kDayMs};
constexpr uint64_t kSeed = 7;  // arbitrary: nothing here depends on it

// A server, a clock that is set, and a client. Owner: the test's thread.
class SetClocks {
 public:
  explicit SetClocks(bool durable)
      : cluster_(kSeed, {.config = "workers = 1\n", .durable = durable}),
        client_(&cluster_.Connect()) {}

  RespReply Ask(std::initializer_list<std::string_view> args) {
    return cluster_.Ask(*client_, args);
  }
  void Set(std::initializer_list<std::string_view> args) {
    EXPECT_EQ(Ask(args).text, "OK") << Describe(Ask(args));
  }
  bool Has(std::string_view key) { return Ask({"EXISTS", key}).integer == 1; }
  void StepClock(int64_t ms) { cluster_.sim().clock().StepWall(ms * 1'000); }
  void Restart() {
    cluster_.Restart(false);
    client_ = &cluster_.Connect();
  }
  void Pass(milliseconds time) { cluster_.RunFor(time); }
  int64_t WallMs() { return static_cast<int64_t>(cluster_.sim().clock().WallMs()); }
  std::string log() { return cluster_.log(); }
  int64_t BehindMs() {
    constexpr std::string_view kField = "clock_behind_ms:";
    const std::string info = Ask({"INFO", "server"}).text;
    const size_t at = info.find(kField);
    EXPECT_NE(at, std::string::npos) << info;
    return at == std::string::npos ? -1 : std::stoll(info.substr(at + kField.size()));
  }

  // Expects times to live to last as long as they say: of a new key, and of one that had none.
  void ExpectTimesToLiveLast() {
    Set({"SET", "new", "1", "EX", "3"});
    Set({"SET", "old", "1"});
    EXPECT_EQ(Ask({"EXPIRE", "old", "3"}).integer, 1);
    EXPECT_EQ(Ask({"TTL", "new"}).integer, 3);
    Pass(milliseconds(2'900));
    EXPECT_TRUE(Has("new"));
    EXPECT_TRUE(Has("old"));
    Pass(milliseconds(200));
    EXPECT_FALSE(Has("new"));
    EXPECT_FALSE(Has("old"));
  }

  // Expects instants to be those of the clock, for clients that give them and that ask for them.
  void ExpectInstantsAreThoseOfTheClock() {
    const int64_t in_3_s = WallMs() / 1000 + 3;
    const std::string at = std::to_string(in_3_s);
    const std::string at_ms = std::to_string(in_3_s * 1000);
    Set({"SET", "a", "1"});
    EXPECT_EQ(Ask({"EXPIREAT", "a", at}).integer, 1);
    Set({"SET", "b", "1", "PXAT", at_ms});
    for (const char* const key : {"a", "b"}) {
      EXPECT_EQ(Ask({"EXPIRETIME", key}).integer, in_3_s);
      EXPECT_EQ(Ask({"PEXPIRETIME", key}).integer, in_3_s * 1000);
      const int64_t left_ms = Ask({"PTTL", key}).integer;
      EXPECT_GT(left_ms, 1'900);
      EXPECT_LE(left_ms, 3'000);
    }
    const RespReply chunk = Ask({"KSCAN", "PREFIX", "a", "WITHDEADLINES"});
    ASSERT_EQ(chunk.elements.size(), 2u) << Describe(chunk);
    ASSERT_EQ(chunk.elements[1].elements.size(), 2u) << Describe(chunk);
    EXPECT_EQ(chunk.elements[1].elements[1].integer, in_3_s * 1000);
    Pass(milliseconds(1'800));
    EXPECT_TRUE(Has("a"));
    EXPECT_TRUE(Has("b"));
    Pass(milliseconds(1'300));
    EXPECT_FALSE(Has("a"));
    EXPECT_FALSE(Has("b"));
    Set({"SET", "c", "1"});
    EXPECT_EQ(Ask({"EXPIREAT", "c", std::to_string(WallMs() / 1000 - 1)}).integer, 1);
    EXPECT_FALSE(Has("c"));
  }

  void ExpectTimeGoesOn() {
    ExpectTimesToLiveLast();
    ExpectInstantsAreThoseOfTheClock();
  }

  // Expects the server to know and log how far the clock is behind, except for the second that may
  // have passed since it last read the clock.
  void ExpectBehind(int64_t ms) {
    const int64_t told_ms = BehindMs();
    EXPECT_LE(told_ms, ms);
    EXPECT_GE(told_ms, ms - 1000);
    if (ms == 0) return;
    EXPECT_NE(log().find(" s behind the time that keys expire by"), std::string::npos);
  }

 private:
  SimCluster cluster_;
  SimClient* client_;
};

// Goal: a clock that is behind at a start loses no key, however far it is behind; time goes on from
// where it was, and the server says so, until the clock has caught up.
TEST(SetClock, BackAtARestart) {
  for (const int64_t jump_ms : kJumpsMs) {
    SCOPED_TRACE(jump_ms);
    SetClocks clocks(true);
    clocks.Set({"SET", "never", "v"});
    clocks.Set({"SET", "long", "v", "EX", "100000000"});
    clocks.Set({"SET", "short", "v", "EX", "3"});
    clocks.StepClock(-jump_ms);
    clocks.Restart();
    clocks.ExpectBehind(jump_ms);
    for (const char* const key : {"never", "long", "short"}) EXPECT_TRUE(clocks.Has(key)) << key;
    EXPECT_LE(clocks.Ask({"TTL", "short"}).integer, 3);
    clocks.ExpectTimeGoesOn();
    EXPECT_FALSE(clocks.Has("short"));
    clocks.StepClock(jump_ms);
    clocks.Pass(seconds(1));
    clocks.ExpectBehind(0);
    EXPECT_NE(clocks.log().find("the clock has caught up"), std::string::npos);
    clocks.ExpectTimeGoesOn();
    clocks.Restart();
    clocks.ExpectBehind(0);
    clocks.ExpectTimeGoesOn();
    for (const char* const key : {"never", "long"}) EXPECT_TRUE(clocks.Has(key)) << key;
  }
}

// Goal: a clock that was ahead for a while is followed, as the server cannot know better; when it
// is right again, at the next start, the data written meanwhile exists, and new keys are not lost.
TEST(SetClock, AheadAtARestartAndBackAtTheNext) {
  for (const int64_t jump_ms : kJumpsMs) {
    SCOPED_TRACE(jump_ms);
    SetClocks clocks(true);
    clocks.Set({"SET", "never", "v"});
    clocks.Set({"SET", "long", "v", "EX", "100000000"});
    clocks.Set({"SET", "short", "v", "EX", "3"});
    clocks.StepClock(jump_ms);
    clocks.Restart();
    clocks.ExpectBehind(0);
    EXPECT_FALSE(clocks.Has("short"));
    clocks.ExpectTimeGoesOn();
    clocks.Set({"SET", "meanwhile", "v", "EX", "3600"});
    clocks.StepClock(-jump_ms);
    for (int restarts = 0; restarts < 2; ++restarts) {
      clocks.Restart();
      clocks.ExpectBehind(jump_ms);
      for (const char* const key : {"never", "long", "meanwhile"}) EXPECT_TRUE(clocks.Has(key));
      EXPECT_FALSE(clocks.Has("short"));
      clocks.ExpectTimeGoesOn();
    }
  }
}

// Goal: a clock that is set while the server runs has the same effects, with a directory and
// without: expired keys stay gone, and other keys live as long as they were given.
TEST(SetClock, WhileTheServerRuns) {
  for (const bool durable : {false, true}) {
    for (const int64_t jump_ms : kJumpsMs) {
      SCOPED_TRACE(testing::Message() << jump_ms << ", durable: " << durable);
      SetClocks clocks(durable);
      clocks.Set({"SET", "short", "v", "EX", "3"});
      clocks.StepClock(-jump_ms);
      clocks.Pass(seconds(1));
      clocks.ExpectBehind(jump_ms);
      EXPECT_TRUE(clocks.Has("short"));
      clocks.ExpectTimeGoesOn();
      EXPECT_FALSE(clocks.Has("short"));
      clocks.StepClock(jump_ms);
      clocks.Pass(seconds(1));
      clocks.ExpectBehind(0);
      clocks.ExpectTimeGoesOn();

      clocks.Set({"SET", "short", "v", "EX", "3"});
      clocks.StepClock(jump_ms);
      clocks.Pass(seconds(1));
      clocks.ExpectBehind(0);
      EXPECT_FALSE(clocks.Has("short"));
      clocks.Set({"SET", "new", "v", "EX", "20"});
      clocks.StepClock(-jump_ms);
      clocks.Pass(seconds(1));
      clocks.ExpectBehind(jump_ms);
      EXPECT_FALSE(clocks.Has("short"));
      EXPECT_EQ(clocks.Ask({"TTL", "new"}).integer, 19);
      clocks.ExpectTimeGoesOn();
    }
  }
}

}  // namespace
}  // namespace skep::simulation
