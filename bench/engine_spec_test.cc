#include "bench/engine_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skep::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EngineSpec, NamesAnEngineAndItsOptions) {
  const auto plain = ParseEngineSpec("model");
  ASSERT_TRUE(plain) << plain.error();
  EXPECT_EQ(plain->engine, "model");
  EXPECT_EQ(plain->keyspaces, 1u);
  EXPECT_EQ(plain->btree, BtreeOptions());

  const auto all = ParseEngineSpec("btree:layout=paper,node=4096,log=256,mvcc=off");
  ASSERT_TRUE(all) << all.error();
  EXPECT_EQ(all->engine, "btree");
  EXPECT_EQ(all->btree.layout, NodeLayout::kPaper);
  EXPECT_EQ(all->btree.node_bytes, 4096u);
  EXPECT_EQ(all->btree.log_bytes, 256u);
  EXPECT_FALSE(all->btree.multi_version);
  const auto others = ParseEngineSpec("btree:mvcc=on,layout=heads");
  ASSERT_TRUE(others) << others.error();
  EXPECT_EQ(others->btree, BtreeOptions());
}

// Goal: a hash table's options are set, or chosen for a size of pairs; half a choice is refused.
TEST(EngineSpec, NamesOrChoosesTheOptionsOfAHashTable) {
  const auto plain = ParseEngineSpec("hash");
  ASSERT_TRUE(plain) << plain.error();
  EXPECT_EQ(plain->hash, HashOptions());
  const auto named = ParseEngineSpec("hash:inline=40,fill=9");
  ASSERT_TRUE(named) << named.error();
  EXPECT_EQ(named->engine, "hash");
  EXPECT_EQ(named->hash, (HashOptions{.inline_bytes_max = 40, .fill_slots = 9}));

  const auto roomy = ParseEngineSpec("hash:pair=8+8,utilisation=0.2");
  const auto dense = ParseEngineSpec("hash:utilisation=0.42,pair=8+8");
  ASSERT_TRUE(roomy && dense);
  EXPECT_EQ(roomy->hash.inline_bytes_max, 16u);
  EXPECT_LT(roomy->hash.fill_slots, dense->hash.fill_slots);
  const auto half = ParseEngineSpec("hash:pair=5+5");
  const auto same = ParseEngineSpec("hash:pair=5+5,utilisation=0.5");
  ASSERT_TRUE(half && same);
  EXPECT_EQ(half->hash, same->hash);
  for (const char* spec : {"hash:utilisation=0.5", "hash:pair=8+8,fill=3", "hash:pair=8",
                           "hash:pair=0+8", "hash:pair=8+8,utilisation=1", "hash:inline=x"}) {
    const auto options = ParseEngineSpec(spec);
    ASSERT_FALSE(options) << spec;
    EXPECT_THAT(options.error(), HasSubstr(spec));
  }
}

// Goal: a spec that is not understood is named, whole.
TEST(EngineSpec, RefusesWhatItDoesNotKnow) {
  for (const char* spec :
       {"btree:", "btree:node", "btree:node=", "btree:node=4k", "btree:node=-1", "btree:mvcc=yes",
        "btree:layout=other", "btree:pages=2", "btree:node=4096,", "btree:node=4096,,log=0"}) {
    const auto options = ParseEngineSpec(spec);
    ASSERT_FALSE(options) << spec;
    EXPECT_THAT(options.error(), HasSubstr(spec));
  }
}

TEST(EngineSpec, ListsMayBeCutAtEveryComma) {
  EXPECT_THAT(JoinEngineSpecs({"model", "btree:node=4096", "log=256", "btree", "btree:mvcc=off"}),
              ElementsAre("model", "btree:node=4096,log=256", "btree", "btree:mvcc=off"));
  EXPECT_THAT(JoinEngineSpecs({"log=256"}), ElementsAre("log=256"));
}

}  // namespace
}  // namespace skep::bench
