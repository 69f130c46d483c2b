// Tests that a connection's commands behave as if run one after another, however they were batched.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/seeds.h"
#include "tests/simulation/pipeline_maker.h"
#include "tests/simulation/sim_cluster.h"

namespace skep::simulation {
namespace {

// Sends one pipeline after the other, each in one write, and compares every reply.
class Piper {
 public:
  Piper(uint32_t id, int protocol, SimCluster& cluster, uint32_t pipelines, size_t commands_max)
      : client_(cluster.NewClient(protocol)),
        random_(cluster.sim().random()),
        maker_(id, protocol, random_),
        left_(pipelines),
        commands_max_(commands_max) {
    Send(maker_.First());
  }

  bool done() const { return failed_ || (left_ == 0 && at_ == pipeline_.expected.size()); }
  size_t compared() const { return compared_; }

  bool Step() {
    if (done()) return false;
    if (at_ == pipeline_.expected.size()) {
      --left_;
      Send(maker_.Next(1 + random_.Below(commands_max_)));
    }
    const bool moved = client_->Move();
    EXPECT_FALSE(client_->closed());
    failed_ = client_->closed() || !CompareAll();
    return moved;
  }

 private:
  void Send(Pipeline pipeline) {
    pipeline_ = std::move(pipeline);
    at_ = 0;
    client_->SendBytes(pipeline_.bytes);
  }

  bool CompareAll() {
    while (const auto reply = client_->Take()) {
      const Expected& expected = pipeline_.expected.at(at_);
      if (!expected.Matches(*reply)) {
        ADD_FAILURE() << "command " << at_ << ": "
                      << testing::PrintToString(pipeline_.commands[at_]).substr(0, 500)
                      << "\nwas answered " << Describe(*reply).substr(0, 500) << "\ninstead of "
                      << Describe(expected.reply).substr(0, 500) << "\nafter\n"
                      << Before();
        return false;
      }
      maker_.Learn(expected, *reply);
      ++at_;
      ++compared_;
    }
    return true;
  }

  // Returns the commands just before, for the message of a failure.
  std::string Before() const {
    std::string text;
    for (size_t i = at_ < 8 ? 0 : at_ - 8; i < at_; ++i) {
      text += testing::PrintToString(pipeline_.commands[i]).substr(0, 200) + "\n";
    }
    return text;
  }

  std::unique_ptr<SimClient> client_;
  Random& random_;
  PipelineMaker maker_;
  uint32_t left_;
  const size_t commands_max_;
  Pipeline pipeline_;
  size_t at_ = 0;  // number of the pipeline's replies compared so far
  size_t compared_ = 0;
  bool failed_ = false;
};

// Runs some pipers; returns how many replies were compared.
size_t RunPipers(uint64_t seed, uint32_t pipelines, size_t commands_max) {
  SeededRandom random(seed);
  ClusterOptions options;
  options.lagging = random.Chance(1, 2);
  options.durable = !options.lagging && random.Chance(1, 2);
  options.config = "workers = " + std::to_string(1 + random.Below(2)) + "\n";
  options.world.network = RandomNetwork(seed);
  SimCluster cluster(seed, options);
  std::vector<std::unique_ptr<Piper>> pipers;
  for (uint32_t i = 0; i < 1 + seed % 4; ++i) {
    const int protocol = 2 + static_cast<int>(random.Below(2));
    pipers.push_back(std::make_unique<Piper>(i, protocol, cluster, pipelines, commands_max));
    Piper* const piper = pipers.back().get();
    cluster.sim().AddActor("piper", [piper] { return piper->Step(); });
  }
  const auto done = [&] {
    return std::ranges::all_of(pipers, [](const auto& piper) { return piper->done(); });
  };
  EXPECT_EQ(cluster.RunUntil(done), Simulation::End::kDone);
  size_t compared = 0;
  for (const auto& piper : pipers) compared += piper->compared();
  return compared;
}

// Goal: every reply is that of a sequential store.
// Method: each client has keys of its own and a std::map as its oracle; all send long pipelines of
// all commands, in one write each, over networks that cut them anywhere.
TEST(Pipelines, AnswerAsIfRunOneAfterAnother) {
  size_t compared = 0;
  for (const uint64_t seed : Seeds(40)) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    compared += RunPipers(seed, 3, 200);
    ASSERT_FALSE(HasFailure());
  }
  std::printf("%zu replies compared\n", compared);
}

// Goal: this holds also for pipelines that fill more than one batch and one read buffer.
TEST(Pipelines, LongerThanABatch) {
  for (const uint64_t seed : Seeds(1)) {
    SCOPED_TRACE(testing::Message() << "SKEP_SIM_SEED=" << seed);
    RunPipers(seed, 1, 5'000);
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace skep::simulation
