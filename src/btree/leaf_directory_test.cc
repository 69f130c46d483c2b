#include "btree/leaf_directory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"

namespace skep::btree {
namespace {

std::string Bytes(uint64_t word) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(word >> (56 - 8 * i));
  return bytes;
}

// Fences that rise, the first one empty, and the directory of their leaves: leaf i has link i + 1.
class Fences {
 public:
  Fences(std::string prefix, std::vector<std::string> rests) : prefix_(std::move(prefix)) {
    std::ranges::sort(rests);
    rests.erase(std::unique(rests.begin(), rests.end()), rests.end());
    fences_.emplace_back();
    for (const std::string& rest : rests) {
      if (!prefix_.empty() || !rest.empty()) fences_.push_back(prefix_ + rest);
    }
    directory_ = LeafDirectory::Make(fences_.size(), FenceWords(prefix_));
    for (size_t i = 0; i < fences_.size(); ++i) {
      EXPECT_TRUE(directory_->Add(fences_[i], Link{i + 1}));
    }
    EXPECT_FALSE(directory_->Add(prefix_ + std::string(20, '\xff'), Link{1})) << "it is full";
    directory_->Finish();
    EXPECT_EQ(directory_->leaves(), fences_.size());
  }

  const LeafDirectory& directory() const { return *directory_; }
  const std::vector<std::string>& all() const { return fences_; }
  uint64_t LeafOf(const std::string& key) const {
    return static_cast<uint64_t>(std::ranges::upper_bound(fences_, key) - fences_.begin());
  }
  // Whether 8 bytes behind the prefix do not tell the key from some fence.
  bool IsLikeOne(const std::string& key) const {
    const auto word = [&](const std::string& bytes) {
      std::string rest = bytes.substr(std::min(bytes.size(), prefix_.size()), 8);
      rest.resize(8);
      return rest;
    };
    if (!key.starts_with(prefix_)) return true;  // before or behind the words of all
    const auto is_like = [&](const std::string& fence) { return word(fence) == word(key); };
    const auto near = fences_.begin() + static_cast<ptrdiff_t>(LeafOf(key));
    return word(key) == std::string(8, '\0') || word(key) == std::string(8, '\xff') ||
           is_like(*(near - 1)) || (near != fences_.end() && is_like(*near));
  }
  void Expect(const std::string& key) const {
    const Link found = directory_->Find(key).link;
    if (!found) {
      ASSERT_TRUE(IsLikeOne(key)) << testing::PrintToString(key);
    } else {
      ASSERT_EQ(found.bits, LeafOf(key)) << testing::PrintToString(key);
    }
  }

 private:
  std::string prefix_;
  std::vector<std::string> fences_;
  std::unique_ptr<LeafDirectory> directory_;
};

// Goal: a key has the link of its leaf, or none if its word is like a fence's.
// Method: directories around the sizes at which a level more is needed, of fences of all byte
// values and lengths, and of words at which signed and unsigned order differ; their fences, the
// keys beside those, and random keys, with the prefix and without it.
TEST(LeafDirectory, HasTheLinkOfTheLeafOfEachKey) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  constexpr uint64_t kEdges[] = {
      0, 1, uint64_t{1} << 63, (uint64_t{1} << 63) - 1, UINT64_MAX, UINT64_MAX - 1};
  const auto rest = [&] {
    if (random.Chance(1, 8)) return Bytes(kEdges[random.Below(std::size(kEdges))]);
    std::string bytes(random.Below(12), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Next());
    return bytes;
  };
  for (const std::string prefix : {"", "\xff", "user:"}) {
    for (const size_t count : {1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 4095u, 4097u}) {
      SCOPED_TRACE(testing::Message() << prefix << " " << count);
      std::vector<std::string> rests;
      for (size_t i = 0; i < count; ++i) rests.push_back(rest());
      const Fences fences(prefix, std::move(rests));
      for (const std::string& fence : fences.all()) {
        ASSERT_NO_FATAL_FAILURE(fences.Expect(fence));
        ASSERT_NO_FATAL_FAILURE(fences.Expect(fence + '\0'));
        ASSERT_NO_FATAL_FAILURE(fences.Expect(fence + "\xff"));
        if (!fence.empty()) {
          ASSERT_NO_FATAL_FAILURE(fences.Expect(fence.substr(0, fence.size() - 1)));
        }
      }
      for (int i = 0; i < 1000; ++i) {
        ASSERT_NO_FATAL_FAILURE(fences.Expect(prefix + rest()));
        ASSERT_NO_FATAL_FAILURE(fences.Expect(rest()));
      }
    }
  }
}

