// Options that CONFIG takes and that change nothing.
#include "server/unused_options.h"

#include <gtest/gtest.h>

#include <set>

#include "server/options.h"

namespace skep {
namespace {

// Goal: each is found by its own name, accepts its own default, and is none that is used.
TEST(UnusedOptions, EveryOneTakesItsDefault) {
  std::set<std::string_view> names;
  const UnusedOptions options;
  for (const UnusedOption& option : AllUnusedOptions()) {
    SCOPED_TRACE(option.name);
    EXPECT_TRUE(names.insert(option.name).second);
    EXPECT_EQ(FindUnusedOption(option.name), &option);
    EXPECT_EQ(FindOption(option.name), nullptr);
    EXPECT_TRUE(CheckUnusedOption(option, option.value).ok());
    EXPECT_EQ(options.Get(option), option.value);
  }
  EXPECT_EQ(FindUnusedOption("HZ"), FindUnusedOption("hz"));
  EXPECT_EQ(FindUnusedOption("nosuch"), nullptr);
}

// Goal: a value is checked by the kind of its option, and kept as Redis prints it.
TEST(UnusedOptions, ValuesAreChecked) {
  const auto accepts = [](std::string_view name, std::string_view value) {
    return CheckUnusedOption(*FindUnusedOption(name), value).ok();
  };
  EXPECT_TRUE(accepts("activedefrag", "YES"));
  EXPECT_FALSE(accepts("activedefrag", "1"));
  EXPECT_TRUE(accepts("hz", "-5"));
  EXPECT_FALSE(accepts("hz", ""));
  EXPECT_FALSE(accepts("hz", "1.5"));
  EXPECT_TRUE(accepts("repl-backlog-size", "1mb"));
  EXPECT_FALSE(accepts("repl-backlog-size", "-1"));
  UnusedOptions options;
  options.Set(*FindUnusedOption("activedefrag"), "YES");
  options.Set(*FindUnusedOption("repl-backlog-size"), "1mb");
  options.Set(*FindUnusedOption("hz"), "50");
  EXPECT_EQ(options.Get(*FindUnusedOption("activedefrag")), "yes");
  EXPECT_EQ(options.Get(*FindUnusedOption("repl-backlog-size")), "1048576");
  EXPECT_EQ(options.Get(*FindUnusedOption("hz")), "50");
}

}  // namespace
}  // namespace skep
