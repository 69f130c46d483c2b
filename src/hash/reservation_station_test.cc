// Tests the station as the engine uses it: whole batches against the same requests one after the
// other.
#include "hash/reservation_station.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "engine/testing/random_batch.h"
#include "hash/hash_engine.h"
#include "hash/point_run.h"

namespace skep::hash {
namespace {

constexpr uint64_t kNowMs = 1'000'000;

// Two engines of one partition: one gets batches, the other one request at a time.
class Twins {
 public:
  Twins() : batched_(Make(budget_of_batched_)), single_(Make(budget_of_single_)) {}

  // Gives both the batch; each slot must have the same outcome.
  void Run(Batch& batch) {
    batch.set_now_ms(kNowMs);
    batched_->Execute(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      SCOPED_TRACE(testing::Message() << "slot " << slot << " of " << batch.size() << ", op "
                                      << static_cast<int>(batch.requests()[slot].op));
      Batch one;
      one.set_now_ms(kNowMs);
      one.Add(batch.requests()[slot]);
      single_->Execute(one);
      const Outcome& a = batch.outcome(slot);
      const Outcome& b = one.outcome(0);
      ASSERT_EQ(a.verdict, b.verdict) << a.status.ToString() << " " << b.status.ToString();
      ASSERT_EQ(a.status.code(), b.status.code());
      if (a.verdict == Verdict::kRefused) continue;
      ASSERT_EQ(a.value, b.value);
      ASSERT_EQ(a.integer, b.integer);
      ASSERT_EQ(a.present, b.present);
      ASSERT_EQ(a.deadline_ms, b.deadline_ms);
    }
    ASSERT_STREQ(batched_->Verify(), nullptr);
    ASSERT_EQ(batched_->Statistics().items, single_->Statistics().items);
    ASSERT_EQ(batched_->Statistics().deadlines, single_->Statistics().deadlines);
  }

 private:
  static std::unique_ptr<HashEngine> Make(MemoryBudget& budget) {
    return HashEngine::Make({.budget = &budget}, {.partitions = 1, .table = {}});
  }