// Goal: nearly all keys have a link where the words tell the fences apart.
TEST(LeafDirectory, LeadsNearlyAllKeys) {
  SeededRandom random(1);
  std::vector<std::string> rests;
  for (int i = 0; i < 70'000; ++i) rests.push_back(Bytes(random.Next()));
  const Fences fences("id:", std::move(rests));
  EXPECT_EQ(fences.directory().alike(), 0u);
  for (int i = 0; i < 10'000; ++i) {
    const std::string key = "id:" + Bytes(random.Next());
    ASSERT_EQ(fences.directory().Find(key).link.bits, fences.LeafOf(key));
  }
}

// Goal: fences that differ only behind the word are counted, and their keys have no link.
TEST(LeafDirectory, CountsFencesThatAreAlike) {
  std::vector<std::string> rests;
  for (int i = 0; i < 100; ++i) rests.push_back("samebytes" + std::to_string(100 + i));
  rests.emplace_back("t");
  const Fences fences("", std::move(rests));
  EXPECT_EQ(fences.directory().alike(), 99u);
  EXPECT_FALSE(fences.directory().Find("samebytes150").link);
  EXPECT_EQ(fences.directory().Find("samebytf").link.bits, fences.LeafOf("samebytf"));
  EXPECT_EQ(fences.directory().Find("a").link.bits, 1u);
}

// Goal: a reader learns how far its key is on the way to the next leaf, and the shape that an
// earlier one has kept, if that is not as good as the same; the link stays what it is.
TEST(LeafDirectory, TellsWhereInTheLeafAKeyLies) {
  std::vector<std::string> rests;
  for (uint64_t i = 1; i < 600; ++i) rests.push_back(Bytes(i << 32));
  const Fences fences("", std::move(rests));
  for (uint64_t leaf = 0; leaf < 599; ++leaf) {
    for (const uint32_t share : {1u, 2u, 1000u, 32'768u, 65'534u, 65'535u}) {
      const auto guess = fences.directory().Find(Bytes((leaf << 32) + (uint64_t{share} << 16)));
      ASSERT_EQ(guess.link.bits, leaf + 1);
      ASSERT_NEAR(guess.share, share, 2) << leaf;
      ASSERT_LT(guess.share, 1u << LeafShape::kShareBits);
    }
  }
  EXPECT_EQ(fences.directory().Find(Bytes(UINT64_MAX - 1)).share, 65'535u);
  const std::string key = Bytes((uint64_t{300} << 32) + 1);
  EXPECT_FALSE(fences.directory().Find(key).shape);
  const auto keep = [&](uint32_t items, uint32_t item_bytes) {
    fences.directory().Find(key).Keep(LeafShape::Of(items, item_bytes));
    EXPECT_EQ(fences.directory().Find(key).link.bits, 301u);
    return fences.directory().Find(key).shape;
  };
  EXPECT_EQ(keep(100, 32).items(), 100u);
  EXPECT_EQ(keep(103, 32).items(), 100u) << "as good as the same";
  EXPECT_EQ(keep(105, 32).items(), 105u);
  EXPECT_EQ(keep(105, 33).item_bytes(), 33u);
  EXPECT_EQ(keep(LeafShape::kMax, LeafShape::kMax).items(), LeafShape::kMax);
  EXPECT_FALSE(keep(LeafShape::kMax + 1, 2));
  EXPECT_FALSE(keep(2, LeafShape::kMax + 1));
  EXPECT_FALSE(fences.directory().Find(Bytes((uint64_t{301} << 32) + 1)).shape);
}

// Goal: a leaf costs 16 bytes, and the levels above a sixteenth of 8 more.
TEST(LeafDirectory, TakesSixteenBytesALeaf) {
  for (const size_t leaves : {size_t{1}, size_t{1000}, size_t{400'000}, size_t{1} << 24}) {
    const size_t pages = leaves < 50'000 ? 4096 : size_t{2} << 20;
    EXPECT_LE(LeafDirectory::BytesOf(leaves), leaves * 17 + pages) << leaves;
    EXPECT_GE(LeafDirectory::BytesOf(leaves), leaves * 16) << leaves;
  }
}

}  // namespace
}  // namespace skep::btree
