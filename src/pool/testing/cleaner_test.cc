// The cleaner in a simulated pool, step by step: what it moves, what it leaves, what a full pool
// does, what becomes of a cleaner's crash at any message.
#include "pool/cleaner.h"

#include <gtest/gtest.h>

#include "pool/free_space.h"
#include "pool/testing/cleaner_world.h"

namespace skep::pool {
namespace {

using CleanerTest = CleanerWorld;

// Goal: what is left of chunks that are mostly garbage is moved, and these are free again; nothing
// changes for readers.
TEST_F(CleanerTest, MovesWhatIsLeft) {
  Begin(8);
  Fill("a", 120, kTwentieth);
  ASSERT_NO_FATAL_FAILURE();
  for (int i = 0; i < 120; ++i) {
    if (i % 10 == 0) continue;
    ASSERT_TRUE(Delete("a" + std::to_string(100 + i)).ok());
  }
  Fill("b", 20, kTwentieth);
  EXPECT_LT(chunks().free_count(), FreeSpace::WantedOf(8));
  Clean(40);
  EXPECT_GE(chunks().free_count(), FreeSpace::WantedOf(8));
  EXPECT_GT(Figures().items_moved, 0u);
  EXPECT_GT(Figures().chunks_cleaned, 0u);
  ExpectAllIsThere();
}

}  // namespace
}  // namespace skep::pool
