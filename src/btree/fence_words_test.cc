#include "btree/fence_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"

namespace skep::btree {
namespace {

// Goal: words never fall while keys rise, whatever fences they were made for.
// Method: fences and keys of small alphabets, which share most of their bytes, of text with parts
// in common, and of all bytes, around the lengths at which parts begin and end; all pairs of
// neighbours.
TEST(FenceWords, RiseWithTheKeys) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  const auto from = [&](const std::string& alphabet, size_t bytes_max) {
    std::string key(random.Below(bytes_max + 1), '\0');
    for (char& byte : key) byte = alphabet[random.Below(alphabet.size())];
    return key;
  };
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  const std::vector<std::string> alphabets = {"ab",  std::string("\0\xff", 2), "0123456789abcdef",
                                              "/0z", "\x7f\x80\x3f",           all_bytes};
  const std::vector<std::string> prefixes = {"", "https://shop/", "\xff\xff", std::string(2, '\0')};
  for (int round = 0; round < 400; ++round) {
    const std::string prefix = prefixes[random.Below(prefixes.size())];
    const std::string alphabet = alphabets[random.Below(alphabets.size())];
    const size_t bytes_max = 1 + random.Below(40);
    const std::string middle = random.Chance(1, 2) ? "" : "/item/";
    const auto key = [&] {
      return prefix + from(alphabet, 3) + middle + from(alphabet, bytes_max);
    };
    std::vector<std::string> fences, keys;
    for (uint64_t i = random.Below(20) + 1; i > 0; --i) fences.push_back(key());
    const FenceWords words = round % 8 == 0 ? FenceWords(prefix) : FenceWords(prefix, fences);
    for (int i = 0; i < 300; ++i) keys.push_back(key());
    for (int i = 0; i < 50; ++i) {
      keys.push_back(from(all_bytes, 50));
      keys.push_back(prefix + from(all_bytes, 50));
      std::string changed = keys[random.Below(keys.size())];
      if (!changed.empty()) changed[random.Below(changed.size())] ^= static_cast<char>(1 << i % 8);
      keys.push_back(changed);
    }
    keys.insert(keys.end(), fences.begin(), fences.end());
    std::ranges::sort(keys);
    for (size_t i = 1; i < keys.size(); ++i) {
      ASSERT_LE(words.Of(keys[i - 1]), words.Of(keys[i]))
          << testing::PrintToString(keys[i - 1]) << testing::PrintToString(keys[i]);
    }
  }
}

// Goal: the words of text use their bits for what differs, and those of binary keys are 8 bytes.
TEST(FenceWords, TellTextApart) {
  const std::string prefix = "https://shop.example/";
  const auto url = [&](const std::string& shop, const std::string& item) {
    return prefix + shop + "/item/" + item;
  };
  // Fences are no longer than they have to be.
  const std::vector<std::string> fences = {url("abc", "0123"), url("hij", "9a65"), prefix + "k",
                                           url("xyz", "fedc")};
  const FenceWords urls(prefix, fences);
  EXPECT_LT(urls.Of(url("abc", "01234567")), urls.Of(url("abc", "01234667")));
  EXPECT_LT(urls.Of(url("abc", "01234567")), urls.Of(url("abd", "01234567")));
  EXPECT_LT(urls.Of(prefix + "k"), urls.Of(url("kaa", "0")));
  EXPECT_EQ(urls.Of("https://shop.exampl"), FenceWords::kLowest);
  EXPECT_EQ(urls.Of(prefix + "~"), FenceWords::kHighest);
  SeededRandom random(1);
  std::vector<std::string> bytes;
  for (int i = 0; i < 20; ++i) {
    std::string& fence = bytes.emplace_back(3, '\0');
    for (char& byte : fence) byte = static_cast<char>(random.Next());
  }
  EXPECT_EQ(FenceWords("", bytes).Of("\x12\x34\x56\x78\x9a\xbc\xde\xf0"), 0x123456789abcdef0u);
}

}  // namespace
}  // namespace skep::btree
