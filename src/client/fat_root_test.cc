// Tests the pages of a fat root, without a server.
#include "client/fat_root.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "wire/packed_top.h"

namespace skep::client {
namespace {

// A server's leaves: the lower fence of each, and its link.
class Leaves {
 public:
  explicit Leaves(uint32_t page_links) : page_links_(page_links) { leaves_[""] = ++last_; }

  // Splits a leaf at the key: both halves get new links.
  void Split(const std::string& key) {
    if (key.empty() || leaves_.contains(key)) return;
    std::prev(leaves_.upper_bound(key))->second = ++last_;
    leaves_[key] = ++last_;
  }
  // Joins the key's leaf with the one before.
  void Join(const std::string& key) {
    const auto at = std::prev(leaves_.upper_bound(key));
    if (at == leaves_.begin()) return;
    std::prev(at)->second = ++last_;
    leaves_.erase(at);
  }
  uint64_t LinkOf(const std::string& key) const {
    return std::prev(leaves_.upper_bound(key))->second;
  }
  std::string Answer(std::string_view question) const {
    packed::TopQuestion asked;
    EXPECT_TRUE(packed::ReadTopQuestion(question, &asked));
    LeafLinks page;
    auto at = std::prev(leaves_.upper_bound(std::string(asked.from)));
    for (; at != leaves_.end() && page.links.size() < page_links_; ++at) {
      page.links.push_back({.lower = at->first, .hint = {at->second}});
    }
    if (at != leaves_.end()) page.next = at->first;
    std::string payload;
    packed::AppendTop(payload, page);
    return payload;
  }
  size_t size() const { return leaves_.size(); }

 private:
  const uint32_t page_links_;
  std::map<std::string, uint64_t> leaves_;
  uint64_t last_ = 0;
};

// Asks until nothing is left to be asked. Returns how many pages came.
uint64_t Refresh(FatRoot& root, const Leaves& leaves) {
  uint64_t pages = 0;
  while (const auto question = root.Question()) {
    EXPECT_FALSE(root.Question()) << "one question is open at a time";
    root.TakeAnswer(leaves.Answer(*question));
    ++pages;
  }
  return pages;
}

std::vector<Hint> HintsOf(FatRoot& root, const std::vector<std::string>& keys) {
  Batch batch;
  for (const std::string& key : keys) batch.Get(key);
  std::vector<Hint> hints;
  root.FillIn(batch, &hints);
  return hints;
}

// Tells the root what a server would say of its hints. Returns how many were stale.
uint64_t Note(FatRoot& root, const Leaves& leaves, const std::vector<std::string>& keys) {
  const std::vector<Hint> hints = HintsOf(root, keys);
  uint64_t stale = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!FatRoot::IsStale(hints[i], {leaves.LinkOf(keys[i])})) continue;
    root.NoteStale(keys[i]);
    ++stale;
  }
  return stale;
}

std::string KeyOf(uint64_t number) { return "user:" + std::to_string(1'000'000 + number); }

// Goal: a fat root that has all pages knows the leaf of each key, also of keys that are fences,
// that are below or above all keys with the common beginning, and of the empty key.
TEST(FatRoot, KnowsTheLeafOfEachKey) {
  Leaves leaves(16);
  for (uint32_t i = 1; i < 500; ++i) leaves.Split(KeyOf(i * 10));
  FatRoot root;
  EXPECT_EQ(HintsOf(root, {KeyOf(0)})[0].bits, 0u) << "nothing is known yet";
  EXPECT_EQ(Refresh(root, leaves), (leaves.size() + 15) / 16);
  for (uint32_t i = 0; i < 5200; ++i) {
    ASSERT_EQ(HintsOf(root, {KeyOf(i)})[0].bits, leaves.LinkOf(KeyOf(i))) << i;
  }
  for (const std::string key : {"", "a", "user:", "user:1000", "user:9", "v", "\xff"}) {
    EXPECT_EQ(HintsOf(root, {std::string(key)})[0].bits, leaves.LinkOf(key)) << key;
  }
  EXPECT_EQ(root.Statistics().links, leaves.size());
}

// Goal: only requests that begin at the leaf of their key get a hint, and a request's own is kept.
TEST(FatRoot, HintsOnlyWhatBeginsAtALeaf) {
  Leaves leaves(16);
  FatRoot root;
  Refresh(root, leaves);
  Batch batch;
  batch.Get("k");
  batch.Put("k", "v");
  batch.Scan(Range::All());
  batch.Count(Range::All());
  batch.Add({.op = Op::kGet, .key = "k", .other = {}, .hint = {77}});
  batch.Scan(Range::All(), {.reverse = true});
  batch.Sample(1);
  batch.DeleteRange(Range::All());
  batch.DeleteAll();
  std::vector<Hint> hints;
  root.FillIn(batch, &hints);
  const uint64_t link = leaves.LinkOf("k");
  const uint64_t expected[] = {link, link, link, link, 77, 0, 0, 0, 0};
  ASSERT_EQ(hints.size(), std::size(expected));
  for (size_t i = 0; i < hints.size(); ++i) EXPECT_EQ(hints[i].bits, expected[i]) << i;
}

