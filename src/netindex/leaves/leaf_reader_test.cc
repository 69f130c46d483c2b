// Tests reads of leaves over shared memory, in one process: what they cost, what they answer, and
// what they leave to the server. leaf_reader_sim_test.cc has the reads that writes interrupt.
#include "netindex/leaves/leaf_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/temporary_directory_test.h"
#include "netindex/leaves/shared_tree_test.h"
#include "rma/mem_fabric.h"

namespace skep::leaves {
namespace {

std::string KeyOf(uint64_t number) { return fmt::format("key{:06}", number); }
std::string ValueOf(uint64_t number) { return fmt::format("value{:08}", number); }

class LeafReaderTest : public testing::Test {
 protected:
  void Share(const BtreeOptions& options = kSharedNodes) {
    tree_ = std::make_unique<SharedTree>(options);
    const Address address = "unix:" + directory_.path() + "/leaves";
    target_ = std::move(*fabric_.Open(tree_->Exposed(address)));
    endpoint_ = std::move(*fabric_.Open({}));
    const rma::PeerId peer = *endpoint_->Connect(address, 10'000);
    bool has_joined = false;
    while (!has_joined) {
      target_->Poll(0);
      for (const rma::Event& event : endpoint_->Poll(0)) {
        has_joined |= event.kind == rma::Event::Kind::kJoined;
      }
    }
    reader_ = std::make_unique<LeafReader>(*endpoint_, peer, 10'000);
    ASSERT_TRUE(reader_->Open());
  }
  void Fill(uint64_t keys) {
    for (uint64_t i = 0; i < keys; ++i) tree_->Put(KeyOf(i), ValueOf(i));
  }
  // Leaves of one form, without logs, of every second number.
  void Load(uint64_t keys) {
    std::vector<std::string> names;
    for (uint64_t i = 0; i < keys; ++i) names.push_back(KeyOf(2 * i));
    LoadKeys(names);
  }
  // The same of these keys, which rise; each has the value of its number in Load.
  void LoadKeys(const std::vector<std::string>& keys) {
    auto load = tree_->engine().OpenBulkLoad();
    auto part = load->Open({}, std::nullopt);
    for (uint64_t i = 0; i < keys.size(); ++i) {
      ASSERT_TRUE(part->Add(keys[i], ValueOf(2 * i), 0, kPlainType).ok());
    }
    ASSERT_TRUE(part->Finish().ok());
    part.reset();
    ASSERT_TRUE(load->Finish().ok());
  }
  LeafQuestion Read(LeafQuestion question) {
    EXPECT_TRUE(reader_->Read({&question, 1}));
    return question;
  }
  LeafQuestion Get(std::string_view key) { return Read(tree_->Get(key)); }
  // What one more Read costs.
  LeafReaderStatistics CostOf(const LeafQuestion& question) {
    const LeafReaderStatistics before = reader_->statistics();
    Read(question);
    const LeafReaderStatistics after = reader_->statistics();
    return {.answered = after.answered - before.answered,
            .tries = after.tries - before.tries,
            .posts = after.posts - before.posts,
            .reads = after.reads - before.reads,
            .bytes = after.bytes - before.bytes};
  }

  TemporaryDirectory directory_;
  rma::MemFabric fabric_;
  std::unique_ptr<SharedTree> tree_;
  std::unique_ptr<rma::Endpoint> target_;
  std::unique_ptr<rma::Endpoint> endpoint_;
  std::unique_ptr<LeafReader> reader_;
};

// Goal: every key is read, present or absent, from the sorted items, the log, and between fences,
// and few questions are left to the server.
TEST_F(LeafReaderTest, FindsEveryKey) {
  Share();
  Fill(3000);
  for (uint64_t i = 0; i < 3000; i += 5) tree_->Delete(KeyOf(i));
  for (uint64_t i = 0; i < 3000; ++i) {
    const LeafQuestion found = Get(KeyOf(i));
    ASSERT_EQ(found.finding, i % 5 == 0 ? Finding::kAbsent : Finding::kValue) << i;
    if (i % 5 != 0) {
      ASSERT_EQ(found.value, ValueOf(i));
    }
    const LeafQuestion absent = Get(KeyOf(i) + "x");
    ASSERT_EQ(absent.finding, Finding::kAbsent);
  }
  EXPECT_EQ(reader_->statistics().asked, 0u);
}

// Goal: the costs that leaf_reader.h tells: a leaf that is known takes three round trips, one that
// is met for the first time five; and just the bytes that are needed.
TEST_F(LeafReaderTest, TakesThreeRoundTrips) {
  Share();
  Load(1000);
  const std::string key = KeyOf(500);
  const LeafQuestion question = tree_->Get(key);
  EXPECT_EQ(CostOf(question).posts, 6u);  // the board, and the place
  const LeafReaderStatistics cost = CostOf(question);
  EXPECT_EQ(cost.answered, 1u);
  EXPECT_EQ(cost.tries, 1u);
  EXPECT_EQ(cost.posts, 3u);
  // The head; the item; version, row, board.
  EXPECT_EQ(cost.reads, 5u);
  const uint32_t item_bytes = 9 + 13;
  EXPECT_GE(cost.bytes, HeadPiece(1).bytes() + item_bytes + 8 + 8 + 32);
  EXPECT_LE(cost.bytes, HeadPiece(128).bytes() + item_bytes + 14 + 8 + 8 + 32);
  // Absent, and no item has its head: the fences, in as many round trips.
  const std::string absent = "key00050:";
  EXPECT_EQ(CostOf(tree_->Get(absent)).posts, 3u);
}

// Goal: a key whose head many other keys have needs no whole leaf.
// Method: leaves of the default size, with groups of keys that differ in their last byte. What
// tells the groups apart takes all bits of a head.
TEST_F(LeafReaderTest, ReadsKeysWithEqualHeadsTogether) {
  Share({.shared = true});
  std::mt19937_64 rng(1);
  std::vector<std::string> keys;
  for (int group = 0; group < 300; ++group) {
    const uint64_t number = rng();
    for (char member = 'a'; member < 'a' + 12; ++member) {
      keys.push_back(fmt::format("{:016x}{}", number, member));
    }
  }
  std::ranges::sort(keys);
  LoadKeys(keys);
  for (size_t i = 0; i < keys.size(); i += 37) {
    const LeafQuestion question = tree_->Get(keys[i]);
    Read(question);
    const LeafReaderStatistics cost = CostOf(question);
    ASSERT_EQ(cost.answered, 1u);
    ASSERT_EQ(cost.posts, 3u);
    ASSERT_LT(cost.bytes, 4096u);
  }
}

// Goal: keys that are found by chosen bits are read, from the sorted items and the log, in small
// leaves and large ones; and what is not there, truncations and continuations of these keys, is not
// found.
// Method: fields of users, of which every second one is loaded, and some others are written.
TEST_F(LeafReaderTest, FindsFieldsOfUsers) {
  for (const BtreeOptions& options : {kSharedNodes, BtreeOptions{.shared = true}}) {
    reader_.reset();
    endpoint_.reset();
    target_.reset();
    Share(options);
    constexpr uint64_t kKeys = 2000;
    std::vector<std::string> loaded;
    std::map<std::string, std::string> model;
    for (uint64_t n = 0; n < kKeys; n += 2) {
      model[FieldOfUser(n)] = ValueOf(2 * loaded.size());
      loaded.push_back(FieldOfUser(n));
    }
    LoadKeys(loaded);
    for (uint64_t n = 1; n < kKeys; n += 34) {
      tree_->Put(FieldOfUser(n), ValueOf(n));
      model[FieldOfUser(n)] = ValueOf(n);
    }
    for (uint64_t n = 0; n < kKeys; n += 50) {
      tree_->Delete(FieldOfUser(n));
      model.erase(FieldOfUser(n));
    }
    for (uint64_t n = 0; n < kKeys; ++n) {
      const std::string key = FieldOfUser(n);
      for (const std::string& asked :
           {key, key.substr(0, key.size() - 1), key.substr(0, key.size() - 5),
            key.substr(0, key.size() - 6), key.substr(0, 9), key + "s"}) {
        const LeafQuestion found = Get(asked);
        const auto expected = model.find(asked);
        ASSERT_EQ(found.finding, expected != model.end() ? Finding::kValue : Finding::kAbsent)
            << asked;
        if (expected != model.end()) {
          ASSERT_EQ(found.value, expected->second);
        }
      }
    }
    EXPECT_EQ(reader_->statistics().asked, 0u);
  }
}

// Goal: many questions take as many round trips as one does.
TEST_F(LeafReaderTest, ReadsLeavesSideBySide) {
  Share();
  Load(2000);
  std::vector<std::string> keys;
  std::vector<LeafQuestion> questions;
  for (uint64_t i = 0; i < LeafReader::kSideBySide; ++i) keys.push_back(KeyOf(i * 26));
  for (const std::string& key : keys) questions.push_back(tree_->Get(key));
  ASSERT_TRUE(reader_->Read(questions));
  const uint64_t before = reader_->statistics().posts;
  ASSERT_TRUE(reader_->Read(questions));
  EXPECT_EQ(reader_->statistics().posts, before + 3);
  for (size_t i = 0; i < questions.size(); ++i) EXPECT_EQ(questions[i].value, ValueOf(i * 26));
}

// Goal: what is not simple is left to the server, and never answered wrongly.
TEST_F(LeafReaderTest, LeavesTheRestToTheServer) {
  Share();
  const std::string large(5000, 'v');
  const std::string long_key(1000, 'k');
  Batch batch;
  batch.Put("large", large);
  batch.Put(long_key, "v");
  batch.Add({.op = Op::kPut, .key = "mortal", .value = "v", .deadline_ms = 1000});
  batch.Put("plain", "v");
  tree_->Execute(batch);
  EXPECT_EQ(Get("large").finding, Finding::kAsk);
  EXPECT_EQ(Get(long_key).finding, Finding::kAsk);
  EXPECT_EQ(Get("mortal").finding, Finding::kAsk);
  EXPECT_EQ(Get("plain").value, "v");
  EXPECT_EQ(Get("none").finding, Finding::kAbsent);
}

// Goal: no link makes an answer wrong: of another leaf, of an inner node, of another generation, of
// no node at all.
TEST_F(LeafReaderTest, OfAnyLinkIsNeverWrong) {
  Share();
  Fill(3000);
  std::mt19937_64 rng(1);
  uint64_t answered = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t number = rng() % 3000;
    const uint64_t bits = rng() % 8 == 0 ? rng() : (1 + rng() % 2) << 48 | rng() % 200;
    const std::string key = KeyOf(number);
    const LeafQuestion read = Read({.key = key, .link = bits});
    if (read.finding == Finding::kAsk) continue;
    ++answered;
    ASSERT_EQ(read.finding, Finding::kValue);
    ASSERT_EQ(read.value, ValueOf(number));
  }
  EXPECT_GT(answered, 10u);
}

// Goal: the gate travels with the data: an item is not told before it is released, and with
// appendfsync always not before it is synced.
TEST_F(LeafReaderTest, WaitsForTheGate) {
  Share();
  tree_->Put("a", "1");
  EXPECT_EQ(Get("a").finding, Finding::kValue);
  const Version version = Get("a").version;
  EXPECT_GT(version, 0u);
  tree_->board().syncs = 1;
  EXPECT_EQ(Get("a").finding, Finding::kAsk);
  tree_->board().synced = version - 1;
  EXPECT_EQ(Get("a").finding, Finding::kAsk);
  tree_->board().synced = version;
  EXPECT_EQ(Get("a").finding, Finding::kValue);
  tree_->board().syncs = 0;
  tree_->board().released = version - 1;
  EXPECT_EQ(Get("a").finding, Finding::kAsk);
  EXPECT_EQ(reader_->statistics().unreleased, 3u);
}

// Goal: keys of a range that was deleted are not told from nodes that are out of the tree without a
// mark.
// Method: the subtrees are marked by Maintain, which does not run before the reads.
TEST_F(LeafReaderTest, SeesThatARangeIsDetached) {
  Share();
  Fill(3000);
  const std::string key = KeyOf(1500);
  const LeafQuestion question = tree_->Get(key);
  ASSERT_EQ(Read(question).finding, Finding::kValue);
  tree_->DeleteRange(Range::From(KeyOf(100)));
  const LeafQuestion after = Read(question);
  EXPECT_NE(after.finding, Finding::kValue);
  tree_->Settle();
  EXPECT_EQ(static_cast<uint32_t>(tree_->board().detached), 0u);
  EXPECT_EQ(Get(KeyOf(1500)).finding, Finding::kAbsent);
  EXPECT_EQ(Get(KeyOf(50)).value, ValueOf(50));
}

// Goal: scans within one leaf are answered as a scan of the tree is, others are left to it.
TEST_F(LeafReaderTest, ScansWithinALeaf) {
  Share();
  Fill(500);
  for (uint64_t i = 0; i < 500; i += 3) tree_->Delete(KeyOf(i));
  uint64_t answered = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const std::string lo = KeyOf(i);
    const std::string hi = KeyOf(i + 1 + i % 7);
    const std::string_view hi_view = hi;
    LeafQuestion question = tree_->Get(lo);
    question.is_scan = true;
    question.items_max = static_cast<uint32_t>(1 + i % 4);
    if (i % 2 == 0) question.hi = &hi_view;
    question = Read(question);
    if (question.finding != Finding::kItems) continue;
    ++answered;
    Batch batch;
    batch.Scan(i % 2 == 0 ? Range::Between(lo, hi) : Range::From(lo),
               {.limit = static_cast<uint32_t>(1 + i % 4)});
    tree_->Execute(batch);
    ASSERT_EQ(question.items.size(), batch.outcome(0).item_count);
    size_t at = 0;
    for (const Item& item : batch.items(0)) {
      ASSERT_EQ(question.items[at].key, item.key);
      ASSERT_EQ(question.items[at++].value, item.value);
    }
    ASSERT_EQ(question.bound.data() != nullptr, batch.outcome(0).more);
    if (question.bound.data() != nullptr && !question.items.empty()) {
      ASSERT_GT(question.bound, question.items.back().key);
    }
  }
  EXPECT_GT(answered, 300u);
}

// Goal: peers cannot write what a server shares.
TEST_F(LeafReaderTest, CannotWrite) {
  Share();
  uint64_t word = 1;
  const rma::Operation write{.kind = rma::Operation::Kind::kWrite,
                             .region = kFirstArenaRegion,
                             .bytes = 8,
                             .local = &word};
  endpoint_->Post(1, 7, {&write, 1});
  for (const rma::Event& event : endpoint_->Poll(0)) EXPECT_FALSE(event.status.ok());
}

}  // namespace
}  // namespace skep::leaves
