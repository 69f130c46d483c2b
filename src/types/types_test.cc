// The functions of collections agree with containers of the standard library.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "types/collection.h"
#include "types/function_table.h"
#include "types/score.h"
#include "types/sorted_set.h"

namespace skep::types {
namespace {

using Words = std::vector<std::string>;

// A key: what an engine does with the effects of functions.
class Key {
 public:
  // Runs the function and does what it says.
  void Run(std::string_view name, std::string_view operand) {
    const TypeFunction* const function = Find(name);
    SKEP_CHECK(function != nullptr);
    scratch_.Clear();
    std::optional<std::string_view> value;
    if (value_) value = *value_;
    const FunctionEffect effect = function->body({.value = value,
                                                  .operand = operand,
                                                  .scratch = &scratch_,
                                                  .function = nullptr,
                                                  .value_bytes_max = size_t{64} << 20});
    returned = effect.returned;
    integer = effect.integer;
    status = effect.status;
    if (effect.action == FunctionEffect::Action::kReplace) value_ = std::string(effect.value);
    if (effect.action == FunctionEffect::Action::kErase) value_.reset();
  }
  // Likewise with the words as the operand.
  void Say(std::string_view name, const Words& words) {
    Scratch scratch;
    const std::vector<std::string_view> views(words.begin(), words.end());
    Run(name, JoinTexts(views, scratch));
  }
  Words Answer() const {
    Texts texts;
    EXPECT_TRUE(TakeTexts(returned, &texts));
    return {texts.begin(), texts.end()};
  }
  bool present() const { return value_.has_value(); }
  size_t bytes() const { return value_ ? value_->size() : 0; }
  std::optional<std::string>& value() { return value_; }

  std::string returned;
  int64_t integer = 0;
  Status status;

 private:
  static const TypeFunction* Find(std::string_view name) {
    for (const auto functions :
         {HashFunctions(), SetFunctions(), ListFunctions(), SortedSetFunctions(),
          SortedSetJoinFunctions(), HyperLogLogFunctions()}) {
      const auto at = std::ranges::find(functions, name, &TypeFunction::name);
      if (at != functions.end()) return &*at;
    }
    return nullptr;
  }

  std::optional<std::string> value_;
  Scratch scratch_;
};

class Lots {
 public:
  explicit Lots(unsigned seed) : rng_(seed) {}
  uint64_t Below(uint64_t end) { return rng_() % end; }
  // One of a few words, now and then a long one.
  std::string Word() {
    const uint64_t lot = Below(24);
    return lot == 0 ? std::string() : lot == 1 ? std::string(200, 'x') : "w" + std::to_string(lot);
  }
  Words Some() {
    Words words;
    // Now and then so many that functions look them up in a table.
    for (uint64_t i = 1 + Below(Below(6) == 0 ? 30 : 3); i > 0; --i) words.push_back(Word());
    return words;
  }

