// Tests reads of leaves that writes interrupt: over the simulated fabric, whose reads are torn, in
// any order and late, in one thread and from a seed. Between any two parts of a read keys are
// written and deleted, leaves split and join, ranges are detached, and memory is freed and used
// again.
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "netindex/leaves/leaf_reader.h"
#include "netindex/leaves/shared_tree_test.h"
#include "rma/testing/sim_fabric.h"
#include "sim/sim_clock.h"
#include "sim/trace.h"

namespace skep::leaves {
namespace {

// What is written, and how much of it meanwhile.
struct Mix {
  uint64_t keys = 400;
  uint64_t writes_max = 3;      // between two parts of a read
  uint64_t range_one_in = 400;  // of the writes; 0: none
  bool mixed_values = true;     // lengths differ
  uint64_t cut_one_in = 0;
  bool of_users = false;  // the keys are FieldOfUser
  uint32_t questions_max = 4;
};

class InterruptedReads {
 public:
  InterruptedReads(uint64_t seed, const Mix& mix)
      : mix_(mix), rng_(seed), fabric_(seed, clock_, trace_, {.cut_one_in = mix.cut_one_in}) {
    fabric_.set_waiter([this](uint64_t until_ns, const std::function<bool()>& is_ready) {
      while (!is_ready() && clock_.MonotonicNs() < until_ns) {
        if (!clock_.AdvanceToReminder()) clock_.Advance(1'000);
        fabric_.RunDue();
        if (is_reading_) Write();
      }
    });
    target_ = std::move(*fabric_.Open(tree_.Exposed("sim:server")));
    endpoint_ = std::move(*fabric_.Open({}));
    for (uint64_t i = 0; i < 2 * mix.keys; ++i) Write();
    Connect();
  }

  // Reads some keys, and checks the answers; whoever fails knows the seed.
  void Round() {
    std::vector<LeafQuestion> questions;
    std::vector<std::string> keys;
    const uint64_t count = 1 + rng_() % mix_.questions_max;
    for (uint64_t i = 0; i < count; ++i) keys.push_back(KeyOf(rng_() % mix_.keys));
    for (const std::string& key : keys) questions.push_back({.key = key, .link = LinkOf(key)});
    const uint64_t begin = now_;
    is_reading_ = true;
    const bool is_there = reader_->Read(questions);
    is_reading_ = false;
    for (const LeafQuestion& question : questions) Check(question, begin);
    if (!is_there) Connect();
  }

  LeafReaderStatistics statistics() const { return reader_->statistics(); }
  uint64_t values() const { return values_; }
  uint64_t changed() const { return changed_; }
  uint64_t cuts() const { return cuts_; }

 private:
  struct Change {
    uint64_t at;
    std::optional<std::string> value;
  };

  std::string KeyOf(uint64_t number) const {
    return mix_.of_users ? FieldOfUser(number) : fmt::format("k{:05}", number);
  }

  // A link that was right once: a client learns of changes late.
  uint64_t LinkOf(const std::string& key) {
    uint64_t& link = links_[key];
    if (link == 0 || rng_() % 2 == 0) link = tree_.LinkOf(key);
    return link;
  }

  void Connect() {
    reader_.reset();
    ++cuts_;
    const rma::PeerId peer = *endpoint_->Connect("sim:server", 1'000'000);
    for (bool has_joined = false; !has_joined;) {
      target_->Poll(0);
      for (const rma::Event& event : endpoint_->Poll(0)) {
        if (event.peer != peer) continue;
        has_joined |= event.kind == rma::Event::Kind::kJoined;
        if (event.kind == rma::Event::Kind::kLeft) return Connect();
      }
      clock_.Advance(1'000);
    }
    reader_.emplace(*endpoint_, peer, 1'000'000);
    if (!reader_->Open()) Connect();
  }

  void Write() {
    for (uint64_t i = rng_() % (mix_.writes_max + 1); i > 0; --i) WriteOne();
    if (rng_() % 8 == 0) tree_.engine().Maintain(1);
  }
  void WriteOne() {
    if (mix_.range_one_in != 0 && rng_() % mix_.range_one_in == 0) return DeleteRange();
    const std::string key = KeyOf(rng_() % mix_.keys);
    std::optional<std::string> value;
    // Times of growing, and times of shrinking.
    if (rng_() % 4 != (now_ / 2000 % 2 == 0 ? 0 : 1) || rng_() % 4 == 0) {
      value = fmt::format("{}-{:08}", key, now_);
      if (mix_.mixed_values) value->append(rng_() % 12, '+');
    }
    history_[key].push_back({++now_, value});
    value ? tree_.Put(key, *value) : tree_.Delete(key);
  }
  void DeleteRange() {
    const uint64_t from = rng_() % mix_.keys;
    const uint64_t to = from + rng_() % mix_.keys;
    ++now_;
    for (uint64_t i = from; i < std::min(to, mix_.keys); ++i) {
      history_[KeyOf(i)].push_back({now_, std::nullopt});
    }
    tree_.DeleteRange(Range::Between(KeyOf(from), KeyOf(to)));
  }

  // The answer must be what the key had at a moment of the read.
  void Check(const LeafQuestion& question, uint64_t begin) {
    if (question.finding == Finding::kAsk) return;
    std::optional<std::string> found;
    if (question.finding == Finding::kValue) found = question.value;
    values_ += found.has_value();
    std::set<std::optional<std::string>> possible;
    const auto& changes = history_[std::string(question.key)];
    std::optional<std::string> last;
    for (const Change& change : changes) {
      if (change.at > begin) possible.insert(last);
      last = change.value;
    }
    possible.insert(last);
    changed_ += possible.size() > 1;
    ASSERT_TRUE(possible.contains(found))
        << question.key << " has " << found.value_or("nothing") << " of " << possible.size()
        << ", the last of them " << last.value_or("nothing");
  }

  const Mix mix_;
  std::mt19937_64 rng_;
  SimClock clock_;
  Trace trace_;
  rma::SimFabric fabric_;
  SharedTree tree_;
  std::unique_ptr<rma::Endpoint> target_;
  std::unique_ptr<rma::Endpoint> endpoint_;
  std::optional<LeafReader> reader_;
  std::map<std::string, std::vector<Change>> history_;
  std::map<std::string, uint64_t> links_;
  uint64_t now_ = 0;  // counts changes
  bool is_reading_ = false;
  uint64_t values_ = 0;   // answers with one
  uint64_t changed_ = 0;  // answers to a read in which the key changed
  uint64_t cuts_ = 0;
};

// Goal: an answer is what the key had at an instant of the read, whatever is written meanwhile:
// values of many lengths or of one, few keys or many, deletes of ranges, connections that are cut.
TEST(LeafReaderSim, AnswersWhatTheKeyHadMeanwhile) {
  const Mix mixes[] = {{},
                       {.keys = 60, .range_one_in = 0, .mixed_values = false},
                       {.keys = 2000, .writes_max = 12, .mixed_values = false},
                       {.keys = 200, .range_one_in = 60, .mixed_values = false},
                       {.keys = 300, .writes_max = 1, .cut_one_in = 300},
                       {.keys = 400, .mixed_values = false, .of_users = true}};
  const uint64_t seed = std::random_device{}();
  for (const Mix& mix : mixes) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << mix.keys << " keys");
    InterruptedReads reads(seed, mix);
    for (int i = 0; i < 600 && !testing::Test::HasFatalFailure(); ++i) reads.Round();
    const LeafReaderStatistics s = reads.statistics();
    std::cout << "seed " << seed << ": " << s.answered << " answered, " << s.asked << " asked, "
              << s.tries << " tries; " << reads.values() << " values, " << reads.changed()
              << " changed meanwhile, " << reads.cuts() << " connections\n";
    EXPECT_GT(reads.values(), 10u);
    EXPECT_GT(reads.changed(), 5u);
    if (mix.cut_one_in != 0) {
      EXPECT_GT(reads.cuts(), 3u);
    }
  }
}

}  // namespace
}  // namespace skep::leaves
