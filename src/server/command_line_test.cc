#include "server/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace skep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

CommandLine Parse(std::vector<const char*> arguments) {
  return ParseCommandLine(arguments, PosixFileSystem());
}

TEST(CommandLine, DefaultsRun) {
  const CommandLine line = Parse({});
  EXPECT_TRUE(line.run);
  EXPECT_EQ(line.options, ServerOptions{});
}

TEST(CommandLine, FlagsSetOptions) {
  const CommandLine line = Parse(
      {"--port", "7000", "--bind", "127.0.0.1", "--bind", "::1", "--maxmemory=1gb",
       "--protected-mode", "no", "--port", "7001", "--requirepass=-x y", "--btree-node-bytes",
       "16kb", "--btree-log-bytes", "4096", "--btree-layout", "heads", "--btree-multi-version=no"});
  ASSERT_TRUE(line.run) << line.text;
  EXPECT_EQ(line.options.port, 7001) << "the last one counts";
  EXPECT_EQ(line.options.bind, (std::vector<std::string>{"127.0.0.1", "::1"}));
  EXPECT_EQ(line.options.maxmemory, uint64_t{1} << 30);
  EXPECT_FALSE(line.options.protected_mode);
  EXPECT_EQ(line.options.requirepass, "-x y");
  EXPECT_EQ(line.options.btree_node_bytes, 16384u);
  EXPECT_EQ(line.options.btree_log_bytes, 4096u);
  EXPECT_EQ(line.options.btree_layout, NodeLayout::kHeads);
  EXPECT_FALSE(line.options.btree_multi_version);
}

TEST(CommandLine, KeyspacesHaveEnginesOfTheirOwn) {
  const CommandLine line = Parse({"--keyspace", "3=model", "--keyspace", "1=hash"});
  ASSERT_TRUE(line.run) << line.text;
  EXPECT_EQ(line.options.keyspace_engines,
            (std::map<uint32_t, std::string>{{1, "hash"}, {3, "model"}}));
  EXPECT_EQ(FindOption("keyspace")->get(line.options), "1=hash 3=model");
  EXPECT_FALSE(Parse({"--keyspace", "1=nosuch"}).run);
  EXPECT_FALSE(Parse({"--databases", "2", "--keyspace", "2=hash"}).run);
}

TEST(CommandLine, AnEmptyBindLeavesTheUnixSocket) {
  const CommandLine line = Parse({"--bind", "", "--unixsocket", "/run/skep.sock"});
  ASSERT_TRUE(line.run) << line.text;
  EXPECT_TRUE(line.options.bind.empty());
  EXPECT_EQ(line.options.unixsocket, "/run/skep.sock");
}

// Goal: flags override the file, before it or behind it; options that only the file sets stay.
TEST(CommandLine, FlagsOverrideTheFile) {
  const std::string path = testing::TempDir() + "command_line_test.toml";
  {
    auto file = PosixFileSystem().Open(path, FileSystem::Mode::kCreate);
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE((*file)->Append("port = 7000\nbind = ['::1']\ntimeout = 9\n").ok());
  }
  const CommandLine line =
      Parse({"--port", "7001", "--config", path.c_str(), "--bind", "127.0.0.1"});
  ASSERT_TRUE(line.run) << line.text;
  EXPECT_EQ(line.options.port, 7001);
  EXPECT_EQ(line.options.bind, (std::vector<std::string>{"127.0.0.1"}));
  EXPECT_EQ(line.options.timeout, 9u);
  EXPECT_TRUE(PosixFileSystem().Remove(path).ok());
}

TEST(CommandLine, HelpExplainsEveryOption) {
  for (const char* flag : {"--help", "-h"}) {
    const CommandLine line = Parse({flag});
    EXPECT_FALSE(line.run);
    EXPECT_EQ(line.exit_code, 0);
    for (const OptionInfo& option : AllOptions()) {
      EXPECT_THAT(line.text, AllOf(HasSubstr("--" + std::string(option.name)),
                                   HasSubstr(std::string(option.help.substr(0, 20)))));
    }
    EXPECT_THAT(line.text, HasSubstr("[6379]"));
  }
}

TEST(CommandLine, VersionIsOneLine) {
  const CommandLine line = Parse({"--version"});
  EXPECT_FALSE(line.run);
  EXPECT_EQ(line.exit_code, 0);
  EXPECT_EQ(line.text, "skep-server " SKEP_VERSION "\n");
}

// Goal: every mistake ends in exit code 2 and one line that names it.
TEST(CommandLine, ErrorsAreOneLine) {
  const struct {
    std::vector<const char*> arguments;
    const char* says;
  } wrong[] = {
      {{"--prot", "7000"}, "unknown argument '--prot'"},
      {{"--port"}, "--port"},
      {{"--port", "x"}, "--port: argument couldn't be parsed into an integer"},
      {{"--port", "7000", "stray", "--prot"}, "unknown argument 'stray'"},
      {{"stray\nline"}, "stray line"},
      {{"--bind", "0.0.0.0"}, "requirepass"},
      {{"--engine", "nosuch"}, "unknown engine 'nosuch'"},
      {{"--btree-node-bytes", "6000"}, "node bytes"},
      {{"--btree-log-bytes", "9kb"}, "btree-log-bytes"},
      {{"--config", "/nonexistent/skep.toml"}, "/nonexistent/skep.toml: cannot be read"},
  };
  for (const auto& [arguments, says] : wrong) {
    const CommandLine line = Parse(arguments);
    EXPECT_FALSE(line.run);
    EXPECT_EQ(line.exit_code, CommandLine::kUsageError);
    EXPECT_THAT(line.text, HasSubstr(says));
    EXPECT_EQ(std::ranges::count(line.text, '\n'), 1) << line.text;
    EXPECT_TRUE(line.text.ends_with('\n'));
  }
}

}  // namespace
}  // namespace skep
