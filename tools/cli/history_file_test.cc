#include "tools/cli/history_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/temporary_directory_test.h"

namespace skep::cli {
namespace {

TEST(HistoryFile, SecretsAreKnown) {
  const auto has = [](std::vector<std::string_view> words) { return HasSecret(words); };
  EXPECT_TRUE(has({"AUTH"}));
  EXPECT_TRUE(has({"auth", "user", "word"}));
  EXPECT_TRUE(has({"hello", "3", "AUTH", "user", "word"}));
  EXPECT_TRUE(has({"MIGRATE", "host", "1", "k", "0", "1", "AUTH2", "user", "word"}));
  EXPECT_TRUE(has({"ACL", "setuser", "user", ">word"}));
  EXPECT_TRUE(has({"CONFIG", "SET", "requirepass", "word"}));
  EXPECT_TRUE(has({"config", "set", "masterauth", "word"}));
  EXPECT_FALSE(has({}));
  EXPECT_FALSE(has({"GET", "auth"}));
  EXPECT_FALSE(has({"HELLO", "3"}));
  EXPECT_FALSE(has({"CONFIG", "GET", "requirepass"}));
  EXPECT_FALSE(has({"CONFIG", "SET", "maxmemory", "1mb"}));
}

TEST(HistoryFile, KeepsLinesForItsOwner) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/history";
  HistoryFile one(path);
  EXPECT_TRUE(one.Load().empty());
  one.Append("GET a");
  HistoryFile(path).Append("GET b");
  one.Append("GET \"c d\"");
  EXPECT_EQ(HistoryFile(path).Load(), (std::vector<std::string>{"GET a", "GET b", "GET \"c d\""}));
  struct stat about = {};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST(HistoryFile, ALongOneIsCut) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/history";
  HistoryFile history(path);
  const size_t count = 2 * HistoryFile::kLinesMax;
  for (size_t i = 0; i < count; ++i) history.Append(std::to_string(i));
  std::vector<std::string> lines = history.Load();
  ASSERT_EQ(lines.size(), HistoryFile::kLinesMax);
  EXPECT_EQ(lines.front(), std::to_string(count - HistoryFile::kLinesMax));
  EXPECT_EQ(lines.back(), std::to_string(count - 1));
  std::ifstream file(path);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(file), {}, '\n'),
            static_cast<ptrdiff_t>(HistoryFile::kLinesMax));
  EXPECT_EQ(history.Load(), lines);
}

TEST(HistoryFile, NowhereToKeepThem) {
  HistoryFile nowhere("");
  nowhere.Append("GET a");
  EXPECT_TRUE(nowhere.Load().empty());
  HistoryFile missing("/nonexistent/folder/history");
  missing.Append("GET a");
  EXPECT_TRUE(missing.Load().empty());
}

}  // namespace
}  // namespace skep::cli