 private:
  std::mt19937_64 rng_;
};

class Collections : public testing::Test {
 protected:
  static constexpr int kSteps = 500;
  const unsigned seed_ = std::random_device{}();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  Lots lots_{seed_};
  Key key_;
};

// Goal: a hash agrees with a map after any sequence of writes.
// Method: few fields, so that the hash is often empty; all fields are read after every step.
TEST_F(Collections, HashAgreesWithMap) {
  std::map<std::string, std::string> model;
  for (int step = 0; step < kSteps; ++step) {
    const Words fields = lots_.Some();
    switch (lots_.Below(3)) {
      case 0: {
        Words pairs;
        size_t before = model.size();
        for (const std::string& field : fields) {
          pairs.insert(pairs.end(), {field, lots_.Word()});
          model[field] = pairs.back();
        }
        key_.Say("hash-set", pairs);
        ASSERT_EQ(key_.integer, static_cast<int64_t>(model.size() - before));
        break;
      }
      case 1: {
        int64_t deleted = 0;
        for (const std::string& field : fields) deleted += static_cast<int64_t>(model.erase(field));
        key_.Say("hash-delete", fields);
        ASSERT_EQ(key_.integer, deleted);
        break;
      }
      default: {
        const bool is_new = model.emplace(fields[0], "new").second;
        key_.Say("hash-set-new", {fields[0], "new"});
        ASSERT_EQ(key_.integer, is_new ? 1 : 0);
      }
    }
    ASSERT_TRUE(key_.status.ok());
    ASSERT_EQ(key_.present(), !model.empty());
    key_.Say("hash-all", {});
    const Words all = key_.Answer();
    std::map<std::string, std::string> held;
    for (size_t i = 0; i < all.size(); i += 2) ASSERT_TRUE(held.emplace(all[i], all[i + 1]).second);
    ASSERT_EQ(held, model);
    const Words wanted = lots_.Some();
    key_.Say("hash-get", wanted);
    std::string_view rest = key_.returned;
    for (const std::string& field : wanted) {
      std::optional<std::string_view> value;
      ASSERT_TRUE(TakeMaybeText(rest, &value));
      const auto at = model.find(field);
      ASSERT_EQ(value.has_value(), at != model.end());
      if (value) {
        ASSERT_EQ(*value, at->second);
      }
    }
  }
}

// Goal: a set agrees with std::set, and the functions of two sets with its algorithms.
TEST_F(Collections, SetAgreesWithSet) {
  std::set<std::string> model;
  for (int step = 0; step < kSteps; ++step) {
    const Words members = lots_.Some();
    const size_t before = model.size();
    if (lots_.Below(2) == 0) {
      model.insert(members.begin(), members.end());
      key_.Say("set-add", members);
      ASSERT_EQ(key_.integer, static_cast<int64_t>(model.size() - before));
    } else {
      for (const std::string& member : members) model.erase(member);
      key_.Say("set-remove", members);
      ASSERT_EQ(key_.integer, static_cast<int64_t>(before - model.size()));
    }
    ASSERT_EQ(key_.present(), !model.empty());
    key_.Say("set-all", {});
    ASSERT_EQ(key_.Answer(), Words(model.begin(), model.end()));
    const Words some = lots_.Some();
    const std::set<std::string> other(some.begin(), some.end());
    const Words operand(other.begin(), other.end());
    Words expected;
    key_.Say("set-unite", operand);
    std::ranges::set_union(other, model, std::back_inserter(expected));
    ASSERT_EQ(key_.Answer(), expected);
    expected.clear();
    key_.Say("set-intersect", operand);
    std::ranges::set_intersection(other, model, std::back_inserter(expected));
    ASSERT_EQ(key_.Answer(), expected);
    expected.clear();
    key_.Say("set-subtract", operand);
    std::ranges::set_difference(other, model, std::back_inserter(expected));
    ASSERT_EQ(key_.Answer(), expected);
  }
}

// Goal: a list agrees with a deque, whichever end is touched.
TEST_F(Collections, ListAgreesWithDeque) {
  std::deque<std::string> model;
  for (int step = 0; step < kSteps; ++step) {
    const Words words = lots_.Some();
    const bool left = lots_.Below(2) == 0;
    const std::string side = left ? "left" : "right";
    switch (lots_.Below(4)) {
      case 0:
        for (const std::string& word : words) {
          model.insert(left ? model.begin() : model.end(), word);
        }
        key_.Say("list-push-" + side, words);
        ASSERT_EQ(key_.integer, static_cast<int64_t>(model.size()));
        break;
      case 1: {
        const size_t count = std::min<size_t>(lots_.Below(6), model.size());
        Words popped;
        for (size_t i = 0; i < count; ++i) {
          popped.push_back(left ? model.front() : model.back());
          left ? model.pop_front() : model.pop_back();
        }
        key_.Say("list-pop-" + side, {std::to_string(count)});
        ASSERT_EQ(key_.Answer(), popped);
        break;
      }
      case 2: {
        const auto first = static_cast<int64_t>(lots_.Below(8)) - 2;
        const auto last = static_cast<int64_t>(model.size()) - static_cast<int64_t>(lots_.Below(4));
        const auto size = static_cast<int64_t>(model.size());
        const int64_t from = first < 0 ? std::max<int64_t>(first + size, 0) : first;
        std::deque<std::string> kept;
        for (int64_t i = from; i <= std::min(last < 0 ? last + size : last, size - 1); ++i) {
          kept.push_back(model[static_cast<size_t>(i)]);
        }
        model = kept;
        key_.Say("list-trim", {std::to_string(first), std::to_string(last)});
        break;
      }
      default: {
        if (model.empty()) break;
        const auto at = lots_.Below(model.size());
        const bool from_end = lots_.Below(2) == 0;
        const int64_t index =
            static_cast<int64_t>(at) - (from_end ? static_cast<int64_t>(model.size()) : 0);
        model[at] = words[0];
        key_.Say("list-set", {std::to_string(index), words[0]});
        key_.Say("list-index", {std::to_string(index)});
        ASSERT_EQ(key_.Answer(), Words{words[0]});
      }
    }
    ASSERT_TRUE(key_.status.ok()) << key_.status.ToString();
    ASSERT_EQ(key_.present(), !model.empty());
    key_.Say("list-range", {"0", "-1"});
    ASSERT_EQ(key_.Answer(), Words(model.begin(), model.end()));
  }
}

// Goal: a sorted set agrees with a map of scores and its order.
TEST_F(Collections, SortedSetAgreesWithMap) {
  std::map<std::string, double> model;
  Scratch scratch;
  for (int step = 0; step < kSteps; ++step) {
    const Words members = lots_.Some();
    if (lots_.Below(3) > 0) {
      std::vector<Entry> entries;
      for (const std::string& member : members) {
        entries.push_back({static_cast<double>(lots_.Below(6)) - 2, member});
        model[member] = entries.back().score;
      }
      scratch.Clear();
      key_.Run("zset-add",
               scratch.Concat(std::string_view("\0", 1), WriteEntries(entries, scratch)));
    } else {
      for (const std::string& member : members) model.erase(member);
      key_.Say("zset-remove", members);
    }
    ASSERT_TRUE(key_.status.ok());
    ASSERT_EQ(key_.present(), !model.empty());
    using Scored = std::vector<std::pair<double, std::string>>;
    Scored sorted;
    for (const auto& [member, score] : model) sorted.emplace_back(score, member);
    std::ranges::sort(sorted);
    const bool reverse = lots_.Below(2) == 0;
    if (reverse) std::ranges::reverse(sorted);
    const auto returned = [&] {
      Scored held;
      std::string_view rest = key_.returned;
      Entry entry;
      while (TakeEntry(rest, &entry)) held.emplace_back(entry.score, entry.member);
      return held;
    };
    scratch.Clear();
    key_.Run("zset-range", WriteRangeRequest({.reverse = reverse}, "0", "-1", scratch));
    ASSERT_EQ(returned(), sorted);
    if (lots_.Below(4) == 0) {
      const size_t count = std::min(lots_.Below(4), sorted.size());
      key_.Say(reverse ? "zset-pop-highest" : "zset-pop-lowest", {std::to_string(count)});
      const auto behind = sorted.begin() + static_cast<ptrdiff_t>(count);
      ASSERT_EQ(returned(), Scored(sorted.begin(), behind));
      ASSERT_EQ(key_.integer, static_cast<int64_t>(count));
      for (size_t i = 0; i < count; ++i) model.erase(sorted[i].second);
      sorted.erase(sorted.begin(), behind);
      ASSERT_EQ(key_.present(), !model.empty());
    }
    if (sorted.empty()) continue;
    const size_t at = lots_.Below(sorted.size());
    key_.Say(reverse ? "zset-rank-from-end" : "zset-rank", {sorted[at].second});
    ASSERT_EQ(key_.integer, static_cast<int64_t>(at));
  }
}

// Goal: a draw of `count` members has that many, distinct ones if it is positive, all as often.
TEST_F(Collections, Draws) {
  constexpr size_t kMembers = 5;
  constexpr int kRounds = 5000;
  std::vector<int> times(kMembers);
  for (int round = 0; round < kRounds; ++round) {
    const auto drawn = *DrawIndexes(kMembers, {.seed = lots_.Below(UINT64_MAX), .count = 2});
    ASSERT_EQ(drawn.size(), 2u);
    ASSERT_LT(drawn[0], drawn[1]);
    for (const size_t i : drawn) ++times[i];
  }
  for (const int count : times) EXPECT_NEAR(count, 2 * kRounds / 5, kRounds / 10);
  EXPECT_EQ(DrawIndexes(kMembers, {.seed = 1, .count = 9})->size(), kMembers);
  EXPECT_EQ(DrawIndexes(kMembers, {.seed = 1, .count = -9})->size(), 9u);
  EXPECT_FALSE(DrawIndexes(kMembers, {.seed = 1, .count = -kDrawsMax - 1}).has_value());
}

// Goal: what a seed draws stays: a log repeats an SPOP by its seed.
TEST_F(Collections, SeedsDrawWhatTheyDrew) {
  const auto first = [](uint64_t seed) {
    return DrawIndexes(300, {.seed = seed, .count = 1})->front();
  };
  EXPECT_EQ(first(1), 293u);
  EXPECT_EQ(first(2), 178u);
  EXPECT_EQ(first(3), 279u);
}

// Goal: a collection that would be larger than one value may be is refused, and stays.
TEST_F(Collections, TooLarge) {
  const std::string half(kOneValueBytesMax / 2, 'x');
  key_.Say("hash-set", {"a", half});
  ASSERT_TRUE(key_.status.ok());
  key_.Say("hash-set", {"b", half});
  EXPECT_EQ(key_.status.code(), Code::kTooLarge);
  EXPECT_EQ(key_.status.detail(), kOneValueBytesMax);
  key_.Say("hash-length", {});
  EXPECT_EQ(key_.integer, 1);
}

// Goal: the bytes that collections are promised to take (the headers).
TEST_F(Collections, Bytes) {
  key_.Say("hash-set", {"12345678", "12345678"});
  EXPECT_EQ(key_.bytes(), 1u + 18);
  Key list;
  list.Say("list-push-right", {"12345678"});
  EXPECT_EQ(list.bytes(), 1u + 10);
}

// Goal: stored bytes and operands that are wrong are told, whatever they are.
// Method: sound collections with one byte changed or cut off, and operands likewise.
TEST_F(Collections, WrongBytes) {
  const std::vector<std::pair<std::string, Words>> makers = {
      {"hash-set", {"a", "1", "b", "2"}},
      {"set-add", {"a", "b", "c"}},
      {"list-push-left", {"a", std::string(300, 'b'), "c"}},
  };
  const std::map<std::string, std::string> readers = {
      {"hash-set", "hash-all"}, {"set-add", "set-all"}, {"list-push-left", "list-length"}};
  for (const auto& [maker, words] : makers) {
    Key sound;
    sound.Say(maker, words);
    const std::string value = *sound.value();
    for (size_t at = 0; at < value.size(); ++at) {
      for (const int change : {-1, 1, 7, 128}) {
        Key broken;
        broken.value() = value;
        (*broken.value())[at] = static_cast<char>(value[at] + change);
        broken.Say(maker, words);  // must only not crash
        broken.value() = value.substr(0, at);
        broken.Say(maker, words);
      }
    }
    Key empty;
    empty.value() = "";
    empty.Say(readers.at(maker), {});
    EXPECT_EQ(empty.status.code(), Code::kCorrupt);
    sound.Run(maker, "\x7f");
    EXPECT_EQ(sound.status.code(), Code::kInvalidArgument);
  }
}

// Goal: scores as Redis reads and writes them.
TEST(Scores, AsRedis) {
  EXPECT_EQ(ScoreText(3.0), "3");
  // Whole numbers are written as "%.17g" writes them, on both sides of the limit of the short way.
  for (double score = 1; score < 1e18; score = score * 3 + 1) {
    for (const double near : {score, -score, score + 0.5, 1e15 - 1, 1e15, -1e15, 0.0, -0.0}) {
      char text[40];
      std::snprintf(text, sizeof text, "%.17g", near);
      EXPECT_EQ(ScoreText(near), text);
    }
  }
  EXPECT_EQ(ScoreText(0.1), "0.10000000000000001");
  EXPECT_EQ(ScoreText(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_TRUE(ParseScoreBound("(1.5")->is_open);
  EXPECT_FALSE(ParseScoreBound("((1").has_value());
}

}  // namespace
}  // namespace skep::types
