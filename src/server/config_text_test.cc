#include "server/config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "server/config_file.h"

namespace skep {
namespace {

using testing::HasSubstr;
using testing::Not;

// The options that a text sets, read as a file.
ServerOptions Load(const std::string& text) {
  const std::string path =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
  auto file = PosixFileSystem().Open(path, FileSystem::Mode::kCreate);
  EXPECT_TRUE(file.has_value() && (*file)->Append(text).ok());
  ServerOptions options;
  std::string error;
  EXPECT_TRUE(LoadConfig(PosixFileSystem(), path, options, &error).ok()) << error << "\n" << text;
  (void)PosixFileSystem().Remove(path);
  return options;
}

ServerOptions Unusual() {
  ServerOptions options;
  options.bind = {"127.0.0.1", "::1"};
  options.port = 7000;
  options.maxmemory = uint64_t{4} << 30;
  options.requirepass = "a \"b\\\t\x01' \xc3\xa9 # no comment";
  options.protected_mode = false;
  options.save = "60 1000 3600 1";
  options.keyspace_engines = {{1, "hash"}, {3, "hashleaf,key=8,value=16"}};
  options.btree_layout = NodeLayout::kPaper;
  options.timeout = 5;
  return options;
}

// Goal: a printed file sets the options that it was made from. Every option is in it; one that has
// its default is in a comment, which is right once its # is removed.
TEST(ConfigText, PrintsWhatIsRead) {
  for (const ServerOptions& options : {ServerOptions{}, Unusual()}) {
    const std::string text = PrintConfig(options);
    EXPECT_EQ(Load(text), options);
    std::string all;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at) + 1;
      const std::string line = text.substr(at, end - at);
      all += line.starts_with('#') && !line.starts_with("# ") ? line.substr(1) : line;
      at = end;
    }
    EXPECT_EQ(Load(all), options);
    for (const OptionInfo& option : AllOptions()) {
      EXPECT_THAT(text, HasSubstr(std::string(option.help)));
      EXPECT_THAT(all, HasSubstr("\n" + std::string(option.name) + " = "));
    }
  }
}

// Goal: a file that is rewritten has the new values of the options that CONFIG SET can change in
// their places, and keeps everything else to the byte.
TEST(ConfigText, RewritesInPlace) {
  const std::string text =
      "# mine, \xc3\xa9\n"
      "port = 7000            # not to be changed at run time\n"
      "maxmemory = '1gb'      # \xc3\xa9 the same in other words\n"
      "timeout    =   5       # seconds\n"
      "requirepass = '\xc3\xa9\xc3\xa9' # secret\n"
      "save = [\n  '60 1000', # often\n  '3600 1',\n]\n"
      "loglevel = 'debug'";
  ServerOptions options = Load(text);
  EXPECT_EQ(*RewriteConfig(text, options), text);

  options.port = 9;  // CONFIG SET cannot change it, so it is not written
  options.timeout = 0;
  options.requirepass = "x\"y";
  options.save = "1 1";
  options.maxclients = 77;
  options.appendfsync = "no";
  const std::string rewritten = *RewriteConfig(text, options);
  EXPECT_EQ(rewritten,
            "# mine, \xc3\xa9\n"
            "port = 7000            # not to be changed at run time\n"
            "maxmemory = '1gb'      # \xc3\xa9 the same in other words\n"
            "timeout    =   0       # seconds\n"
            "requirepass = \"x\\\"y\" # secret\n"
            "save = \"1 1\"\n"
            "loglevel = 'debug'\n"
            "maxclients = 77\n"
            "appendfsync = \"no\"\n");
  options.port = 7000;
  EXPECT_EQ(Load(rewritten), options);
  EXPECT_EQ(*RewriteConfig(rewritten, options), rewritten);
  EXPECT_FALSE(RewriteConfig("port 7000\n", options).has_value());
  EXPECT_FALSE(RewriteConfig("timeout = 'x'\n", options).has_value());
  EXPECT_EQ(*RewriteConfig("", ServerOptions{}), "");
}

