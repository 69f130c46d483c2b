// Tests the program in the kernel against the functions on the host, packet by packet. Needs root;
// else it is skipped, where the variable CI is set it fails.
#include "netindex/switch/switch_program.h"

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <random>
#include <thread>

#include "netindex/switch/switch_frame.h"
#include "netindex/switch/testing/switch_world.h"

namespace skep::netindex {
namespace {

// The kernel runs no program on less: as XDP, as TC.
constexpr size_t kFrameBytesMin = 14, kFrameBytesMinTc = 34;

struct RunResult {
  uint32_t verdict;
  std::string frame;
};

RunResult RunOnce(const SwitchProgram& program, SwitchMode mode, const std::string& frame) {
  std::string out(512, '\0');
  LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame.data(), .data_out = out.data(),
              .data_size_in = static_cast<uint32_t>(frame.size()),
              .data_size_out = static_cast<uint32_t>(out.size()), .repeat = 1);
  if (bpf_prog_test_run_opts(program.program_fd(mode), &options) != 0) return {~0u, ""};
  out.resize(options.data_size_out);
  return {options.retval, out};
}

class SwitchProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() == 0) return;
    if (std::getenv("CI") != nullptr) FAIL() << "needs root";
    GTEST_SKIP() << "needs root, to load a program";
  }
  static std::optional<SwitchProgram> Load(const SwitchConfig& config) {
    std::string problem;
    auto loaded = SwitchProgram::Load(config, &problem);
    EXPECT_TRUE(loaded) << problem;
    if (!loaded) return std::nullopt;
    return std::move(*loaded);
  }

  const unsigned seed_ = std::random_device{}();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  std::mt19937_64 rng_{seed_};
};

// A switch with some layers, and with a fat root if that is among its duties.
TestSwitch RandomSwitch(std::mt19937_64& rng, uint16_t duties, IndexTree* tree) {
  *tree = MakeIndexTree(RandomLeaves(rng, 2, 1 + rng() % 2000), 16);
  const FatRoot root = BuildFatRoot(*tree, 1 + rng() % SWITCH_RANGES_MAX);
  const auto layers = CacheLayers(*tree, root, SWITCH_LAYERS, 1 + rng() % 50);
  TestSwitch made(duties);
  SetServers(2, made.bank.get());
  WriteRoot(*tree, root, made.bank.get());
  for (uint32_t i = 0; i < SWITCH_LAYERS; ++i) WriteLayer(*tree, layers[i], i, made.bank.get());
  return made;
}

std::string RandomFrame(std::mt19937_64& rng, uint64_t key, TestSwitch* first) {
  const uint32_t to = rng() % 3 == 0 ? ServerAt(0).address : kService;
  std::string frame = rng() % 2 == 0
                          ? GetFrame(KeyBytes(key, 1 + rng() % 16), rng() % 2 * (rng() % 200), to)
                          : ReadFrame(key, 0, to);
  if (rng() % 4 == 0) SwitchFrame(*first->config, *first->bank, &first->counters, &frame);
  if (rng() % 8 == 0) frame.append(rng() % 30, 'p');
  if (rng() % 8 == 0) frame.resize(std::max<size_t>(kFrameBytesMin, rng() % frame.size()));
  if (rng() % 4 == 0) frame[rng() % frame.size()] = static_cast<char>(rng());
  return frame;
}

