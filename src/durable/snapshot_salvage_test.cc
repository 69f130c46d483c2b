#include "durable/snapshot_salvage.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <random>
#include <span>

#include "durable/snapshot_test.h"
#include "sim/sim_file.h"

namespace skep::durable {
namespace {

struct Extent {
  uint64_t offset;
  uint64_t bytes;
  uint64_t end() const { return offset + bytes; }
};

struct Salvaged {
  SnapshotSalvage about;
  std::vector<TestItem> items;

  bool Lost(uint64_t offset) const {
    return std::ranges::any_of(about.lost, [&](const SnapshotSalvage::Loss& loss) {
      return offset >= loss.offset && offset < loss.offset + loss.bytes;
    });
  }
  uint64_t LostBytes() const {
    uint64_t bytes = 0;
    for (const SnapshotSalvage::Loss& loss : about.lost) bytes += loss.bytes;
    return bytes;
  }
};

class Salvage : public testing::Test {
 protected:
  Salvage() {
    EXPECT_TRUE(WriteSnapshot(files_, "file", SmallSnapshot()).ok());
    bytes_ = *files_.ReadAll("file");
    const auto reader = SnapshotReader::Open(files_, "file");
    for (size_t i = 0; i < (*reader)->block_count(); ++i) {
      blocks_.push_back({(*reader)->block(i).offset, (*reader)->block(i).bytes});
    }
    EXPECT_EQ(blocks_.size(), 3u);
  }

  Salvaged Run(std::string_view bytes) {
    StoreBytes(files_, "file", bytes);
    Salvaged salvaged;
    auto about = SalvageBlocks(files_, "file", [&](uint32_t keyspace, const SnapshotItem& item) {
      salvaged.items.push_back(
          {keyspace, std::string(item.key), std::string(item.value), item.deadline_ms, item.type});
      return Status();
    });
    EXPECT_TRUE(about) << about.error().ToString();
    if (about) salvaged.about = std::move(*about);
    EXPECT_EQ(salvaged.about.items, salvaged.items.size());
    return salvaged;
  }
  // The items of the small snapshot but for those of one of its blocks; 3: all.
  std::vector<TestItem> ItemsWithout(size_t block) {
    std::vector<TestItem> items = SmallSnapshot().items;
    if (block == 0) items.erase(items.begin(), items.begin() + 2);
    if (block == 1) items.erase(items.begin() + 2);
    if (block == 2) items.erase(items.begin() + 3);
    return items;
  }

