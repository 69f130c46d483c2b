// Reads of leaves between whose round trips something happens that schedules hardly ever bring
// about.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "base/temporary_directory_test.h"
#include "netindex/leaves/leaf_reader.h"
#include "netindex/leaves/shared_tree_test.h"
#include "rma/mem_fabric.h"
#include "rma/testing/passing_endpoint.h"

namespace skep::leaves {
namespace {

constexpr uint32_t kWordAt = kFrontBytes + offsetof(btree::NodeHeader, word);
constexpr uint32_t kVersionAt = kFrontBytes + offsetof(btree::NodeHeader, version);

// An endpoint whose reads a test can precede and change.
class MeddledEndpoint final : public rma::PassingEndpoint {
 public:
  using PassingEndpoint::PassingEndpoint;

  // Called before the reads of each Post are done.
  std::function<void(std::span<const rma::Operation>)> before;
  // Called when they are done, before the reader knows.
  std::function<void(std::span<const rma::Operation>)> after;

  void Post(rma::PeerId peer, uint64_t token, std::span<const rma::Operation> operations) override {
    posted_.assign(operations.begin(), operations.end());
    if (before) before(posted_);
    PassingEndpoint::Post(peer, token, posted_);
  }
  std::span<const rma::Event> Poll(int timeout_ms) override {
    const auto events = PassingEndpoint::Poll(timeout_ms);
    for (const rma::Event& event : events) {
      if (event.kind == rma::Event::Kind::kDone && after) after(posted_);
    }
    return events;
  }

 private:
  std::vector<rma::Operation> posted_;
};

bool IsOfArena(const rma::Operation& operation) { return operation.region >= kFirstArenaRegion; }

class LeafReaderRaces : public testing::Test {
 protected:
  LeafReaderRaces() {
    const Address address = "unix:" + directory_.path() + "/leaves";
    target_ = std::move(*fabric_.Open(tree_.Exposed(address)));
    const rma::PeerId peer = *endpoint_.Connect(address, 10'000);
    for (bool has_joined = false; !has_joined;) {
      target_->Poll(0);
      for (const rma::Event& event : endpoint_.Poll(0)) {
        has_joined |= event.kind == rma::Event::Kind::kJoined;
      }
    }
    reader_.emplace(endpoint_, peer, 10'000);
    EXPECT_TRUE(reader_->Open());
    for (int i = 0; i < 20; ++i) tree_.Put(fmt::format("key{:02}", i), "0000");
  }
  LeafQuestion Read(LeafQuestion question) {
    EXPECT_TRUE(reader_->Read({&question, 1}));
    return question;
  }

  TemporaryDirectory directory_;
  rma::MemFabric fabric_;
  SharedTree tree_;
  std::unique_ptr<rma::Endpoint> target_;
  MeddledEndpoint endpoint_{std::move(*fabric_.Open({}))};
  std::optional<LeafReader> reader_;
};

// Goal: what was read of a buffer does not count if its LID has another one by now, or if it holds
// another node, though nothing in it shows that.
TEST_F(LeafReaderRaces, WhatIsNoLongerTheLeafIsReadAnew) {
  const LeafQuestion question = tree_.Get("key05");
  Read(question);
  for (const bool is_row : {true, false}) {
    const uint64_t before = reader_->statistics().tries;
    bool is_first = true;
    // The check reads the version, then the row.
    endpoint_.after = [&](std::span<const rma::Operation> reads) {
      if (reads.size() < 2 || reads[1].region != kRowRegion || !std::exchange(is_first, false)) {
        return;
      }
      ++*static_cast<uint64_t*>(reads[is_row ? 1 : 0].local);
    };
    EXPECT_EQ(Read(question).value, "0000");
    EXPECT_EQ(reader_->statistics().tries, before + 2) << is_row;
  }
}

// Goal: a log item that the leaf's word counts is not missed, whichever of the other lines that
// were read with the word came from before it was written (the third step of the argument in
// leaf_reader.h).
TEST_F(LeafReaderRaces, OldTagsOfTheLogAreReadAgain) {
  const LeafQuestion question = tree_.Get("key05");
  std::vector<std::byte> old(kLogPiece.bytes());
  const auto is_head = [&](const rma::Operation& operation) {
    return IsOfArena(operation) && operation.bytes > old.size();
  };
  constexpr uint32_t kLines = (kLogPiece.end + 63) / 64;
  int changed = 0;
  int answered = 0;
  for (uint32_t lines = 0; lines < 1u << kLines; ++lines) {
    endpoint_.after = [&](std::span<const rma::Operation> reads) {
      if (is_head(reads[0])) std::memcpy(old.data(), reads[0].local, old.size());
    };
    Read(question);
    const std::string value = fmt::format("{:04}", lines + 1);
    tree_.Put("key05", value);
    endpoint_.after = [&](std::span<const rma::Operation> reads) {
      auto* const head = static_cast<std::byte*>(reads[0].local);
      if (!is_head(reads[0]) || std::memcmp(head + kVersionAt, old.data() + kVersionAt, 8) != 0) {
        return;
      }
      ++changed;
      std::memcpy(old.data() + kWordAt, head + kWordAt, sizeof(uint64_t));
      for (uint32_t at = 0; at < old.size(); ++at) {
        if ((lines >> at / 64 & 1) != 0) head[at] = old[at];
      }
    };
    const LeafQuestion found = Read(question);
    if (found.finding == Finding::kAsk) continue;
    ++answered;
    EXPECT_EQ(found.value, value) << lines;
  }
  EXPECT_GT(changed, 0);
  EXPECT_GT(answered, 0);
}

// Goal: what was read while a range was detached does not count.
TEST_F(LeafReaderRaces, ADetachmentMeanwhileCostsATry) {
  const LeafQuestion question = tree_.Get("key05");
  Read(question);
  const uint64_t before = reader_->statistics().tries;
  Read(question);
  ASSERT_EQ(reader_->statistics().tries, before + 1);
  bool is_first = true;
  endpoint_.before = [&](std::span<const rma::Operation> reads) {
    if (IsOfArena(reads[0]) && std::exchange(is_first, false)) {
      tree_.board().detached += LeafBoard::kDetach;
    }
  };
  EXPECT_EQ(Read(question).value, "0000");
  EXPECT_EQ(reader_->statistics().tries, before + 3);
}

}  // namespace
}  // namespace skep::leaves
