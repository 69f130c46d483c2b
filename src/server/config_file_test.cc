#include "server/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace skep {
namespace {

using testing::HasSubstr;

class ConfigFile : public testing::Test {
 protected:
  ~ConfigFile() override { (void)PosixFileSystem().Remove(path_); }

  // Loads a file with these bytes into options_.
  Status Load(std::string_view bytes) {
    auto file = PosixFileSystem().Open(path_, FileSystem::Mode::kCreate);
    EXPECT_TRUE(file.has_value() && (*file)->Append(bytes).ok());
    return LoadConfig(PosixFileSystem(), path_, options_, &error_);
  }

  const std::string path_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
  ServerOptions options_;
  std::string error_;
};

TEST_F(ConfigFile, SetsEveryType) {
  ASSERT_TRUE(Load("# comment\n"
                   "port = 7000\n"
                   "bind = ['127.0.0.1', '::1']\n"
                   "maxmemory = '4gb'\n"
                   "proto-max-bulk-len = 2097152\n"
                   "protected-mode = false\n"
                   "btree-node-bytes = 4096\n"
                   "btree-log-bytes = '1kb'\n"
                   "btree-layout = 'paper'\n"
                   "btree-multi-version = false\n"
                   "loglevel = \"debug\"\n")
                  .ok())
      << error_;
  EXPECT_EQ(options_.port, 7000);
  EXPECT_EQ(options_.bind, (std::vector<std::string>{"127.0.0.1", "::1"}));
  EXPECT_EQ(options_.maxmemory, uint64_t{4} << 30);
  EXPECT_EQ(options_.proto_max_bulk_len, 2097152u);
  EXPECT_FALSE(options_.protected_mode);
  EXPECT_EQ(options_.btree_node_bytes, 4096u);
  EXPECT_EQ(options_.btree_log_bytes, 1024u);
  EXPECT_EQ(options_.btree_layout, NodeLayout::kPaper);
  EXPECT_FALSE(options_.btree_multi_version);
  EXPECT_EQ(options_.loglevel, "debug");
  EXPECT_EQ(options_.maxclients, ServerOptions{}.maxclients);
}

// Goal: whatever is wrong with a file, the error names the line and no option is changed.
TEST_F(ConfigFile, ErrorsNameTheLineAndChangeNothing) {
  const struct {
    std::string_view bytes, error;
  } wrong[] = {
      {"port = 1\nprot = 2\n", ":2: prot: unknown option"},
      {"port = 1\n\nmaxclients = 0\n",
       ":3: maxclients: argument must be between 1 and 4294967295 inclusive"},
      {"port = 1.5\n", ":1: port: not a string, integer, boolean or array of strings"},
      {"bind = [1]\n", ":1: bind: not a string, integer, boolean or array of strings"},
      {"port = 1\n[server]\nport = 2\n",
       ":2: server: not a string, integer, boolean or array of strings"},
      {"port = 1\nport = 2\n", ":2: "},
      {"port = 1\nloglevel = 'a\n", ":2: "},
      {"port 1\n", ":1: "},
  };
  for (const auto& file : wrong) {
    EXPECT_EQ(Load(file.bytes).code(), Code::kInvalidArgument) << file.bytes;
    EXPECT_THAT(error_, HasSubstr(path_ + std::string(file.error)));
    EXPECT_EQ(options_, ServerOptions{}) << file.bytes;
  }
}

// Goal: two common mistakes are answered with what to write instead.
TEST_F(ConfigFile, SaysWhatWasMeant) {
  EXPECT_FALSE(Load("port = 1\nmaxmemory = 1gb\n").ok());
  EXPECT_THAT(error_, HasSubstr(":2: "));
  EXPECT_THAT(error_, HasSubstr("takes quotes: maxmemory = \"1gb\""));
  EXPECT_FALSE(Load("dir = /var/lib/skep\n").ok());
  EXPECT_THAT(error_, HasSubstr("takes quotes: dir = \"/var/lib/skep\""));
  EXPECT_FALSE(Load("# a comment\n\nport 6379\n").ok());
  EXPECT_THAT(error_, HasSubstr(":3: "));
  EXPECT_THAT(error_, HasSubstr("looks like a redis.conf"));
  EXPECT_THAT(error_, HasSubstr("--convert-config " + path_));
  EXPECT_FALSE(Load("loglevel = 'a\n").ok());
  EXPECT_THAT(error_, testing::Not(HasSubstr(";")));
}

TEST_F(ConfigFile, AMissingFileIsNamed) {
  EXPECT_FALSE(LoadConfig(PosixFileSystem(), path_ + ".missing", options_, &error_).ok());
  EXPECT_THAT(error_, HasSubstr(path_ + ".missing: cannot be read"));
}

}  // namespace
}  // namespace skep