  Trace trace_;
  SimFileSystem files_{std::random_device{}(), trace_};
  std::string bytes_;
  std::vector<Extent> blocks_;
};

TEST_F(Salvage, NothingIsLostOfASoundFile) {
  const Salvaged salvaged = Run(bytes_);
  EXPECT_TRUE(salvaged.about.has_header && salvaged.about.has_footer);
  EXPECT_EQ(salvaged.about.created_ms, SmallSnapshot().created_ms);
  EXPECT_TRUE(salvaged.about.keyspaces == SmallSnapshot().keyspaces);
  EXPECT_EQ(salvaged.about.blocks, 3u);
  EXPECT_TRUE(salvaged.about.lost.empty());
  EXPECT_TRUE(salvaged.items == SmallSnapshot().items);
}

// Goal: one wrong byte costs the part it is in, no more, and that is what is reported.
TEST_F(Salvage, OneWrongByteCostsOnePart) {
  for (size_t at = 0; at < bytes_.size(); ++at) {
    SCOPED_TRACE(testing::Message() << "byte " << at);
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(~damaged[at]);
    const Salvaged salvaged = Run(damaged);
    const auto hit = std::ranges::find_if(
        blocks_, [&](const Extent& block) { return at >= block.offset && at < block.end(); });
    EXPECT_TRUE(salvaged.items == ItemsWithout(static_cast<size_t>(hit - blocks_.begin())));
    EXPECT_EQ(salvaged.about.has_header, at >= sizeof(SnapshotHeader));
    EXPECT_EQ(salvaged.about.has_footer, at < blocks_[2].end());
    ASSERT_EQ(salvaged.about.lost.size(), 1u);
    EXPECT_TRUE(salvaged.Lost(at));
    const uint64_t part = hit != blocks_.end()          ? hit->bytes
                          : at < sizeof(SnapshotHeader) ? sizeof(SnapshotHeader)
                                                        : bytes_.size() - blocks_[2].end();
    EXPECT_EQ(salvaged.LostBytes(), part);
  }
}

// Goal: one wrong byte costs one part, also where the footer is damaged, too.
TEST_F(Salvage, WalksWithoutAFooter) {
  bytes_.back() = 'x';
  for (size_t at = 0; at < blocks_[2].end(); ++at) {
    SCOPED_TRACE(testing::Message() << "byte " << at);
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(~damaged[at]);
    const Salvaged salvaged = Run(damaged);
    const auto hit = std::ranges::find_if(
        blocks_, [&](const Extent& block) { return at >= block.offset && at < block.end(); });
    EXPECT_TRUE(salvaged.items == ItemsWithout(static_cast<size_t>(hit - blocks_.begin())));
    EXPECT_FALSE(salvaged.about.has_footer);
    EXPECT_TRUE(salvaged.Lost(at));
    EXPECT_TRUE(salvaged.Lost(blocks_[2].end()));
  }
}

TEST_F(Salvage, WholeBlocksOfAFileThatIsCutOff) {
  const std::vector<TestItem> all = SmallSnapshot().items;
  for (size_t left = 0; left < bytes_.size(); ++left) {
    SCOPED_TRACE(testing::Message() << left << " bytes left");
    const Salvaged salvaged = Run(bytes_.substr(0, left));
    size_t items = 0;
    if (left >= blocks_[0].end()) items = 2;
    if (left >= blocks_[1].end()) items = 3;
    if (left >= blocks_[2].end()) items = 4;
    ASSERT_EQ(salvaged.items.size(), items);
    EXPECT_TRUE(std::ranges::equal(salvaged.items, std::span(all).first(items)));
    uint64_t good = left >= sizeof(SnapshotHeader) ? sizeof(SnapshotHeader) : 0;
    for (const Extent& block : blocks_) good += left >= block.end() ? block.bytes : 0;
    EXPECT_EQ(salvaged.LostBytes(), left - good);
  }
}

// Goal: the search for the next block finds it beyond the bytes it looks at in one piece, and
// wherever they end.
TEST_F(Salvage, SearchesAcrossItsWindows) {
  const size_t window = 256 * 1024;
  for (const size_t gap :
       {window - 40, window - 3, window - 2, window - 1, window, window + 1, 2 * window - 5}) {
    std::mt19937 rng(static_cast<unsigned>(gap));
    std::string noise(gap, '\0');
    for (char& c : noise) c = static_cast<char>(rng());
    const TestSnapshot snapshot = Counted(
        {.keyspaces = {{.index = 0}, {.index = 1}}, .items = {{0, "a", noise}, {1, "b", "2"}}});
    ASSERT_TRUE(WriteSnapshot(files_, "file", snapshot).ok());
    std::string bytes = *files_.ReadAll("file");
    bytes[sizeof(SnapshotHeader)] = 'x';
    bytes.pop_back();
    const Salvaged salvaged = Run(bytes);
    ASSERT_EQ(salvaged.items.size(), 1u) << gap;
    EXPECT_EQ(salvaged.items[0].key, "b");
  }
}

// Goal: blocks of a snapshot that lies in a damaged block are not taken for blocks of the file.
TEST_F(Salvage, NoBlocksOfAFileInTheFile) {
  const Salvaged salvaged = Run("some other bytes, or a header" + bytes_);
  EXPECT_TRUE(salvaged.items.empty());
  ASSERT_EQ(salvaged.about.lost.size(), 1u);
  EXPECT_EQ(salvaged.about.lost[0].bytes, bytes_.size() + 29);
}

// Goal: a block of another file of the same shape is lost, not taken for this file's.
TEST_F(Salvage, NoBlocksOfAnotherFile) {
  TestSnapshot other = SmallSnapshot();
  other.items[2].deadline_ms = 2;
  ASSERT_TRUE(WriteSnapshot(files_, "other", other).ok());
  const Extent block = blocks_[1];
  bytes_.replace(block.offset, block.bytes,
                 files_.ReadAll("other")->substr(block.offset, block.bytes));
  const Salvaged salvaged = Run(bytes_);
  EXPECT_TRUE(salvaged.items == ItemsWithout(1));
  EXPECT_TRUE(salvaged.Lost(block.offset));
  EXPECT_EQ(salvaged.LostBytes(), block.bytes);
}

TEST_F(Salvage, Errors) {
  const auto accept = [](uint32_t, const SnapshotItem&) { return Status(); };
  const Status full(Code::kOutOfMemory, "full", 7);
  EXPECT_EQ(
      SalvageBlocks(files_, "file", [&](uint32_t, const SnapshotItem&) { return full; }).error(),
      full);
  EXPECT_EQ(SalvageBlocks(files_, "none", accept).error(), Status(Code::kIo, "", ENOENT));
  files_.set_options({.short_reads_ppm = 0});
  for (uint64_t successes = 0; successes < 9; ++successes) {
    files_.FailOnce(SimFileSystem::Operation::kRead, successes, EIO);
    EXPECT_EQ(SalvageBlocks(files_, "file", accept).error(), Status(Code::kIo, "", EIO));
  }
  EXPECT_TRUE(SalvageBlocks(files_, "file", accept));
  bytes_[offsetof(SnapshotHeader, version)] = kSnapshotVersion + 1;
  Reseal(bytes_);
  StoreBytes(files_, "file", bytes_);
  EXPECT_EQ(SalvageBlocks(files_, "file", accept).error(),
            Status(Code::kNotSupported, "", kSnapshotVersion + 1));
}

}  // namespace
}  // namespace skep::durable
