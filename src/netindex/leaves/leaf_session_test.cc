// Tests sessions with a server that shares its leaves: that they answer, and that a server which
// has stopped, has been replaced or is another one is not believed.
#include "netindex/leaves/leaf_session.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <thread>

#include "base/temporary_directory_test.h"
#include "netindex/leaves/leaf_share.h"
#include "netindex/leaves/share_place.h"
#include "netindex/leaves/shared_tree_test.h"
#include "rma/fabrics.h"

namespace skep::leaves {
namespace {

constexpr uint64_t kInstance = 77;

// Time that passes when the test says so, for the pauses between connections.
class SteppedClock final : public Clock {
 public:
  uint64_t MonotonicNs() override { return now_ms_ * 1'000'000; }
  uint64_t WallUs() override { return now_ms_ * 1'000; }
  void Advance(uint64_t ms) { now_ms_ += ms; }

 private:
  uint64_t now_ms_ = 1;
};

class LeafSessionTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    place_ = std::string(GetParam()) == "mem" ? "mem:unix:" + directory_.path() + "/leaves"
                                              : "tcp:127.0.0.1:0";
    tree_.Put("apple", "1");
  }
  // Shares the tree, at the same place each time.
  void Share(uint64_t instance = kInstance) {
    std::string problem;
    auto share = LeafShare::Open(place_, tree_.engine(), instance, &problem);
    ASSERT_TRUE(share.has_value()) << problem;
    share_ = std::move(*share);
    place_ = share_->place();
  }
  void Connect() {
    const auto place = ParseSharePlace(place_);
    std::string problem;
    fabric_ = *rma::MakeFabric(place->fabric, &problem);
    session_ = *LeafSession::Make(*fabric_, place->address, 10'000, clock_);
    ASSERT_TRUE(session_->Connect().ok());
  }
  Finding Ask(uint64_t instance = kInstance) {
    LeafQuestion question = tree_.Get("apple");
    session_->Read({&question, 1}, instance);
    if (question.finding == Finding::kValue) {
      EXPECT_EQ(question.value, "1");
    }
    return question.finding;
  }

  TemporaryDirectory directory_;
  std::string place_;
  SteppedClock clock_;
  SharedTree tree_;
  std::unique_ptr<LeafShare> share_;
  std::unique_ptr<rma::Fabric> fabric_;
  std::unique_ptr<LeafSession> session_;
};

INSTANTIATE_TEST_SUITE_P(Fabrics, LeafSessionTest, testing::Values("mem", "tcp"));

// Goal: a session answers, and the share knows its peer.
TEST_P(LeafSessionTest, Answers) {
  ASSERT_NO_FATAL_FAILURE(Share());
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(Ask(), Finding::kValue);
  while (share_->peers() != 1) std::this_thread::yield();  // its thread counts
  EXPECT_EQ(session_->statistics().answered, 1u);
}

// Goal: the memory of a server that is not the one which calls go to is not believed.
TEST_P(LeafSessionTest, OfAnotherServerIsNotBelieved) {
  ASSERT_NO_FATAL_FAILURE(Share());
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(Ask(kInstance + 1), Finding::kAsk);
  EXPECT_EQ(Ask(kInstance), Finding::kValue);
}

// Goal: once a server has stopped to share, nothing that is still mapped is believed; when it
// shares again, the session comes back, but not before its pause is over.
TEST_P(LeafSessionTest, ComesBack) {
  ASSERT_NO_FATAL_FAILURE(Share());
  ASSERT_NO_FATAL_FAILURE(Connect());
  share_.reset();
  EXPECT_EQ(Ask(), Finding::kAsk);
  clock_.Advance(LeafSession::kPauseMs);
  EXPECT_EQ(Ask(), Finding::kAsk) << "nobody is there";
  ASSERT_NO_FATAL_FAILURE(Share());
  EXPECT_EQ(Ask(), Finding::kAsk) << "it pauses";
  clock_.Advance(LeafSession::kPauseMs);
  EXPECT_EQ(Ask(), Finding::kValue);
}

// Goal: nobody at the place, and places that are none, are errors.
TEST_P(LeafSessionTest, NeedsSomebodyThere) {
  const std::string fabric = GetParam();
  const auto place = ParseSharePlace(fabric == "mem" ? place_ : std::string("tcp:127.0.0.1:1"));
  std::string problem;
  fabric_ = *rma::MakeFabric(fabric, &problem);
  session_ = *LeafSession::Make(*fabric_, place->address, 10'000, clock_);
  EXPECT_EQ(session_->Connect().code(), Code::kUnavailable);
}

TEST(SharePlace, IsOfTwoFabrics) {
  EXPECT_EQ(ParseSharePlace("mem:unix:/run/leaves")->address, "unix:/run/leaves");
  EXPECT_EQ(ParseSharePlace("tcp:[::1]:7400")->address, "[::1]:7400");
  for (const char* const text : {"", "mem", "mem:unix:relative", "mem:127.0.0.1:1", "tcp:7400",
                                 "tcp:", "ofi:tcp:127.0.0.1:1", "unix:/run/leaves"}) {
    EXPECT_FALSE(ParseSharePlace(text).has_value()) << text;
  }
}

// Goal: a tree whose leaves cannot be read is not shared.
TEST(LeafShareTest, IsOfTreesThatCanBeRead) {
  const TemporaryDirectory directory;
  const std::string place = "mem:unix:" + directory.path() + "/leaves";
  for (const BtreeOptions& options :
       {BtreeOptions{}, BtreeOptions{.layout = NodeLayout::kPaper, .shared = true},
        BtreeOptions{.multi_version = false, .shared = true}}) {
    MemoryBudget budget{0};
    const auto engine = BtreeEngine::Make({.budget = &budget, .index = {.btree = options}});
    std::string problem;
    const auto share = LeafShare::Open(place, *engine, kInstance, &problem);
    ASSERT_FALSE(share.has_value());
    EXPECT_EQ(share.error().code(), Code::kNotSupported);
    EXPECT_FALSE(problem.empty());
  }
}

}  // namespace
}  // namespace skep::leaves