  MemoryBudget budget_of_batched_;
  MemoryBudget budget_of_single_;
  std::unique_ptr<HashEngine> batched_;
  std::unique_ptr<HashEngine> single_;
};

std::string_view Number(Batch& batch, uint64_t number) {
  return batch.scratch().Copy(std::to_string(number));
}

// The new value is a part of the old one, at the same place.
FunctionEffect DropFirst(const FunctionInput& input) {
  const std::string_view now = input.value.value_or("");
  return {.action = FunctionEffect::Action::kReplace,
          .value = now.substr(std::min<size_t>(now.size(), 1)),
          .integer = static_cast<int64_t>(now.size())};
}

// Adds a point of any kind that may fail: a function that refuses, a comparison that does not hold.
void AddRandom(Batch& batch, std::string_view key, std::mt19937_64& rng) {
  constexpr std::string_view kOperands[] = {"erase", "keep", "fail", ""};
  constexpr size_t kSizes[] = {0, 1, 10, 24, 40, 200, 700, 5000};
  const std::string value(kSizes[rng() % std::size(kSizes)], static_cast<char>('a' + rng() % 26));
  Request r{.op = Op::kGet, .key = key};
  static const Function* const drop_first = *RegisterFunction("test-drop-first", DropFirst);
  switch (rng() % 10) {
    case 0:
      break;
    case 1:
      r.op = Op::kApply;
      r.function = drop_first;
      break;
    case 2:
    case 3:
      r.op = rng() % 2 == 0 ? Op::kPut : Op::kInsert;
      r.value = rng() % 2 == 0 ? batch.scratch().Copy(value) : Number(batch, rng() % 100);
      if (rng() % 4 == 0) r.deadline_ms = kNowMs + rng() % 50;
      break;
    case 4:
      r.op = Op::kDelete;
      break;
    case 5:
      r.op = Op::kExpire;
      r.deadline_ms = rng() % 3 == 0 ? 0 : kNowMs + rng() % 50;
      break;
    case 6:
      r.op = Op::kUpdate;
      r.value = "7";
      r.when = Request::kEquals;
      r.other = Number(batch, rng() % 10);
      break;
    case 7:
      r.op = Op::kApply;
      r.function = ReverseFunction();
      r.value = kOperands[rng() % std::size(kOperands)];
      break;
    case 8:
      r.op = Op::kApply;
      r.function = functions::kAppend;
      r.value = "1";
      break;
    default:
      r.op = Op::kApply;
      r.function = functions::kAddDecimal;
      r.value = Number(batch, rng() % 5);
  }
  if (rng() % 3 == 0 && r.op != Op::kApply) r.flags |= Request::kReturnPrevious;
  batch.Add(r);
}

// Goal: a batch has the outcomes, and the effect on the table, of its requests one after the other.
// Method: storms on one key, on a few and on many, of every kind of point, failures inside chains,
// deletes and values of all sizes; as many keys as make the table grow in the middle of a batch.
TEST(ReservationStation, AgreesWithOneAfterTheOther) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  Twins twins;
  for (const uint64_t keys : {1, 2, 5, 40, 2000}) {
    for (int i = 0; i < 60; ++i) {
      Batch batch;
      for (uint64_t left = 1 + rng() % 600; left > 0; --left) {
        AddRandom(batch, Number(batch, rng() % keys), rng);
      }
      twins.Run(batch);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Goal: where writes are numbered, those of one key have ascending numbers, also where some of them
// were done at the first look and others waited; none has the number of an earlier batch, and none
// is above the ticket.
// Method: the same storms, on an engine of several partitions.
TEST(ReservationStation, NumbersOfOneKeyAscend) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  MemoryBudget budget;
  const auto engine =
      HashEngine::Make({.budget = &budget, .numbers_writes = true}, {.partitions = 4, .table = {}});
  std::map<std::string, Version, std::less<>> last_of;
  Version last_ticket = 0;
  for (const uint64_t keys : {1, 5, 40, 2000}) {
    for (int i = 0; i < 60; ++i) {
      Batch batch;
      batch.set_now_ms(kNowMs);
      for (uint64_t left = 1 + rng() % 600; left > 0; --left) {
        AddRandom(batch, Number(batch, rng() % keys), rng);
      }
      const Version ticket = engine->Execute(batch);
      for (uint32_t slot = 0; slot < batch.size(); ++slot) {
        const Request& r = batch.requests()[slot];
        const Outcome& outcome = batch.outcome(slot);
        if (!IsWrite(r.op) || outcome.verdict != Verdict::kDone) continue;
        ASSERT_GT(outcome.version, last_ticket) << slot;
        ASSERT_LE(outcome.version, ticket) << slot;
        Version& last = last_of[std::string(r.key)];
        ASSERT_GE(outcome.version, last) << slot;
        last = outcome.version;
      }
      last_ticket = std::max(last_ticket, ticket);
    }
  }
}

// A model of a batch of puts, deletes, gets and appends, given which of them were refused.
class Replay {
 public:
  // Checks that those refused are stores, and changed nothing. Returns how many were refused.
  int Check(const Batch& batch) {
    int refused = 0;
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      const Request& r = batch.requests()[slot];
      const Outcome& out = batch.outcome(slot);
      const std::string key(r.key);
      const auto at = values_.find(key);
      const bool present = at != values_.end();
      SCOPED_TRACE(testing::Message() << "slot " << slot << " of " << batch.size());
      const bool updates = r.op == Op::kApply && r.function->kind == FunctionKind::kUpdate;
      if (updates && !present) {
        EXPECT_EQ(out.status.code(), Code::kInvalidArgument);
        continue;
      }
      if (out.verdict == Verdict::kRefused) {
        EXPECT_EQ(out.status.code(), Code::kOutOfMemory);
        EXPECT_TRUE(r.op == Op::kPut || r.op == Op::kApply);
        ++refused;
        continue;
      }
      if (updates) {
        CheckUpdate(r, out);
        continue;
      }
      EXPECT_EQ(out.present, present);
      if (r.op != Op::kApply) {
        EXPECT_EQ(out.value, present ? at->second : "");
      }
      if (r.op == Op::kPut) values_[key] = r.value;
      if (r.op == Op::kDelete) values_.erase(key);
      if (r.op != Op::kApply) continue;
      values_[key] += r.value;
      EXPECT_EQ(out.integer, static_cast<int64_t>(values_[key].size()));
    }
    return refused;
  }

 private:
  // An update has added one to each byte, and returned the value before.
  void CheckUpdate(const Request& r, const Outcome& out) {
    std::string& value = values_[std::string(r.key)];
    EXPECT_EQ(out.value, value);
    for (char& c : value) ++c;
    EXPECT_EQ(out.integer, static_cast<int64_t>(value.size()));
  }

  std::map<std::string, std::string> values_;
};

// Goal: a write that finds no memory fails operations of its chain, and the later ones see what has
// really happened.
// Method: chains of small and huge values on three keys, of which the huge ones do not fit. A
// refused operation has changed nothing: a replay without it gives every answer, also those of the
// next batch. The batches are long enough to end, now and then, in a huge value and in a small one.
TEST(ReservationStation, NoMemoryInTheMiddleOfAChain) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  MemoryBudget budget(1 << 20);
  const auto engine = HashEngine::Make({.budget = &budget}, {.partitions = 1, .table = {}});
  const std::string huge(5 << 18, 'h');
  const std::string medium(2000, 'm');
  const Function* const add = FindFunction(FunctionKind::kUpdate, "add", Element::kI8);
  const std::string one = "\1";
  Replay replay;
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    Batch batch;
    for (uint64_t left = 1 + rng() % 12; left > 0; --left) {
      const std::string_view key = Number(batch, rng() % 3);
      switch (rng() % 6) {
        case 0:
          batch.Put(key, huge, Request::kReturnPrevious);
          break;
        case 1:
          batch.Put(key, rng() % 2 == 0 ? std::string_view(medium) : "1", Request::kReturnPrevious);
          break;
        case 2:
          batch.Delete(key, Request::kReturnPrevious);
          break;
        case 3:
          batch.Get(key);
          break;
        case 4:
          for (uint64_t times = 1 + rng() % 3; times > 0; --times) {
            batch.UpdateElements(key, add, one, {.returns = UpdateOptions::Returns::kOld});
          }
          break;
        default:
          batch.Apply(key, functions::kAppend, rng() % 3 == 0 ? std::string_view(huge) : "2");
      }
    }
    engine->Execute(batch);
    refused += replay.Check(batch);
    ASSERT_STREQ(engine->Verify(), nullptr);
    ASSERT_LE(budget.used(), budget.limit());
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 50);
}

