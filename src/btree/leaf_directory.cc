#include "btree/leaf_directory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"
#include "btree/heads/lanes.h"

namespace skep::btree {
namespace {

constexpr uint64_t kShapeMask = (uint64_t{1} << 48) - (uint64_t{1} << LeafDirectory::kLidBits);

// Below every key's word there is that of the first leaf, so a key with that word has no link. One
// with the highest word is given that word: the places behind the last leaf are never chosen.
constexpr uint64_t kFirstWord = FenceWords::kLowest;
constexpr uint64_t kNoWord = FenceWords::kHighest;

// A directory of fewer bytes does not take whole huge pages.
constexpr size_t kHugeFrom = PageRegion::kHugePageBytes / 2;
constexpr size_t kPageBytes = 4096;

size_t GroupsOf(size_t entries) {
  return (entries + LeafDirectory::kGroup - 1) / LeafDirectory::kGroup;
}

// The words of all levels above so many groups.
size_t UpperWords(size_t groups) {
  size_t words = 0;
  while (groups > 1) {
    words += GroupsOf(groups) * LeafDirectory::kGroup;
    groups = GroupsOf(groups);
  }
  return words;
}

}  // namespace

size_t LeafDirectory::BytesOf(size_t leaves_max) {
  const size_t groups = GroupsOf(leaves_max);
  const size_t bytes = groups * sizeof(Group) + UpperWords(groups) * sizeof(uint64_t);
  const size_t page_bytes = bytes < kHugeFrom ? kPageBytes : PageRegion::kHugePageBytes;
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

std::unique_ptr<LeafDirectory> LeafDirectory::Make(size_t leaves_max, FenceWords words) {
  const size_t bytes = BytesOf(leaves_max);
  auto memory = PageRegion::Reserve(bytes, bytes < kHugeFrom ? Pages::kPlain : Pages::kHuge);
  if (!memory) return nullptr;
  return std::unique_ptr<LeafDirectory>(
      new LeafDirectory(std::move(*memory), bytes, leaves_max, std::move(words)));
}

LeafDirectory::LeafDirectory(PageRegion memory, size_t bytes, size_t leaves_max, FenceWords words)
    : memory_(std::move(memory)),
      bytes_(bytes),
      leaves_max_(leaves_max),
      words_(std::move(words)) {}

bool LeafDirectory::Add(std::string_view lower, Link leaf) {
  if (leaves_ == leaves_max_) return false;
  const size_t at = leaves_ % kGroup;
  Group& group = groups()[leaves_ / kGroup];
  if (at == 0) std::ranges::fill(group.words, kNoWord);
  const uint64_t word = leaves_ == 0 ? kFirstWord : words_.Of(lower);
  if (leaves_ > 0) {
    const size_t before = leaves_ - 1;
    alike_ += groups()[before / kGroup].words[before % kGroup] == word ? 1 : 0;
  }
  group.words[at] = word;
  group.links[at].store(leaf.bits & ~kShapeMask, std::memory_order_relaxed);
  ++leaves_;
  return true;
}

void LeafDirectory::Finish() {
  SKEP_DCHECK(leaves_ > 0);
  size_t count = GroupsOf(leaves_);
  auto* to = reinterpret_cast<uint64_t*>(groups() + count);
  const Group* const all = groups();
  const uint64_t* below = nullptr;  // the level below; the groups at first
  while (count > 1) {
    SKEP_CHECK(levels_ < kLevelsMax);
    const size_t padded = GroupsOf(count) * kGroup;
    for (size_t i = 0; i < padded; ++i) {
      to[i] = i >= count ? kNoWord : below == nullptr ? all[i].words[0] : below[i * kGroup];
    }
    level_[levels_++] = below = to;
    to += padded;
    count = GroupsOf(count);
  }
}

LeafDirectory::Place LeafDirectory::Locate(std::string_view key) const {
  Place place = {.word = words_.Of(key), .above = kNoWord};
  if (place.word == kNoWord) [[unlikely]]
    place.word = kFirstWord;
  for (uint32_t level = levels_; level > 0; --level) {
    const uint64_t* const words = level_[level - 1] + place.group * kGroup;
    const uint32_t count = CountNotAbove16(words, place.word);
    if (count < kGroup) place.above = words[count];
    place.group = place.group * kGroup + count - 1;
  }
  const Group* const group = groups() + place.group;
  FetchLines(group, group + 1);
  return place;
}

LeafDirectory::Guess LeafDirectory::GuessAt(const Place& place) const {
  Group& group = groups()[place.group];
  const uint32_t count = CountNotAbove16(group.words, place.word);
  const uint64_t lower = group.words[count - 1];
  if (lower == place.word) [[unlikely]]
    return {};
  const uint64_t above = count < kGroup ? group.words[count] : place.above;
  std::atomic<uint64_t>& link = group.links[count - 1];
  const uint64_t entry = link.load(std::memory_order_relaxed);
  return {.link = {entry & ~kShapeMask},
          .shape = {static_cast<uint32_t>((entry & kShapeMask) >> kLidBits)},
          .share = static_cast<uint32_t>((place.word - lower) /
                                         (((above - lower) >> LeafShape::kShareBits) + 1)),
          .entry = &link};
}

Link LeafDirectory::LinkAt(const Place& place) const {
  const Group& group = groups()[place.group];
  const uint32_t i = CountNotAbove16(group.words, place.word) - 1;
  if (group.words[i] == place.word) [[unlikely]]
    return {};
  return {group.links[i].load(std::memory_order_relaxed) & ~kShapeMask};
}

}  // namespace skep::btree
