// Calls about members that are made together, and the ways by which they find what they are about.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collections/joint_calls.h"
#include "collections/pieces.h"
#include "collections/testing/collection_world_test.h"
#include "types/function_table.h"
#include "types/hash_fields.h"

namespace skep::collections {
namespace {

std::string PieceBytes(Form form, const Place& place, std::string_view value) {
  const std::string score(reinterpret_cast<const char*>(&place.score), sizeof place.score);
  const std::string number(8, '\1');
  const std::string member = TextsOperand({std::string(place.member)});
  switch (form) {
    case Form::kField:
      return member + TextsOperand({std::string(value)});
    case Form::kMemberScore:
      return member + number;
    case Form::kEntry:
      return score + member;
    default:
      return member;
  }
}

class MemberCallsTest : public testing::TestWithParam<std::string> {};

// Goal: calls made together count each member in the entry that has it, whether the nodes are read
// by one scan or one by one.
// Method: a set gets and loses members of all its entries, 40 in a batch or two at a time; every
// answer is that of std::set, and the counts are checked with the other invariants.
TEST_P(MemberCallsTest, CountInEveryEntry) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  World world(4096, GetParam());
  Engine& engine = world.engine();
  std::set<std::string> model;
  const auto member = [&] { return "member" + std::to_string(rng() % 30000); };
  Words first;
  for (int i = 0; i < 12000; ++i) first.push_back(member());
  Call(engine, "set", "set-add", TextsOperand(first));
  model.insert(first.begin(), first.end());
  for (int round = 0; round < 200; ++round) {
    const size_t calls = round % 4 == 0 ? 2 : 40;
    // Members are added for some rounds, then removed, so that entries are divided and joined.
    const bool adds = round % 100 < 50;
    Batch batch;
    std::vector<int64_t> expected;
    for (size_t i = 0; i < calls; ++i) {
      Words words;
      int64_t changed = 0;
      for (size_t words_left = rng() % 4 + 1; words_left > 0; --words_left) {
        words.push_back(member());
        changed += adds ? static_cast<int64_t>(model.insert(words.back()).second)
                        : static_cast<int64_t>(model.erase(words.back()));
      }
      expected.push_back(changed);
      batch.Apply("set", Named(adds ? "set-add" : "set-remove"),
                  batch.scratch().Copy(TextsOperand(words)));
    }
    engine.AwaitRelease(engine.Execute(batch));
    for (uint32_t slot = 0; slot < calls; ++slot) {
      ASSERT_EQ(batch.outcome(slot).integer, expected[slot]) << "round " << round << " " << slot;
    }
    if (round % 25 == 24) {
      ASSERT_EQ(engine.Verify(), nullptr) << "round " << round;
    }
  }
  EXPECT_GE(world.ItemsOf(Part::kCounts), 2u);
  EXPECT_EQ(Call(engine, "set", "set-length", {}).integer, static_cast<int64_t>(model.size()));
}

// Goal: calls that only read one member each are answered together like any others.
// Method: batches of reads of a large hash, set and sorted set, of members that are there or not,
// one before the first and one behind the last among them, twice in a batch, and with operands that
// name several members or none; the same batches go to collections in one value. Between them the
// collections change.
TEST_P(MemberCallsTest, ReadEachMemberOfItsSegment) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  World parts(128, GetParam());
  World whole(0, GetParam());
  const auto member = [&] {
    if (rng() % 20 == 0) return rng() % 2 == 0 ? std::string() : std::string(3, '\xff');
    return std::string(1, static_cast<char>(rng())) + std::to_string(rng() % 4);
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<std::string, std::string>> calls;  // key and function; operand
    const char* const keys[] = {"hash", "set", "zset"};
    const std::string key = keys[round % 3];
    for (size_t i = rng() % 30 + 1; i > 0; --i) {
      const std::string name = member();
      std::string operand = TextsOperand({name});
      if (round % 6 >= 3) {
        if (rng() % 30 == 0) operand = {};
        if (rng() % 30 == 0) operand += "\x7f";
        if (rng() % 30 == 0) operand = TextsOperand({name, member()});
        if (rng() % 30 == 0) operand = calls.empty() ? operand : calls.front().second;
        const char* const reads[] = {"hash-get", "set-has", "zset-score"};
        calls.emplace_back(key == "hash" && rng() % 4 == 0 ? "hash-value-bytes" : reads[round % 3],
                           operand);
      } else if (key == "zset") {
        const auto score = static_cast<double>(rng() % 8);
        calls.emplace_back(
            "zset-add",
            std::string(1, '\0') + PieceBytes(Form::kEntry, {.score = score, .member = name}, {}));
      } else if (key == "hash") {
        calls.emplace_back("hash-set", TextsOperand({name, std::to_string(rng())}));
      } else {
        calls.emplace_back("set-add", operand);
      }
    }
    const auto run = [&](World& world) {
      Batch batch;
      for (const auto& [function, operand] : calls) batch.Apply(key, Named(function), operand);
      world.engine().AwaitRelease(world.engine().Execute(batch));
      std::vector<Reply> replies;
      for (uint32_t slot = 0; slot < batch.size(); ++slot) {
        replies.push_back(ReplyOf(batch.outcome(slot)));
      }
      return replies;
    };
    ASSERT_EQ(run(parts), run(whole)) << "round " << round;
  }
  EXPECT_EQ(parts.engine().Verify(), nullptr);
}

