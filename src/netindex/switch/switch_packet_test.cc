#include "netindex/switch/switch_packet.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "netindex/switch/switch_frame.h"
#include "netindex/switch/testing/switch_world.h"

namespace skep::netindex {
namespace {

constexpr size_t kServers = 2;

// A random tree, and the switches of a way through one, two or three of them.
class Way {
 public:
  Way(std::mt19937_64& rng, size_t hops, uint16_t more_duties = 0)
      : tree_(MakeIndexTree(RandomLeaves(rng, kServers, 600), 4)),
        root_(BuildFatRoot(tree_, 8)),
        layers_(CacheLayers(tree_, root_, 3 * hops, 1000)) {
    for (size_t hop = 0; hop < hops; ++hop) {
      const auto duties = static_cast<uint16_t>(more_duties | (hop == 0 ? SWITCH_FIRST : 0) |
                                                (hop + 1 == hops ? SWITCH_LAST : 0));
      SwitchBank* const bank = switches_.emplace_back(duties).bank.get();
      SetServers(kServers, bank);
      if (hop == 0) WriteRoot(tree_, root_, bank);
      for (uint32_t i = 0; i < 3; ++i) WriteLayer(tree_, layers_[3 * hop + i], i, bank);
    }
  }

  // What the first `hops` switches make of the frame; all of them, if there are not so many.
  std::string Send(std::string frame, size_t hops = 9) {
    for (size_t i = 0; i < std::min(hops, switches_.size()); ++i) {
      SwitchFrame(*switches_[i].config, *switches_[i].bank, &switches_[i].counters, &frame);
    }
    return frame;
  }
  TestSwitch& at(size_t hop) { return switches_[hop]; }
  const IndexTree& tree() const { return tree_; }

  // The address to which tables of so many layers lead the key.
  uint64_t AddressBehind(uint64_t key, size_t layers) const {
    uint32_t at = root_.ranges.front();
    for (const uint32_t range : root_.ranges) at = tree_.nodes[range].pivot < key ? range : at;
    for (size_t i = 0; i < layers; ++i) {
      if (std::ranges::count(layers_[i], at) == 0) continue;
      const auto& children = tree_.nodes[at].children;
      at = children.front();
      for (const uint32_t child : children) at = tree_.nodes[child].pivot < key ? child : at;
    }
    return tree_.nodes[at].address;
  }
  uint32_t ServerOf(uint64_t key) const { return tree_.nodes[LeafOf(tree_, key)].server; }

