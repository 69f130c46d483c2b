#include "keyspace/factory.h"

#include <gtest/gtest.h>

#include <string>

#include "keyspace/keyspaces.h"

namespace skep {
namespace {

struct Mistake {
  const char* engine;
  const char* problem;
};

// Goal: what is wrong with the text that names an engine is told so that a person can mend it: the
// engine, the option, and what there is instead. Method: each kind of mistake, by its words.
TEST(Factory, SaysWhatIsWrongWithAnEngine) {
  const Mistake mistakes[] = {
      {"nosuch",
       "unknown engine 'nosuch'; this build has: btree, hash, hashleaf, pool, ranges, model"},
      {"nosuch,key=8",
       "unknown engine 'nosuch'; this build has: btree, hash, hashleaf, pool, ranges, model"},
      {"", "unknown engine ''; this build has: btree, hash, hashleaf, pool, ranges, model"},
      {"hash,foo=1",
       "the engine hash has no option 'foo': hash takes none, hashleaf takes key=, value=, leaf=, "
       "threads=, pool takes zk=, name=, fabric=, timeout=, ranges takes zk=, name=, fabric=, "
       "timeout=, password="},
      {"pool,fabric=ether",
       "the option 'fabric=ether' of the engine pool: the fabrics are mem, tcp and ofi:PROVIDER"},
      {"pool,name=a/b", "the option 'name=a/b' of the engine pool: this is no name of a pool"},
      {"pool,name=", "the option 'name=' of the engine pool: this is no name of a pool"},
      {"pool,timeout=0", "the option 'timeout=0' of the engine pool: a time-out is milliseconds"},
      {"pool,zk=", "the option 'zk=' of the engine pool: a server of ZooKeeper is host:port"},
      {"hashleaf,key=8,foo=1",
       "the engine hashleaf has no option 'foo': hashleaf takes key=, value=, leaf=, threads="},
      {"hashleaf,",
       "the engine hashleaf has no option '': hashleaf takes key=, value=, leaf=, "
       "threads="},
      {"hashleaf,key=8x", "the option 'key=8x' of the engine hashleaf: the value is not a number"},
      {"hashleaf,leaf", "the option 'leaf' of the engine hashleaf: the value is not a number"},
  };
  for (const Mistake& mistake : mistakes) {
    std::string problem;
    const auto spec = ParseEngine(mistake.engine, {}, &problem);
    ASSERT_FALSE(spec) << mistake.engine;
    EXPECT_EQ(spec.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(problem, mistake.problem);
    EXPECT_FALSE(ParseEngine(mistake.engine, {}));
  }
}

// Goal: a store says the same, and of a keyspace's own engine which keyspace it is.
TEST(Factory, KeyspacesSayTheSame) {
  std::string problem;
  EXPECT_FALSE(Keyspaces::Make({.engine = "hash,foo=1"}, nullptr, nullptr, &problem));
  EXPECT_EQ(problem.find("the engine hash has no option 'foo'"), 0u) << problem;
  EXPECT_FALSE(Keyspaces::Make({.engine = "nosuch"}, nullptr, nullptr, &problem));
  EXPECT_EQ(problem.find("unknown engine 'nosuch'"), 0u) << problem;
  const Options own{.keyspaces = 4, .keyspace_engines = {{3, "model,x"}}};
  EXPECT_FALSE(Keyspaces::Make(own, nullptr, nullptr, &problem));
  EXPECT_EQ(problem.find("keyspace 3: the engine model has no option 'x'"), 0u) << problem;
  EXPECT_FALSE(Keyspaces::Make({.keyspaces = 0}, nullptr, nullptr, &problem));
  EXPECT_EQ(problem, Keyspaces::Check({.keyspaces = 0}).ToString());
}

// Goal: every option that an engine names can be read.
TEST(Factory, ReadsEveryOptionThatAnEngineNames) {
  for (const EngineInfo& info : AllEngines()) {
    EXPECT_EQ(info.option_names.empty(), info.read_option == nullptr) << info.name;
    for (const std::string_view name : info.option_names) {
      const std::string value = name == "fabric" ? "tcp" : "16";
      const std::string text = std::string(info.name) + "," + std::string(name) + "=" + value;
      EXPECT_TRUE(ParseEngine(text, {})) << text;
    }
  }
}

}  // namespace
}  // namespace skep
