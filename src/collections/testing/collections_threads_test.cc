// Threads on the same collections in parts.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitized.h"
#include "collections/testing/collection_world_test.h"

namespace skep::collections {
namespace {

constexpr int kThreads = 4;
constexpr int kCalls = kSanitized ? 300 : 2000;

template <typename Body>
void RunThreads(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

std::string Member(int i) { return "member" + std::to_string(i); }

std::string Entry(double score, const std::string& member) {
  std::string operand(1, '\0');
  operand.append(reinterpret_cast<const char*>(&score), sizeof score);
  return operand + TextsOperand({member});
}

// Goal: fields that get deadlines all the time are seen or gone, and never come back, while the
// sweep is at work; in the end all that were due are removed.
// Method: each thread gives fields of its own of one hash a deadline that passes soon, by a clock
// that all threads push on; a field with a later one stays. A thread beside them sweeps.
TEST(CollectionsThreads, DeadlinesOfFields) {
  for (const size_t value_bytes : {size_t{100}, size_t{1} << 20}) {
    World world(value_bytes);
    Engine& engine = world.engine();
    constexpr uint64_t kNever = uint64_t{1} << 40;
    std::atomic<uint64_t> now_ms = 1000;
    std::atomic<bool> is_over = false;
    std::thread sweeper([&] {
      while (!is_over) engine.Maintain(now_ms);
    });
    RunThreads([&](int thread) {
      for (int i = 0; i < kCalls; ++i) {
        const std::string soon = Member(thread * kCalls + i);
        const std::string late = "late" + std::to_string(thread * 40 + i % 40);
        const uint64_t now = now_ms.fetch_add(1);
        const Words pairs = {soon, "1", late, "1"};
        Call(engine, "hash", "hash-set", TextsOperand(pairs), now);
        Call(engine, "hash", "hash-expire", FieldDeadlineOperand(now + 3, {soon}), now);
        Call(engine, "hash", "hash-expire", FieldDeadlineOperand(kNever, {late}), now);
        const uint64_t later = now_ms.fetch_add(3) + 3;
        const Reply gone = Call(engine, "hash", "hash-get", TextsOperand({soon}), later);
        ASSERT_EQ(gone.value, std::string(1, '\0'));
        const Reply there = Call(engine, "hash", "hash-value-bytes", TextsOperand({late}), later);
        ASSERT_EQ(there.integer, 1);
      }
    });
    is_over = true;
    sweeper.join();
    world.MaintainAll(now_ms + 1'000'000);
    const Reply all = Call(engine, "hash", "hash-all", {}, now_ms);
    types::Texts texts;
    ASSERT_TRUE(types::TakeTexts(all.value, &texts));
    EXPECT_EQ(texts.size(), size_t{2} * 40 * kThreads);
    EXPECT_STREQ(engine.Verify(), nullptr);
  }
}

// Goal: no write of a hot collection is lost, and each counts once.
// Method: all threads add to the same few fields of a hash, add members of their own to a set,
// move members of a sorted set about and push to a list; the sums must be right in the end. A
// thread beside them reads: a count is never below one that was seen before.
TEST(CollectionsThreads, HotCollections) {
  World world(100);
  Engine& engine = world.engine();
  std::atomic<bool> is_over = false;
  std::thread reader([&] {
    int64_t seen = 0;
    while (!is_over) {
      const Reply all = Call(engine, "set", "set-all", {});
      const Reply count = Call(engine, "set", "set-length", {});
      EXPECT_GE(all.integer, seen);
      EXPECT_GE(count.integer, all.integer);
      seen = count.integer;
      engine.Maintain(0);
    }
  });
  RunThreads([&](int thread) {
    for (int i = 0; i < kCalls; ++i) {
      Call(engine, "hash", "hash-add", TextsOperand({Member(i % 40), "1"}));
      Call(engine, "set", "set-add", TextsOperand({Member(i * kThreads + thread)}));
      Call(engine, "zset", "zset-add", Entry(i, Member((i * 7 + thread) % 60)));
      Call(engine, "list", thread % 2 == 0 ? "list-push-left" : "list-push-right",
           TextsOperand({Member(thread)}));
    }
  });
  is_over = true;
  reader.join();
  int64_t sum = 0;
  for (int i = 0; i < 40; ++i) {
    sum += Call(engine, "hash", "hash-add", TextsOperand({Member(i), "0"})).integer;
  }
  EXPECT_EQ(sum, kThreads * kCalls);
  EXPECT_EQ(Call(engine, "set", "set-length", {}).integer, kThreads * kCalls);
  EXPECT_EQ(Call(engine, "zset", "zset-length", {}).integer, 60);
  EXPECT_EQ(Call(engine, "list", "list-length", {}).integer, kThreads * kCalls);
  EXPECT_STREQ(engine.Verify(), nullptr);
}

// Goal: each member that is popped goes to one thread, and each edit of a list counts once.
// Method: threads pop from both ends of a sorted set, alone and in transactions, while they add
// members between; what they popped and what is left must be each member once. Beside that they
// change one list at both ends and in the middle, so that it keeps its length.
TEST(CollectionsThreads, PopsAndEdits) {
  World world(100);
  Engine& engine = world.engine();
  for (int i = 0; i < kThreads * kCalls; ++i) {
    Call(engine, "zset", "zset-add", Entry(i % 97, Member(i)));
  }
  for (int i = 0; i < 200; ++i) Call(engine, "list", "list-push-right", TextsOperand({Member(i)}));
  std::vector<std::string> popped(kThreads);
  RunThreads([&](int thread) {
    const std::string one = TextsOperand({"1"});
    const std::string two = TextsOperand({"2"});
    const std::string own = TextsOperand({"before", Member(100 + thread), "new"});
    const std::string removed = TextsOperand({"1", "new"});
    const std::string ends = TextsOperand({"left", "right"});
    for (int i = 0; i < kCalls / 4; ++i) {
      Batch batch(i % 2 == 0 ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
      batch.Apply("zset", Named(thread % 2 == 0 ? "zset-pop-lowest" : "zset-pop-highest"), one);
      const std::string entry = Entry(i, Member(kThreads * kCalls + i * kThreads + thread));
      batch.Apply("zset", Named("zset-add"), entry);
      batch.Apply("zset", Named("zset-pop-lowest"), two);
      batch.Apply("list", Named("list-insert"), own);
      batch.Apply("list", Named("list-remove"), removed);
      batch.Apply("list", Named("list-rotate"), ends);
      engine.AwaitRelease(engine.Execute(batch));
      EXPECT_EQ(batch.outcome(0).integer + batch.outcome(2).integer, 3);
      EXPECT_EQ(batch.outcome(1).integer, 1);
      EXPECT_EQ(batch.outcome(4).integer, 1);
      popped[static_cast<size_t>(thread)] += batch.outcome(0).value;
      popped[static_cast<size_t>(thread)] += batch.outcome(2).value;
    }
  });
  std::multiset<std::string> members;
  Scratch scratch;
  const std::string_view all = types::WriteRangeRequest({}, "0", "-1", scratch);
  popped.push_back(Call(engine, "zset", "zset-range", all).value);
  for (std::string_view entries : popped) {
    types::Entry entry;
    while (types::TakeEntry(entries, &entry)) members.insert(std::string(entry.member));
  }
  EXPECT_EQ(members.size(), static_cast<size_t>(kThreads * kCalls + kThreads * (kCalls / 4)));
  EXPECT_EQ(std::set(members.begin(), members.end()).size(), members.size());
  EXPECT_EQ(Call(engine, "list", "list-length", {}).integer, 200);
  EXPECT_STREQ(engine.Verify(), nullptr);
}

// Goal: additions to scores, made by threads in groups without reading the segments of scores, are
// all made, each once, while segments are divided and joined beneath them.
// Method: threads add 1 to scores of the same members, several in a batch, and beside that add and
// pop members of their own at the upper end; in the end the sum of the scores is right.
TEST(CollectionsThreads, SumsOfScores) {
  constexpr int kShared = 300;
  World world(100);
  Engine& engine = world.engine();
  for (int i = 0; i < kShared; ++i) Call(engine, "zset", "zset-add", Entry(0, Member(i)));
  RunThreads([&](int thread) {
    const std::string one = TextsOperand({"1"});
    for (int i = 0; i < kCalls / 4; ++i) {
      Batch batch;
      for (int each = 0; each < 6; ++each) {
        std::string entry = Entry(1, Member((i * 13 + each * 50 + thread) % kShared));
        entry[0] = static_cast<char>(types::kAddOne);
        batch.Apply("zset", Named("zset-add"), batch.scratch().Copy(entry));
      }
      const std::string own = Entry(1e6 + thread, "own" + std::to_string(i * kThreads + thread));
      if (i % 2 == 0) batch.Apply("zset", Named("zset-add"), own);
      if (i % 2 == 1) batch.Apply("zset", Named("zset-pop-highest"), one);
      engine.AwaitRelease(engine.Execute(batch));
    }
  });
  Scratch scratch;
  const std::string_view all = types::WriteRangeRequest({}, "0", "-1", scratch);
  const std::string entries = Call(engine, "zset", "zset-range", all).value;
  double sum = 0;
  types::Entry entry;
  for (std::string_view rest = entries; types::TakeEntry(rest, &entry);) {
    if (entry.member.starts_with("member")) sum += entry.score;
  }
  EXPECT_EQ(sum, 6.0 * kThreads * (kCalls / 4));
  EXPECT_STREQ(engine.Verify(), nullptr);
}

// Goal: a call that reads two fields sees them as one write left them, and never an older write
// than a call before it; beside writers, and beside a thread that divides and joins segments.
// Method: each thread but the last writes pairs of fields, which lie in segments far from each
// other, with rising numbers, and reads pairs of all threads, its own among them, before its write
// is released. The last one sets and deletes fields between.
TEST(CollectionsThreads, PairsOfFields) {
  constexpr int kPairs = 8;
  World world(256);
  Engine& engine = world.engine();
  const auto left = [](int pair) { return "a" + std::to_string(100 + pair); };
  const auto right = [](int pair) { return "z" + std::to_string(100 + pair); };
  Words all;
  for (int i = 0; i < 1500; ++i) {
    all.push_back("m" + std::to_string(1000 + i));
    all.push_back("value");
  }
  for (int pair = 0; pair < kThreads * kPairs; ++pair) {
    for (const std::string& field : {left(pair), right(pair)}) {
      all.push_back(field);
      all.push_back("0");
    }
  }
  Call(engine, "hash", "hash-set", TextsOperand(all));
  RunThreads([&](int thread) {
    std::vector<int> seen(kThreads * kPairs);
    for (int i = 0; i < kCalls; ++i) {
      if (thread == kThreads - 1) {
        Words words;
        for (int each = 0; each < 20; ++each) {
          words.push_back("m" + std::to_string(1000 + (i * 37 + each) % 1500) + "+");
          if (i % 2 == 0) words.push_back("value");
        }
        Call(engine, "hash", i % 2 == 0 ? "hash-set" : "hash-delete", TextsOperand(words));
        continue;
      }
      const int own = thread * kPairs + i % kPairs;
      const std::string number = std::to_string(i);
      const std::string pair_now = TextsOperand({left(own), number, right(own), number});
      Batch write;
      write.Apply("hash", Named("hash-set"), pair_now);
      engine.Execute(write);
      Batch batch;
      const auto pair_of = [&](int call) {
        return call == 0 ? own : (i * 5 + call * 3) % (kThreads * kPairs);
      };
      for (int call = 0; call < 4; ++call) {
        const std::string pair = TextsOperand({left(pair_of(call)), right(pair_of(call))});
        batch.Apply("hash", Named("hash-get"), batch.scratch().Copy(pair));
      }
      engine.AwaitRelease(engine.Execute(batch));
      for (int call = 0; call < 4; ++call) {
        types::Texts texts;
        ASSERT_TRUE(types::TakeTexts(batch.outcome(static_cast<uint32_t>(call)).value, &texts));
        ASSERT_EQ(texts.size(), 2u);
        EXPECT_EQ(texts[0], texts[1]);
        int& last = seen[static_cast<size_t>(pair_of(call))];
        const int now = std::stoi(std::string(texts[0]));
        EXPECT_GE(now, last);
        if (call == 0) {
          EXPECT_EQ(now, i);
        }
        last = now;
      }
    }
  });
  EXPECT_STREQ(engine.Verify(), nullptr);
}

// Goal: conversions, deletes, renames and sweeps of the same keys by many threads leave whole
// collections and no part that nobody has.
// Method: threads fill a collection until it is large, rename it to and fro, delete it and
// overwrite it, while all of them sweep; in the end one sweep leaves nothing of what was deleted.
TEST(CollectionsThreads, KeysComeAndGo) {
  World world(64);
  Engine& engine = world.engine();
  RunThreads([&](int thread) {
    for (int i = 0; i < kCalls; ++i) {
      const std::string key = "key" + std::to_string((i + thread) % 3);
      const std::string other = "key" + std::to_string((i + thread + 1) % 3);
      Call(engine, key, "set-add", TextsOperand({Member(i % 50), Member(i % 31 + thread)}));
      if (i % 11 == 0) {
        Batch batch(Batch::Kind::kAtomic);
        batch.Move(key, other);
        engine.Execute(batch);
      }
      if (i % 17 == 0) {
        Batch batch(Batch::Kind::kAtomic);
        const std::string member = TextsOperand({Member(i % 50)});
        const uint32_t taken = batch.Apply(key, Named("set-take"), member);
        batch.Add({.op = Op::kApply,
                   .flags = Request::kOperandOfSlot | Request::kUnlessNone,
                   .limit = taken,
                   .key = other,
                   .function = Named("set-add")});
        engine.Execute(batch);
      }
      if (i % 61 == 0) {
        Batch batch;
        batch.Delete(key);
        engine.Execute(batch);
      }
      engine.Maintain(0);
    }
  });
  EXPECT_STREQ(engine.Verify(), nullptr);
  Batch batch;
  for (const char* const key : {"key0", "key1", "key2"}) batch.Delete(key);
  engine.AwaitRelease(engine.Execute(batch));
  world.MaintainAll();
  uint64_t left = 1;
  engine.Describe(0, [&](std::string_view name, uint64_t value) {
    if (name == "items") left = value;
  });
  EXPECT_EQ(left, 0u);
}

}  // namespace
}  // namespace skep::collections