 private:
  const IndexTree tree_;
  const FatRoot root_;
  const std::vector<Layer> layers_;
  std::vector<TestSwitch> switches_;
};

class SwitchPacket : public testing::Test {
 protected:
  const unsigned seed_ = std::random_device{}();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  std::mt19937_64 rng_{seed_};
};

// Goal: a GET comes to its server with the hint of its leaf, right checksums, and no other change,
// after any number of hops, and in both ways of looking.
TEST_F(SwitchPacket, AGetGetsTheHintOfItsLeaf) {
  for (const uint16_t duties : std::initializer_list<uint16_t>{0, SWITCH_AS_P4}) {
    for (const size_t hops : {1, 2, 3}) {
      Way way(rng_, hops, duties);
      for (const uint64_t key : KeysFor(way.tree(), rng_)) {
        const std::string sent = GetFrame(KeyBytes(key), 0);
        const std::string came = way.Send(sent);
        const uint64_t address = way.AddressBehind(key, 3 * hops);
        ASSERT_EQ(HintOf(came), address >> 48 == 0 ? 0 : address) << key;
        ASSERT_EQ(Get<uint32_t>(came, SWITCH_IP_TO), ServerAt(way.ServerOf(key)).address);
        ASSERT_EQ(IpSum(came), 0xffff);
        ASSERT_EQ(UdpSum(came), 0xffff);
        std::string undone = came;
        for (const size_t at : {SWITCH_IP_CHECK, SWITCH_UDP_CHECK}) {
          Put(undone, at, Get<uint16_t>(sent, at));
        }
        Put(undone, SWITCH_IP_TO, kService);
        Put<uint64_t>(undone, SWITCH_HINT, 0);
        ASSERT_EQ(undone, sent);
      }
    }
  }
}

// Goal: keys shorter and longer than 8 bytes are looked up by their first 8, padded with zeros.
TEST_F(SwitchPacket, AKeyIsItsFirstEightBytes) {
  Way way(rng_, 1);
  for (const uint64_t key : KeysFor(way.tree(), rng_)) {
    const size_t bytes = 1 + rng_() % 20;
    const uint64_t number = bytes >= 8 ? key : key >> (64 - 8 * bytes) << (64 - 8 * bytes);
    const std::string came = way.Send(GetFrame(KeyBytes(key, bytes)));
    const uint64_t address = way.AddressBehind(number, 3);
    ASSERT_EQ(HintOf(came), address >> 48 == 0 ? 0 : address) << key << " " << bytes;
  }
}

// Goal: a READ comes to its server as an ordinary one, with the node's address, its rkey, and an
// ICRC as if it had been sent so; in between it has the temporary header.
TEST_F(SwitchPacket, AReadGetsAddressAndRkey) {
  for (const size_t hops : {1, 2, 3}) {
    Way way(rng_, hops);
    for (const uint64_t key : KeysFor(way.tree(), rng_)) {
      const SwitchServer server = ServerAt(way.ServerOf(key));
      const std::string sent = ReadFrame(key);
      for (size_t hop = 1; hop < hops; ++hop) {
        const std::string between = way.Send(sent, hop);
        ASSERT_EQ(between.size(), SWITCH_READ_BYTES + SWITCH_TEMPORARY_BYTES);
        ASSERT_EQ(__builtin_bswap64(Get<uint64_t>(between, SWITCH_TEMPORARY)), key);
        ASSERT_EQ(__builtin_bswap64(Get<uint64_t>(between, SWITCH_TEMPORARY + 8)),
                  way.AddressBehind(key, 3 * hop));
        ASSERT_EQ(ntohs(Get<uint16_t>(between, SWITCH_TEMPORARY + 16)), way.ServerOf(key));
        ASSERT_EQ(IpSum(between), 0xffff);
        ASSERT_EQ(ntohs(Get<uint16_t>(between, SWITCH_IP_BYTES)), between.size() - SWITCH_IP);
      }
      const std::string came = way.Send(sent);
      ASSERT_EQ(came, ReadFrame(way.AddressBehind(key, 3 * hops), server.rkey, server.address));
    }
  }
}

// Goal: the ICRC is that of InfiniBand: a known beginning, which the kernel's driver has as a
// constant, and the fields that change on the way are not covered.
TEST_F(SwitchPacket, TheIcrcIsThatOfInfiniBand) {
  uint32_t crc = 0xffffffff;
  for (int i = 0; i < 8; ++i) crc = SwitchCrcByte(crc, 0xff);
  EXPECT_EQ(crc, 0xdebb20e3);
  const std::string frame = ReadFrame(rng_());
  const uint32_t icrc = IcrcOfRead(frame);
  for (size_t at = SWITCH_IP; at < SWITCH_ICRC; ++at) {
    std::string changed = frame;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    const bool is_masked =
        at == 15 || at == 22 || at == 24 || at == 25 || at == 40 || at == 41 || at == 46;
    EXPECT_EQ(IcrcOfRead(changed) == icrc, is_masked) << at;
  }
}

// Goal: a query that goes to a server itself is served if the range is that server's.
TEST_F(SwitchPacket, AServerIsAskedForItsOwnKeysOnly) {
  Way way(rng_, 1);
  for (const uint64_t key : KeysFor(way.tree(), rng_)) {
    const uint32_t server = way.ServerOf(key);
    const uint64_t address = way.AddressBehind(key, 3);
    const std::string right = way.Send(GetFrame(KeyBytes(key), 0, ServerAt(server).address));
    ASSERT_EQ(HintOf(right), address >> 48 == 0 ? 0 : address);
    const std::string other = GetFrame(KeyBytes(key), 0, ServerAt(1 - server).address);
    ASSERT_EQ(way.Send(other), other);
    const std::string read = ReadFrame(key, 0, ServerAt(1 - server).address);
    ASSERT_EQ(way.Send(read), read);
  }
  EXPECT_GT(way.at(0).counters.foreign, 0u);
}

// Goal: a GET without a checksum keeps none.
TEST_F(SwitchPacket, NoChecksumStaysNone) {
  Way way(rng_, 1);
  std::string frame = GetFrame(KeyBytes(5));
  Put<uint16_t>(frame, SWITCH_UDP_CHECK, 0);
  EXPECT_EQ(Get<uint16_t>(way.Send(frame), SWITCH_UDP_CHECK), 0u);
}

// Goal: a checksum that becomes 0 is sent as ffff, as 0 means that there is none.
// Method: of GETs with all ids one has it.
TEST_F(SwitchPacket, AChecksumOfZeroIsSentAsOnes) {
  Way way(rng_, 1);
  std::string payload = GetPayload(KeyBytes(5));
  size_t found = 0;
  for (uint32_t id = 0; id <= 0xffff; ++id) {
    Put<uint16_t>(payload, 28, static_cast<uint16_t>(id));
    const std::string came = way.Send(UdpFrame(kClient, kService, 5555, kPort, payload));
    const auto check = Get<uint16_t>(came, SWITCH_UDP_CHECK);
    ASSERT_NE(check, 0u);
    found += check == 0xffff;
  }
  EXPECT_EQ(found, 1u);
}

// Goal: whatever is no query passes as it is.
TEST_F(SwitchPacket, TheRestPassesAsItIs) {
  Way way(rng_, 1);
  using Change = std::function<void(std::string&)>;
  struct Line {
    const char* what;
    Change change;
  };
  const std::string get = GetFrame(KeyBytes(7)), read = ReadFrame(7);
  const auto byte = [](size_t at, uint8_t value) -> Change {
    return [=](std::string& frame) { Put(frame, at, value); };
  };
  const std::vector<Line> of_both = {{"a VLAN", byte(12, 0x81)},
                                     {"options of IP", byte(14, 0x46)},
                                     {"IPv6", byte(14, 0x65)},
                                     {"TCP", byte(23, 6)},
                                     {"a first fragment", byte(20, 0x20)},
                                     {"a last fragment", byte(21, 1)},
                                     {"a length of IP", byte(17, 9)},
                                     {"a length of UDP", byte(39, 9)},
                                     {"another port", byte(37, 1)},
                                     {"another address", byte(30, 11)}};
  const std::vector<Line> of_gets = {{"magic", byte(42, 0)},
                                     {"version", byte(46, 2)},
                                     {"a refusal", byte(47, 1)},
                                     {"payload bytes", byte(66, 1)},
                                     {"another kind", byte(74, 2)},
                                     {"a snapshot", byte(75, 16)},
                                     {"limits of scans", byte(75, 32)},
                                     {"a keyspace", byte(76, 1)},
                                     {"operations", byte(78, 2)},
                                     {"a PUT", byte(82, 0x81)},
                                     {"no fields", byte(82, 0)},
                                     {"more fields", byte(83, 0x11)},
                                     {"no key", byte(92, 0)},
                                     {"a longer key", byte(92, 9)},
                                     {"128 bytes", byte(92, 128)}};
  const std::vector<Line> of_reads = {{"a WRITE", byte(42, 0x0a)}, {"an rkey", byte(65, 1)}};
  const auto expect = [&](const std::string& frame, const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      std::string changed = frame;
      line.change(changed);
      EXPECT_EQ(way.Send(changed), changed) << line.what;
    }
    for (size_t bytes = 0; bytes < SWITCH_READ_BYTES; ++bytes) {
      EXPECT_EQ(way.Send(frame.substr(0, bytes)), frame.substr(0, bytes)) << bytes;
    }
  };
  ASSERT_NE(way.Send(get), get);
  ASSERT_NE(way.Send(read), read);
  expect(get, of_both);
  expect(get, of_gets);
  expect(read, of_both);
  expect(read, of_reads);
}

// Goal: bytes of any kind are read and written within the frame only (the sanitizers look on).
TEST_F(SwitchPacket, AnyBytesAreHandled) {
  Way first(rng_, 3);
  for (int i = 0; i < 20'000; ++i) {
    std::string frame = i % 2 == 0 ? GetFrame(KeyBytes(rng_(), 1 + rng_() % 12), rng_() % 99)
                                   : first.Send(ReadFrame(rng_()), rng_() % 3);
    for (uint64_t n = rng_() % 4; n > 0; --n) {
      frame[rng_() % frame.size()] = static_cast<char>(rng_());
    }
    frame.resize(rng_() % 2 == 0 ? frame.size() : rng_() % frame.size());
    const std::string exact(frame.begin(), frame.end());
    first.Send(exact);
  }
}

// Goal: answers are counted, and those that say that the hint was stale.
TEST_F(SwitchPacket, StaleAnswersAreCounted) {
  Way way(rng_, 1);
  const auto answer = [&](std::string outcome, uint8_t flags) {
    std::string payload = GetPayload("key");
    payload.resize(40);
    Put(payload, 33, flags);
    const std::string frame = UdpFrame(ServerAt(0).address, kClient, kPort, 5555,
                                       payload + outcome + std::string(9, 'v'));
    EXPECT_EQ(way.Send(frame), frame);
  };
  answer("\x28\x05", 0);  // a value
  answer("\xa8\x20", 0);  // a value and a hint
  answer("\xa8\x18", 0);  // a value, a deadline, a version
  answer("\x01\x20", 0);  // absent
  answer("\xa8\x20", 2);  // the message was refused
  EXPECT_EQ(way.at(0).counters.answers, 4u);
  EXPECT_EQ(way.at(0).counters.stale, 1u);
}

// Goal: hints of switches alone do not leave the last one.
TEST_F(SwitchPacket, TheLastHopClearsWhatNoServerKnows) {
  TestSwitch last(SWITCH_LAST), between(0);
  std::string frame = GetFrame(KeyBytes(1), 77, ServerAt(0).address);
  SwitchFrame(*between.config, *between.bank, &between.counters, &frame);
  EXPECT_EQ(HintOf(frame), 77u);
  SwitchFrame(*last.config, *last.bank, &last.counters, &frame);
  EXPECT_EQ(HintOf(frame), 0u);
  EXPECT_EQ(UdpSum(frame), 0xffff);
  EXPECT_EQ(last.counters.cleared, 1u);
  const uint64_t clients = uint64_t{3} << 48 | 9;
  frame = GetFrame(KeyBytes(1), clients, ServerAt(0).address);
  SwitchFrame(*last.config, *last.bank, &last.counters, &frame);
  EXPECT_EQ(HintOf(frame), clients);
}

}  // namespace
}  // namespace skep::netindex
