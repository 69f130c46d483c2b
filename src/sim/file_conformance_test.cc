// Tests of what every FileSystem does, over the machine's files and over the simulated disk alike.
#include <errno.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "sim/file_worlds_test.h"

namespace skep {
namespace {

using Mode = FileSystem::Mode;

template <typename World>
class FileSystemTest : public testing::Test {
 protected:
  FileSystem& files() { return world_.files(); }
  std::string Path(const std::string& name) const { return world_.directory + "/" + name; }

  std::unique_ptr<File> Open(const std::string& name, Mode mode) {
    auto file = files().Open(Path(name), mode);
    EXPECT_TRUE(file) << file.error().ToString();
    return std::move(*file);
  }
  void Store(const std::string& name, std::string_view bytes) {
    ASSERT_TRUE(Open(name, Mode::kCreate)->Append(bytes).ok());
  }
  std::string Load(const std::string& name) {
    const Result<std::string> bytes = files().ReadAll(Path(name));
    EXPECT_TRUE(bytes) << bytes.error().ToString();
    return *bytes;
  }

  World world_;
};

TYPED_TEST_SUITE(FileSystemTest, FileWorlds, FileWorldName);

template <typename T>
uint64_t ErrnoOf(const Result<T>& result) {
  EXPECT_FALSE(result);
  if (result) return 0;
  EXPECT_EQ(result.error().code(), Code::kIo);
  return result.error().detail();
}
uint64_t ErrnoOf(Status status) {
  EXPECT_EQ(status.code(), Code::kIo);
  return status.detail();
}

std::string RandomBytes(SeededRandom& random, size_t bytes_max) {
  std::string bytes(random.Below(bytes_max + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

// Reads [offset, offset + bytes) by as many reads as it takes.
std::string ReadRange(File& file, uint64_t offset, size_t bytes) {
  std::string all(bytes, '\0');
  size_t filled = 0;
  while (filled < bytes) {
    const Result<size_t> got = file.ReadAt(offset + filled, all.data() + filled, bytes - filled);
    EXPECT_TRUE(got);
    if (!got || *got == 0) break;
    filled += *got;
  }
  all.resize(filled);
  return all;
}

// Goal: a file agrees with a string after any sequence of changes.
// Method: 2000 random appends, writes (over, across and beyond the end), truncations (shorter and
// longer), reads, syncs and re-openings; a failure prints its seed.
TYPED_TEST(FileSystemTest, FileAgreesWithModel) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  std::string model;
  std::unique_ptr<File> file = this->Open("f", Mode::kReadWrite);

  for (int step = 0; step < 2'000; ++step) {
    const uint64_t at = random.Below(model.size() + 50);
    switch (random.Below(7)) {
      case 0: {
        const std::string bytes = RandomBytes(random, 300);
        ASSERT_TRUE(file->Append(bytes).ok());
        model += bytes;
        break;
      }
      case 1: {
        const std::string bytes = RandomBytes(random, 300);
        ASSERT_TRUE(file->WriteAt(at, bytes).ok());
        if (bytes.empty()) break;
        model.resize(std::max<size_t>(model.size(), at + bytes.size()));
        model.replace(at, bytes.size(), bytes);
        break;
      }
      case 2:
        if (!random.Chance(1, 8)) break;  // rare, or the file would stay small
        ASSERT_TRUE(file->Truncate(at).ok());
        model.resize(at);
        break;
      case 3:
        ASSERT_TRUE(file->Sync().ok());
        break;
      case 4:
        file = this->Open("f", Mode::kReadWrite);
        break;
      default: {
        const size_t bytes = random.Below(1'000);
        const std::string want = at < model.size() ? model.substr(at, bytes) : "";
        ASSERT_EQ(ReadRange(*file, at, bytes), want);
      }
    }
    ASSERT_EQ(*file->Size(), model.size());
  }
  EXPECT_TRUE(this->Load("f") == model);
}

// Goal: names agree with a map after any sequence of creations, renames and removals.
// Method: eight names, so that most operations meet one another; a failure prints its seed.
TYPED_TEST(FileSystemTest, NamesAgreeWithModel) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  std::map<std::string, std::string> model;
  const auto draw_name = [&] { return fmt::format("n{}", random.Below(8)); };

  for (int step = 0; step < 1'000; ++step) {
    const std::string name = draw_name(), other = draw_name();
    const bool exists = model.contains(name);
    switch (random.Below(4)) {
      case 0: {
        const std::string bytes = std::to_string(step);
        this->Store(name, bytes);
        model[name] = bytes;
        break;
      }
      case 1: {
        const Status status = this->files().Rename(this->Path(name), this->Path(other));
        ASSERT_EQ(status.ok(), exists);
        if (!exists || name == other) break;
        model[other] = model[name];
        model.erase(name);
        break;
      }
      case 2:
        ASSERT_EQ(this->files().Remove(this->Path(name)).ok(), exists);
        model.erase(name);
        break;
      default:
        ASSERT_TRUE(this->files().SyncDirectory(this->world_.directory).ok());
    }
    const auto names = this->files().List(this->world_.directory);
    ASSERT_TRUE(names);
    ASSERT_TRUE(std::ranges::equal(*names, model, {}, {}, [](const auto& e) { return e.first; }));
  }
  for (const auto& [name, bytes] : model) EXPECT_EQ(this->Load(name), bytes);
}

TYPED_TEST(FileSystemTest, ModesSayWhatHappensToTheFile) {
  EXPECT_EQ(ErrnoOf(this->files().Open(this->Path("f"), Mode::kRead)), ENOENT);
  ASSERT_TRUE(this->Open("f", Mode::kReadWrite)->Append("abc").ok());
  ASSERT_TRUE(this->Open("f", Mode::kReadWrite)->Append("def").ok());
  EXPECT_EQ(this->Load("f"), "abcdef");
  EXPECT_EQ(ReadRange(*this->Open("f", Mode::kRead), 0, 100), "abcdef");
  EXPECT_EQ(ErrnoOf(this->Open("f", Mode::kRead)->Append("no")), EBADF);
  EXPECT_EQ(*this->Open("f", Mode::kCreate)->Size(), 0);
  EXPECT_EQ(this->Load("f"), "");
}

TYPED_TEST(FileSystemTest, ReadAllReadsAnySize) {
  for (const size_t size : {0, 1, 2, 4'095, 4'096, 4'097, 1'000'000}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 >> 3);
    this->Store("f", bytes);
    EXPECT_TRUE(this->Load("f") == bytes) << size;
  }
  EXPECT_EQ(ErrnoOf(this->files().ReadAll(this->Path("absent"))), ENOENT);
}

TYPED_TEST(FileSystemTest, OpenFileOutlivesItsName) {
  const std::unique_ptr<File> file = this->Open("f", Mode::kCreate);
  ASSERT_TRUE(file->Append("one").ok());
  ASSERT_TRUE(this->files().Rename(this->Path("f"), this->Path("g")).ok());
  ASSERT_TRUE(file->Append("two").ok());
  EXPECT_EQ(this->Load("g"), "onetwo");
  ASSERT_TRUE(this->files().Remove(this->Path("g")).ok());
  this->Store("g", "other");
  EXPECT_EQ(ReadRange(*file, 0, 100), "onetwo");
  EXPECT_EQ(this->Load("g"), "other");
}

TYPED_TEST(FileSystemTest, DirectoriesNest) {
  FileSystem& files = this->files();
  ASSERT_TRUE(files.CreateDirectory(this->Path("d")).ok());
  ASSERT_TRUE(files.CreateDirectory(this->Path("d")).ok());  // it exists already
  ASSERT_TRUE(files.CreateDirectory(this->Path("d/e")).ok());
  this->Store("d/f", "x");
  this->Store("d-not", "y");  // sorts between "d" and "d/", but is not in the directory
  EXPECT_EQ(*files.List(this->Path("d")), (std::vector<std::string>{"e", "f"}));
  EXPECT_TRUE(files.List(this->Path("d/e"))->empty());
  EXPECT_TRUE(files.SyncDirectory(this->Path("d")).ok());
  ASSERT_TRUE(files.Rename(this->Path("d/f"), this->Path("d/e/f")).ok());
  EXPECT_EQ(this->Load("d/e/f"), "x");

  EXPECT_EQ(ErrnoOf(files.Remove(this->Path("d"))), ENOTEMPTY);
  ASSERT_TRUE(files.Remove(this->Path("d/e/f")).ok());
  ASSERT_TRUE(files.Remove(this->Path("d/e")).ok());
  ASSERT_TRUE(files.Remove(this->Path("d")).ok());
  EXPECT_EQ(ErrnoOf(files.List(this->Path("d"))), ENOENT);
}

// Goal: a lock is of the file and not of its name, so a file of the same name made later has its
// own; a lock of a directory stays whatever becomes of the files in it.
TYPED_TEST(FileSystemTest, Locks) {
  FileSystem& files = this->files();
  ASSERT_TRUE(files.CreateDirectory(this->Path("d")).ok());
  auto file = files.Lock(this->Path("d/lock"));
  auto directory = files.Lock(this->Path("d"));
  ASSERT_TRUE(file && directory);
  EXPECT_EQ(files.Lock(this->Path("d/lock")).error().code(), Code::kUnavailable);
  EXPECT_EQ(files.Lock(this->Path("d")).error().code(), Code::kUnavailable);
  ASSERT_TRUE(files.Remove(this->Path("d/lock")).ok());
  EXPECT_TRUE(files.Lock(this->Path("d/lock")));
  EXPECT_EQ(files.Lock(this->Path("d")).error().code(), Code::kUnavailable);
  directory->reset();
  EXPECT_TRUE(files.Lock(this->Path("d")));
  EXPECT_EQ(ErrnoOf(files.Lock(this->Path("no/f"))), ENOENT);
}

TYPED_TEST(FileSystemTest, ErrorsCarryTheErrno) {
  FileSystem& files = this->files();
  this->Store("f", "x");
  ASSERT_TRUE(files.CreateDirectory(this->Path("d")).ok());
  for (const Mode mode : {Mode::kRead, Mode::kReadWrite, Mode::kCreate}) {
    EXPECT_EQ(files.Open(this->Path("d"), mode).error().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(ErrnoOf(files.Open(this->Path("no/f"), Mode::kCreate)), ENOENT);
  EXPECT_EQ(ErrnoOf(files.CreateDirectory(this->Path("f"))), EEXIST);
  EXPECT_EQ(ErrnoOf(files.CreateDirectory(this->Path("no/d"))), ENOENT);
  EXPECT_EQ(ErrnoOf(files.Rename(this->Path("no"), this->Path("g"))), ENOENT);
  EXPECT_EQ(ErrnoOf(files.Rename(this->Path("f"), this->Path("no/g"))), ENOENT);
  EXPECT_EQ(ErrnoOf(files.Rename(this->Path("f"), this->Path("d"))), EISDIR);
  EXPECT_EQ(ErrnoOf(files.Remove(this->Path("no"))), ENOENT);
  EXPECT_EQ(ErrnoOf(files.List(this->Path("no"))), ENOENT);
  EXPECT_EQ(ErrnoOf(files.List(this->Path("f"))), ENOTDIR);
  EXPECT_EQ(ErrnoOf(files.SyncDirectory(this->Path("no"))), ENOENT);
}

}  // namespace
}  // namespace skep