// Goal: pages are asked for again once kStaleMax of their hints were stale, not before; then all
// hints are right again. Pages without stale hints are not asked for.
TEST(FatRoot, AsksAgainForPagesWithStaleHints) {
  Leaves leaves(16);
  for (uint32_t i = 1; i < 64; ++i) leaves.Split(KeyOf(i * 10));
  FatRoot root;
  Refresh(root, leaves);
  leaves.Split(KeyOf(15));
  const std::vector<std::string> once = {KeyOf(15)};
  for (uint32_t i = 1; i < FatRoot::kStaleMax; ++i) {
    ASSERT_EQ(Note(root, leaves, once), 1u);
    ASSERT_FALSE(root.Question()) << i;
  }
  ASSERT_EQ(Note(root, leaves, once), 1u);
  // The page has one leaf more than fits, so a gap is left, which is asked for, too. What lies
  // behind it is known.
  EXPECT_EQ(Refresh(root, leaves), 2u);
  EXPECT_EQ(Note(root, leaves, once), 0u);
  EXPECT_EQ(root.Statistics().stale, FatRoot::kStaleMax);
  EXPECT_EQ(root.Statistics().links, leaves.size());
}

// Goal: keys that 8 bytes do not tell apart cost stale hints, and ever fewer questions.
TEST(FatRoot, AsksEverMoreSeldomForPagesThatDoNotChange) {
  Leaves leaves(16);
  const std::string same(20, 'x');
  leaves.Split("a");
  for (const char last : {'b', 'd', 'f'}) leaves.Split("a" + same + last);
  leaves.Split("b");
  FatRoot root;
  Refresh(root, leaves);
  const std::vector<std::string> tied = {"a" + same + "c"};
  ASSERT_EQ(Note(root, leaves, tied), 1u);
  uint64_t pages = 0;
  constexpr uint32_t kRequests = FatRoot::kStaleMax * 63;  // 1 + 2 + 4 + 8 + 16 + 32
  for (uint32_t i = 1; i < kRequests; ++i) {
    ASSERT_EQ(Note(root, leaves, tied), 1u);
    pages += Refresh(root, leaves);
  }
  EXPECT_EQ(pages, 6u);
}

// Goal: whatever splits and joins, a fat root that is asked for anew becomes right, and covers the
// whole key space at any time.
// Method: random changes, and random keys whose stale hints are noted, with several pages.
TEST(FatRoot, FollowsSplitsAndJoins) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 rng(seed);
  Leaves leaves(8);
  FatRoot root;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 10; ++i) {
      const std::string key = KeyOf(rng() % 2000);
      rng() % 5 < 3 ? leaves.Split(key) : leaves.Join(key);
    }
    std::vector<std::string> keys;
    for (int i = 0; i < 500; ++i) keys.push_back(KeyOf(rng() % 2000));
    uint64_t stale = 0;
    // Each page that is wrong is noticed after kStaleMax of its requests.
    for (int i = 0; i < 1000; ++i) {
      stale = Note(root, leaves, keys);
      Refresh(root, leaves);
      if (i > 0 && stale == 0) break;
    }
    ASSERT_EQ(stale, 0u) << round;
    for (const Hint hint : HintsOf(root, keys)) ASSERT_NE(hint.bits, 0u) << "there is a gap";
  }
}

// Goal: a server that has no such links, or sends nonsense, is not asked again; one that did not
// answer is.
TEST(FatRoot, GivesUpWhereThereIsNothingToLearn) {
  Leaves leaves(8);
  FatRoot silent;
  ASSERT_TRUE(silent.Question());
  silent.TakeNone(false);
  EXPECT_EQ(Refresh(silent, leaves), 1u);
  FatRoot refused;
  ASSERT_TRUE(refused.Question());
  refused.TakeNone(true);
  EXPECT_FALSE(refused.Question());
  for (const std::string_view nonsense :
       {std::string_view(), std::string_view("\x01"), std::string_view("\0", 1)}) {
    FatRoot root;
    ASSERT_TRUE(root.Question());
    root.TakeAnswer(nonsense);
    EXPECT_FALSE(root.Question());
    EXPECT_EQ(HintsOf(root, {std::string("k")})[0].bits, 0u);
  }
}

// Goal: a fat root of many leaves takes about 16 bytes for each.
TEST(FatRoot, TakesSixteenBytesALeaf) {
  Leaves leaves(packed::kTopLinksMax);
  for (uint32_t i = 1; i < 20'000; ++i) leaves.Split(KeyOf(i));
  FatRoot root;
  Refresh(root, leaves);
  const FatRootStatistics statistics = root.Statistics();
  EXPECT_EQ(statistics.links, leaves.size());
  EXPECT_GE(statistics.bytes, 16 * statistics.links - 8 * statistics.pages);
  EXPECT_LE(statistics.bytes, 17 * statistics.links);
}

}  // namespace
}  // namespace skep::client