// Goal: in the kernel, as XDP and as TC, a packet becomes what it becomes on the host, and the
// counters are the same: of random trees, duties, and packets, whole and damaged.
TEST_F(SwitchProgramTest, DoesAsTheHost) {
  for (const uint16_t duties :
       std::initializer_list<uint16_t>{0, SWITCH_FIRST, SWITCH_LAST, SWITCH_FIRST | SWITCH_LAST,
                                       SWITCH_FIRST | SWITCH_AS_P4, SWITCH_LAST | SWITCH_AS_P4}) {
    IndexTree tree;
    TestSwitch host = RandomSwitch(rng_, duties, &tree);
    TestSwitch first(SWITCH_FIRST);
    *first.bank = *host.bank;
    auto program = Load(*host.config);
    ASSERT_TRUE(program);
    ASSERT_TRUE(program->Install(*host.bank).ok());
    auto keys = KeysFor(tree, rng_);
    std::ranges::shuffle(keys, rng_);
    keys.resize(std::min<size_t>(keys.size(), 500));
    for (const uint64_t key : keys) {
      const std::string frame = RandomFrame(rng_, key, &first);
      std::string expected = frame;
      SwitchFrame(*host.config, *host.bank, &host.counters, &expected);
      const RunResult xdp = RunOnce(*program, SwitchMode::kGeneric, frame);
      ASSERT_EQ(xdp.verdict, static_cast<uint32_t>(XDP_PASS));
      ASSERT_EQ(xdp.frame, expected) << duties << " " << key;
      if (frame.size() < kFrameBytesMinTc) continue;
      const RunResult tc = RunOnce(*program, SwitchMode::kTc, frame);
      SwitchFrame(*host.config, *host.bank, &host.counters, &(expected = frame));
      ASSERT_EQ(tc.verdict, static_cast<uint32_t>(TC_ACT_UNSPEC));
      ASSERT_EQ(tc.frame, expected) << duties << " " << key;
    }
    const SwitchCounters counted = program->Counters();
    EXPECT_EQ(std::memcmp(&counted, &host.counters, sizeof(counted)), 0);
  }
}

// Goal: before tables are installed everything passes as it is.
TEST_F(SwitchProgramTest, PassesAllWithoutTables) {
  TestSwitch host(SWITCH_FIRST);
  auto program = Load(*host.config);
  ASSERT_TRUE(program);
  for (const std::string& frame : {GetFrame("key"), ReadFrame(1)}) {
    EXPECT_EQ(RunOnce(*program, SwitchMode::kGeneric, frame).frame, frame);
  }
  EXPECT_EQ(program->Counters().foreign, 2u);
}

// Goal: a packet is handled by one bank as a whole, while banks are replaced.
// Method: two trees with other addresses and the same keys. One thread asks, another installs them
// by turns; an answer is that of one of them.
TEST_F(SwitchProgramTest, APacketSeesOneBank) {
  IndexTree tree;
  TestSwitch one = RandomSwitch(rng_, SWITCH_FIRST | SWITCH_LAST, &tree);
  for (IndexNode& node : tree.nodes) node.address ^= 0x0000f00000000000;
  TestSwitch other(SWITCH_FIRST | SWITCH_LAST);
  SetServers(2, other.bank.get());
  const FatRoot root = BuildFatRoot(tree, 7);
  const auto layers = CacheLayers(tree, root, SWITCH_LAYERS, 4000);
  WriteRoot(tree, root, other.bank.get());
  for (uint32_t i = 0; i < SWITCH_LAYERS; ++i) WriteLayer(tree, layers[i], i, other.bank.get());
  auto program = Load(*one.config);
  ASSERT_TRUE(program);
  ASSERT_TRUE(program->Install(*one.bank).ok());

  const auto keys = KeysFor(tree, rng_);
  std::atomic<bool> is_over = false;
  std::atomic<int> answers = 0;
  std::thread asker([&] {
    for (size_t i = 0; !is_over.load(); ++i) {
      const std::string frame = GetFrame(KeyBytes(keys[i % keys.size()]));
      std::string as_one = frame, as_other = frame;
      SwitchFrame(*one.config, *one.bank, &one.counters, &as_one);
      SwitchFrame(*other.config, *other.bank, &other.counters, &as_other);
      const std::string found = RunOnce(*program, SwitchMode::kGeneric, frame).frame;
      ASSERT_TRUE(found == as_one || found == as_other);
      answers.fetch_add(1);
    }
  });
  for (int i = 0; i < 40 || answers.load() < 500; ++i) {
    EXPECT_TRUE(program->Install(i % 2 == 0 ? *other.bank : *one.bank).ok());
    if (HasFailure()) break;
  }
  is_over.store(true);
  asker.join();
}

}  // namespace
}  // namespace skep::netindex