// Goal: however many operations of a batch on a key wait, the table is written once for them.
// Method: points as an engine does them, on a table that counts its moves, which are pairs stored
// elsewhere or erased. The first request of a key has to wait, because it has a condition, and so
// all of its key do. The values of one key are of different sizes, so that none fits where the
// one before lies; keys take turns, so that no two requests of one are side by side.
TEST(ReservationStation, TheTableIsWrittenOnceForEachKey) {
  MemoryBudget budget;
  LatestNow now;
  Watches watches;
  Core core(budget, now, watches, false);
  core.arenas.push_back(std::make_unique<Arena>(ArenaOptions{.budget = &budget}));
  core.partitions.push_back(
      std::make_unique<Partition>(*core.arenas[0], budget, TableOptions{.prefaulter = nullptr}));
  Table& table = core.partitions[0]->table;
  ASSERT_TRUE(table.Reserve());
  const EngineTraits traits{.name = "hash", .ordered = false};
  ReservationStation station;
  const auto groups = std::make_unique<Groups>();
  const auto window = std::make_unique<PointRun::Window>();

  constexpr uint32_t kKeys = 3;
  constexpr size_t kSizes[] = {50, 100, 200, 400, 3000};
  const std::string bytes(3000, 'v');
  Batch batch;
  for (uint32_t i = 0; i < kKeys; ++i) batch.Update(Number(batch, i), "if present");
  for (uint32_t i = 0; i < 60; ++i) {
    const std::string_view key = Number(batch, i % kKeys);
    i % 7 == 5 ? batch.Delete(key)
               : batch.Put(key, std::string_view(bytes).substr(0, kSizes[i % std::size(kSizes)]));
  }
  BatchWriter out(batch);
  PointRun points(core, traits, batch, out, station, *groups, *window);
  const uint64_t before = table.moves();
  for (uint32_t slot = 0; slot < batch.size(); ++slot) slot = points.Add(slot) - 1;
  points.Flush();
  EXPECT_EQ(table.moves() - before, kKeys);
  EXPECT_EQ(station.entries().size(), kKeys);
  EXPECT_EQ(table.items(), kKeys);
  for (uint32_t i = 60 - kKeys; i < 60; ++i) {
    const std::string key = std::to_string(i % kKeys);
    const Table::Place place = table.Find(KeyOf(key));
    ASSERT_TRUE(place);
    EXPECT_EQ(table.Read(place).value.size(), kSizes[i % std::size(kSizes)]);
  }
}

// Goal: keys that share a slot of the station neither wait for each other nor are taken for one
// another.
// Method: keys with equal hashes, which no real ones have.
TEST(ReservationStation, TellsKeysOfOneHashApart) {
  ReservationStation station;
  constexpr uint32_t kKeys = 50;
  station.Reset(kKeys, 2 * kKeys);
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < kKeys; ++i) texts.push_back(std::to_string(i).append("-of-one-hash"));
  const auto key = [&](uint32_t i) {
    return Key{.bytes = texts[i], .hash = 77, .head = HeadOf(texts[i])};
  };
  for (uint32_t i = 0; i < 2 * kKeys; ++i) {
    const auto [entry, is_new] = station.Add(key(i % kKeys));
    EXPECT_EQ(is_new, i < kKeys);
    EXPECT_EQ(entry.key.bytes, texts[i % kKeys]);
    station.Chain(entry, i);
  }
  ASSERT_EQ(station.entries().size(), kKeys);
  for (uint32_t i = 0; i < kKeys; ++i) {
    const ReservationStation::Entry* const entry = station.Find(key(i));
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->first, i);
    EXPECT_EQ(station.Next(i), i + kKeys);
    EXPECT_EQ(station.Next(i + kKeys), ReservationStation::kNone);
  }
  EXPECT_EQ(station.Find({.bytes = "other", .hash = 77, .head = HeadOf("other")}), nullptr);
}

}  // namespace
}  // namespace skep::hash