// Goal: a key that had a large collection a moment ago is treated as what it is now.
// Method: calls on a large hash leave the hint that the key has one. Then the hash is deleted,
// replaced by a string, or replaced by a hash of one value, beforehand or in the batch itself; the
// batch's other requests on the key are answered in their order.
TEST_P(MemberCallsTest, HintsOfLargeCollectionsMayBeWrong) {
  World world(64, GetParam());
  Engine& engine = world.engine();
  const std::string large = TextsOperand({"a", std::string(40, 'a'), "b", std::string(40, 'b')});
  const std::string small = TextsOperand({"a", "1"});
  const std::string get = TextsOperand({"a"});
  for (const bool beforehand : {true, false}) {
    for (const std::string become : {"absent", "string", "small"}) {
      SCOPED_TRACE(testing::Message() << become << (beforehand ? " before" : " within"));
      Batch erase;
      erase.Delete("key");
      engine.Execute(erase);
      Call(engine, "key", "hash-set", large);
      EXPECT_EQ(Call(engine, "key", "hash-set", large).integer, 0);
      EXPECT_GT(world.ItemsOf(Part::kMembers), 0u);
      Batch batch;
      const auto change = [&](Batch& to) {
        if (become == "string") return to.Put("key", "a string");
        const uint32_t slot = to.Delete("key");
        if (become == "small") to.Apply("key", Named("hash-set"), small);
        return slot;
      };
      uint32_t before = 0;
      if (beforehand) {
        Batch own;
        change(own);
        engine.AwaitRelease(engine.Execute(own));
      } else {
        before = batch.Apply("key", Named("hash-get"), get);
        change(batch);
      }
      const uint32_t read = batch.Apply("key", Named("hash-get"), get);
      const uint32_t written = batch.Apply("key", Named("hash-set"), small);
      engine.AwaitRelease(engine.Execute(batch));
      if (!beforehand) {
        EXPECT_EQ(batch.outcome(before).value, TextsOperand({std::string(40, 'a')}));
      }
      if (become == "string") {
        EXPECT_EQ(batch.outcome(read).status.code(), Code::kWrongType);
        EXPECT_EQ(batch.outcome(written).status.code(), Code::kWrongType);
        continue;
      }
      EXPECT_EQ(batch.outcome(read).value,
                become == "small" ? TextsOperand({"1"}) : std::string(1, '\0'));
      EXPECT_EQ(batch.outcome(written).integer, become == "small" ? 0 : 1);
      EXPECT_EQ(Call(engine, "key", "hash-length", {}).integer, 1);
    }
  }
  EXPECT_EQ(engine.Verify(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Engines, MemberCallsTest, testing::Values("btree", "model"),
                         [](const auto& tested) { return tested.param; });

// Expects FindPieces to tell of each member, ascending, where it is in the body, or would be.
void ExpectFound(Form form, std::string_view body, const std::map<Place, std::string>& model,
                 const std::vector<std::string_view>& sorted) {
  size_t visited = 0;
  FindPieces(form, body, sorted, [&](size_t i, const char* at, const Piece* piece) {
    ASSERT_EQ(i, visited++);
    size_t before = 0;
    for (const auto& [place, bytes] : model) {
      if (place.member < sorted[i]) before += bytes.size();
    }
    EXPECT_EQ(at, body.data() + before);
    const auto known = model.find({.member = sorted[i]});
    ASSERT_EQ(piece != nullptr, known != model.end());
    if (piece != nullptr) {
      EXPECT_EQ(piece->bytes, known->second);
    }
  });
  EXPECT_EQ(visited, sorted.size());
}

// Tells some of the edits, at random, where FindPieces has found their members in the body.
void TellPlaces(Form form, std::string_view body, std::mt19937& rng, std::vector<Edit>* edits) {
  std::vector<std::string_view> names;
  for (const Edit& edit : *edits) names.push_back(edit.place.member);
  FindPieces(form, body, names, [&](size_t i, const char* at, const Piece* piece) {
    if (rng() % 3 == 0) return;
    (*edits)[i].at = at;
    (*edits)[i].was_there = piece != nullptr;
  });
}

// Goal: edits of a body are found and done right, and so are searches in it.
// Method: random edits of bodies of each form, one or several at a time, beside std::map; members
// are of all bytes, and of lengths around that from which a length takes two bytes. Some edits are
// told their place, in this body or in a copy of it, which is no help. A body that is cut short is
// refused or has fewer pieces, and is never read beyond its end (ASan looks).
TEST(Pieces, EditsAgreeWithAMap) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  std::vector<std::string> members = {"", std::string(1, '\0'), "\xff", "a", "ab"};
  for (const size_t bytes : {125, 126, 127, 128, 300}) members.emplace_back(bytes, 'm');
  for (int i = 0; i < 20; ++i) {
    std::string text;
    for (size_t bytes = rng() % 20; bytes > 0; --bytes) text += static_cast<char>(rng());
    members.push_back(text);
  }
  const double scores[] = {-HUGE_VAL, -1.5, 0, 2, HUGE_VAL};
  for (const Form form : {Form::kField, Form::kMember, Form::kMemberScore, Form::kEntry}) {
    std::map<Place, std::string> model;
    std::string body;
    for (int step = 0; step < 2000; ++step) {
      std::map<Place, std::optional<std::string>> wanted;
      for (size_t edits = rng() % 3 == 0 ? rng() % 6 + 2 : 1; edits > 0; --edits) {
        const Place place = {.score = form == Form::kEntry ? scores[rng() % 5] : 0,
                             .member = members[rng() % members.size()]};
        const std::string value(rng() % 140, 'v');
        wanted[place] =
            rng() % 5 < 2 ? std::nullopt : std::optional(PieceBytes(form, place, value));
      }
      std::vector<Edit> edits;
      for (const auto& [place, bytes] : wanted) {
        edits.push_back({.place = place,
                         .bytes = bytes ? std::optional<std::string_view>(*bytes) : std::nullopt});
      }
      const std::string copy = body;
      if (form != Form::kEntry) TellPlaces(form, rng() % 8 == 0 ? copy : body, rng, &edits);
      Scratch scratch;
      const auto edited = EditBody(form, body, model.size(), edits, scratch);
      ASSERT_TRUE(edited.has_value());
      const bool appends = !model.empty() && model.rbegin()->first < wanted.begin()->first;
      EXPECT_EQ(edited->appends, appends);
      body.replace(edited->offset, edited->removed, edited->inserted);
      for (const auto& [place, bytes] : wanted) {
        model.erase(place);
        if (bytes) model.emplace(place, *bytes);
      }
      ASSERT_EQ(edited->pieces, model.size());
      std::string all;
      for (const auto& [place, bytes] : model) all += bytes;
      ASSERT_EQ(body, all) << "step " << step;
      if (form == Form::kEntry) continue;
      std::set<std::string_view> names;
      for (size_t i = rng() % 6; i > 0; --i) names.insert(members[rng() % members.size()]);
      const std::vector<std::string_view> sorted(names.begin(), names.end());
      ExpectFound(form, body, model, sorted);
      const std::string cut(body.data(), rng() % (body.size() + 1));
      FindPieces(form, cut, sorted, [](size_t, const char*, const Piece*) {});
      EditBody(form, cut, model.size(), edits, scratch);
    }
  }
}

// Goal: no function that changes a collection copies all of a large one, also none that is added
// later. set-store replaces whatever there is.
TEST(JointCallsTable, HasEveryFunctionThatWrites) {
  for (const auto functions :
       {types::HashFunctions(), types::HashDeadlineFunctions(), types::SetFunctions(),
        types::ListFunctions(), types::SortedSetFunctions()}) {
    for (const types::TypeFunction& function : functions) {
      if (function.reads_only || function.name == "set-store") continue;
      EXPECT_TRUE(JointCalls::Has(*FindFunction(function.name))) << function.name;
    }
  }
}

}  // namespace
}  // namespace skep::collections
