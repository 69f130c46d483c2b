#include "skep/scratch.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace skep {
namespace {

// A piece that was handed out, and the bytes that it must still have.
struct Kept {
  std::string_view view;
  std::string bytes;
};

void ExpectIntact(const std::vector<Kept>& kept) {
  for (const Kept& k : kept) ASSERT_TRUE(k.view == k.bytes);
}

// Goal: after a move both sides are usable and share no memory: neither writes where the other's
// views are.
// Method: both allocate from the block that they would share if the moved-from side kept its
// position.
TEST(Scratch, AMovedFromOneWritesElsewhere) {
  Scratch from;
  const std::string_view first = from.Copy("first");
  Scratch to(std::move(from));
  const std::string_view mine = to.Copy("mine");
  const std::string_view other = from.Copy("OTHER");
  EXPECT_EQ(first, "first");
  EXPECT_EQ(mine, "mine");
  EXPECT_EQ(other, "OTHER");
  EXPECT_EQ(to.used(), 9u);
  EXPECT_EQ(from.used(), 5u);
  from.Clear();
  EXPECT_EQ(from.Copy("again"), "again");
  EXPECT_EQ(mine, "mine");
}

// Goal: move assignment, to a Scratch that already holds bytes, shares no memory either.
TEST(Scratch, AMovedFromOneWritesElsewhereAfterAssignment) {
  Scratch from, to;
  const std::string_view first = from.Copy("first");
  to.Copy("old");
  to = std::move(from);
  const std::string_view mine = to.Copy("mine");
  const std::string_view other = from.Copy("OTHER");
  EXPECT_EQ(first, "first");
  EXPECT_EQ(mine, "mine");
  EXPECT_EQ(other, "OTHER");
  EXPECT_EQ(to.used(), 9u);
}

// Goal: Clear keeps one block, large enough for rounds of one size up to kKeptBytesMax, and no
// block that is larger than that.
// Method: after two rounds all of a round lies in one block, whatever was allocated before; after
// one with a block of more than kKeptBytesMax, the block that was there before is there again.
TEST(Scratch, ClearKeepsOneBlock) {
  Scratch scratch;
  for (const size_t bytes : {size_t{1}, Scratch::kBlockBytes, Scratch::kKeptBytesMax}) {
    for (int round = 0; round < 2; ++round) {
      scratch.Allocate(bytes);
      scratch.Clear();
      EXPECT_EQ(scratch.used(), 0u);
    }
    const char* const first = scratch.Allocate(1);
    EXPECT_EQ(scratch.Allocate(bytes - 1), first + 1);
    scratch.Clear();
  }
  // Room that was asked for and not used counts as well.
  scratch = Scratch();
  for (int round = 0; round < 3; ++round) {
    const char* const first = scratch.Allocate(27000);
    scratch.Room(8192);
    const char* const last = scratch.Allocate(3000);
    if (round > 0) {
      EXPECT_EQ(last, first + 27000);
    }
    scratch.Clear();
  }
  const char* const kept = scratch.Allocate(1);
  scratch.Allocate(Scratch::kKeptBytesMax + 1);
  scratch.Clear();
  EXPECT_EQ(scratch.Allocate(1), kept);
}

// Goal: allocations larger than a block, as the first and later, are whole, and small ones go on.
TEST(Scratch, LargeAllocations) {
  for (const size_t before : {size_t{0}, size_t{1}, Scratch::kBlockBytes}) {
    Scratch scratch;
    std::vector<Kept> kept;
    for (const size_t bytes : {before, Scratch::kBlockBytes + 1, size_t{1}, size_t{3} << 20,
                               Scratch::kBlockBytes, size_t{100}}) {
      std::string value(bytes, static_cast<char>('a' + kept.size()));
      kept.push_back({.view = scratch.Copy(value), .bytes = std::move(value)});
    }
    ExpectIntact(kept);
    scratch.Clear();
    EXPECT_EQ(scratch.Copy("small"), "small");
  }
}

// Goal: Room() tells where the next allocation will lie, also if a block has to be made for it, and
// takes nothing.
TEST(Scratch, RoomIsWhereTheNextBytesLie) {
  Scratch scratch;
  for (const size_t bytes : {size_t{10}, Scratch::kBlockBytes, size_t{7}, size_t{1} << 20}) {
    const size_t used = scratch.used();
    char* const room = scratch.Room(bytes);
    EXPECT_EQ(scratch.used(), used);
    std::fill_n(room, bytes, 'r');
    EXPECT_EQ(scratch.Allocate(bytes / 2), room);
    EXPECT_EQ(scratch.Copy(""), "");
    EXPECT_EQ(scratch.Allocate(1), room + bytes / 2);
  }
}

// Goal: a round that was spread over blocks has one block the next time.
TEST(Scratch, ARoundOfManyBlocksGetsOne) {
  Scratch scratch;
  constexpr size_t kPieces = 50;
  constexpr size_t kPieceBytes = Scratch::kKeptBytesMax / kPieces;
  for (size_t i = 0; i < kPieces; ++i) scratch.Allocate(kPieceBytes);
  scratch.Clear();
  const char* const first = scratch.Allocate(kPieceBytes);
  for (size_t i = 1; i < kPieces; ++i) {
    EXPECT_EQ(scratch.Allocate(kPieceBytes), first + i * kPieceBytes);
  }
}

TEST(Scratch, Concat) {
  Scratch scratch;
  EXPECT_EQ(scratch.Concat("ab", "cd"), "abcd");
  EXPECT_EQ(scratch.Concat("", "cd"), "cd");
  EXPECT_EQ(scratch.Concat("ab", ""), "ab");
  EXPECT_EQ(scratch.Concat("", ""), "");
  EXPECT_EQ(scratch.used(), 8u);
}

// Goal: every view is intact until its Scratch is cleared, however several are filled, moved and
// cleared in turn.
// Method: random steps on three of them beside a list of what each should hold.
TEST(Scratch, AgreesWithModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  constexpr size_t kScratches = 3;
  Scratch scratches[kScratches];
  std::vector<Kept> kept[kScratches];
  size_t used[kScratches] = {};
  const auto size = [&] { return rng() % 50 == 0 ? rng() % 100'000 : rng() % 3'000; };

  for (int step = 0; step < 3'000; ++step) {
    const size_t at = rng() % kScratches;
    const size_t other = (at + 1) % kScratches;
    const auto choice = rng() % 100;
    if (choice < 2) {
      scratches[at].Clear();
      kept[at].clear();
      used[at] = 0;
    } else if (choice < 8) {
      scratches[at] = std::move(scratches[other]);
      scratches[other].Clear();
      kept[at] = std::exchange(kept[other], {});
      used[at] = std::exchange(used[other], 0);
    } else {
      std::string first(size(), static_cast<char>(rng())), second(size() % 7, 'x');
      const std::string_view view = scratches[at].Concat(first, second);
      kept[at].push_back({.view = view, .bytes = first + second});
      used[at] += view.size();
    }
    ASSERT_EQ(scratches[at].used(), used[at]);
    if (step % 50 == 0) {
      for (const auto& list : kept) ExpectIntact(list);
    }
  }
  for (const auto& list : kept) ExpectIntact(list);
}

}  // namespace
}  // namespace skep