// Goal: no rewritten file stops a server from starting, or gives it other values: names ignore
// case, the last of several counts, and not every text can be written in TOML.
TEST(ConfigText, WhatIsRewrittenCanBeLoaded) {
  ServerOptions options;
  options.maxmemory = uint64_t{2} << 30;
  EXPECT_EQ(*RewriteConfig("MaxMemory = '1gb' # mine\n", options),
            "MaxMemory = 2147483648 # mine\n");
  options = {};
  options.timeout = 7;
  EXPECT_EQ(*RewriteConfig("Timeout = 1\ntimeout = 2\n", options), "Timeout = 7\ntimeout = 7\n");
  options = {};
  options.requirepass = "\xff";
  EXPECT_EQ(RewriteConfig("", options).error().code(), Code::kInvalidArgument);
  options.requirepass = "\xc3\xa9\x01\x7f\\\"";
  EXPECT_EQ(Load(*RewriteConfig("", options)), options);
}

// Goal: of a redis.conf, directives that have a meaning here are translated, the others are named
// with their lines.
TEST(ConfigText, ConvertsRedis) {
  const std::string text = ConvertRedisConfig(
      "# Redis configuration file\n"
      "bind 127.0.0.1 -::1\n"
      "port 7000\r\n"
      "\n"
      "  timeout\t30\n"
      "save 3600 1 300 100\n"
      "save 60 10000\n"
      "appendonly yes\n"
      "appendfsync always\n"
      "dir \"/var/lib/my data\"\n"
      "requirepass 'it\\'s \"x\"'\n"
      "maxmemory 2gb\n"
      "daemonize no\n"
      "activerehashing yes\n"
      "loglevel loud\n"
      "logfile \"a\n");
  ServerOptions wanted;
  wanted.bind = {"127.0.0.1", "::1"};
  wanted.port = 7000;
  wanted.timeout = 30;
  wanted.save = "3600 1 300 100 60 10000";
  wanted.appendfsync = "always";
  wanted.dir = "/var/lib/my data";
  wanted.requirepass = "it's \"x\"";
  wanted.maxmemory = uint64_t{2} << 30;
  EXPECT_EQ(Load(text), wanted);
  EXPECT_THAT(text, HasSubstr("#   14: activerehashing: skep-server has no such option\n"));
  EXPECT_THAT(text, HasSubstr("#   15: loglevel: argument(s) must be one of"));
  EXPECT_THAT(text, HasSubstr("#   16: logfile: a quote is not closed\n"));
  EXPECT_THAT(text, Not(HasSubstr("daemonize:")));
  EXPECT_THAT(text, HasSubstr("\n# Redis configuration file\n"));

  // A cache in Redis keeps nothing on disk, so neither does Skep.
  const std::string cache = ConvertRedisConfig("dir /x\nsave \"\"\nappendonly no\n");
  EXPECT_EQ(Load(cache).dir, "");
  EXPECT_THAT(cache, HasSubstr("dir: not taken"));
  EXPECT_EQ(Load(ConvertRedisConfig("dir /x\nsave \"\"\nappendonly yes\n")).dir, "/x");
  EXPECT_EQ(Load(ConvertRedisConfig("")), ServerOptions{});
}

TEST(ConfigText, KnowsLinesOfRedis) {
  for (const char* line : {"port 6379", "  save 60 1", "requirepass \"a b\"", "maxmemory 1gb"}) {
    EXPECT_TRUE(LooksLikeRedisConfig(line)) << line;
  }
  for (const char* line : {"port = 6379", "port=6379", "# port 6379", "", "port", "[server]"}) {
    EXPECT_FALSE(LooksLikeRedisConfig(line)) << line;
  }
}

}  // namespace
}  // namespace skep
