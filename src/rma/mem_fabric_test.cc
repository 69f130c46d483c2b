// What only mem has: other processes, descriptors, and Polls without a system call.
#include "rma/mem_fabric.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/network_socket.h"
#include "base/temporary_directory_test.h"
#include "rma/descriptor_stream.h"
#include "rma/hello.h"
#include "rma/message_stream.h"
#include "rma/testing/fabric_test.h"

namespace skep::rma {
namespace {

using Kind = Event::Kind;

// A process with an endpoint of its own, which does something and then only polls.
class Child {
 public:
  explicit Child(const std::function<void()>& function) : id_(fork()) {
    if (id_ == 0) {
      function();
      _exit(1);
    }
  }
  ~Child() { Kill(); }
  void Kill() {
    if (id_ <= 0) return;
    kill(id_, SIGKILL);
    waitpid(std::exchange(id_, 0), nullptr, 0);
  }
  void Stop() {
    kill(id_, SIGSTOP);
    int state = 0;
    waitpid(id_, &state, WUNTRACED);
  }
  void Continue() { kill(id_, SIGCONT); }

 private:
  pid_t id_;
};

class MemFabricTest : public FabricTest {
 protected:
  void SetUp() override { target_ = OpenTarget({{memory_.get(), Access::kReadWrite}}); }

  // In a child: connects, and writes the numbers from 1 on to word 0 until it is killed or the
  // connection ends; `then` is what it does after that.
  void WriteForEver(const std::function<void()>& then) {
    auto endpoint = MemFabric().Open({});
    const auto peer = (*endpoint)->Connect((*target_)->address(), 10'000);
    bool is_joined = false;
    for (uint64_t number = 1;;) {
      for (const Event& event : (*endpoint)->Poll(is_joined ? 0 : -1)) {
        if (event.kind == Kind::kLeft) then();
        is_joined = true;
      }
      if (!is_joined) continue;
      const std::vector operations = {Write(0, 1, &number)};
      (*endpoint)->Post(*peer, 0, operations);
      ++number;
    }
  }
  static void SleepForEver() {
    for (;;) pause();
  }
  uint64_t WordNow() { return std::atomic_ref(Words(*memory_)[0]).load(); }
  bool IsWrittenTo() {
    const uint64_t before = WordNow();
    usleep(20'000);
    return WordNow() != before;
  }
  static size_t OpenDescriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  // Of shared memory, in this process.
  static int Mappings() {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) count += line.contains("/memfd:skep") ? 1 : 0;
    return count;
  }

  std::unique_ptr<SharedMemory> memory_ = NewMemory();
  Node* target_ = nullptr;
};

// Goal: a process that is killed while it writes is seen to leave, and fenced.
TEST_P(MemFabricTest, KilledProcess) {
  Child child([&] { WriteForEver(SleepForEver); });
  const PeerId peer = Take(target_, Kind::kJoined).peer;
  ASSERT_TRUE(Await([&] { return IsWrittenTo(); }));
  child.Kill();
  EXPECT_EQ(Take(target_, Kind::kLeft).peer, peer);
  EXPECT_TRUE(Await([&] { return (*target_)->Fence(peer); }));
  EXPECT_FALSE(IsWrittenTo());
}

// Goal: a process that is stopped is not fenced before it has gone on and unmapped the region.
TEST_P(MemFabricTest, StoppedProcess) {
  Child child([&] { WriteForEver(SleepForEver); });
  const PeerId peer = Take(target_, Kind::kJoined).peer;
  ASSERT_TRUE(Await([&] { return IsWrittenTo(); }));
  child.Stop();
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE((*target_)->Fence(peer));
    Turn();
  }
  EXPECT_EQ(Take(target_, Kind::kLeft).peer, peer);
  child.Continue();
  EXPECT_TRUE(Await([&] { return (*target_)->Fence(peer); }));
  EXPECT_FALSE(IsWrittenTo());
}

// Goal: a process that has ended is fenced although a child of its has the connection's descriptor
// and lives on.
TEST_P(MemFabricTest, KilledProcessWhoseChildLives) {
  pid_t grandchild = 0;
  int ids[2];
  ASSERT_EQ(pipe(ids), 0);
  Child child([&] {
    auto endpoint = MemFabric().Open({});
    static_cast<void>((*endpoint)->Connect((*target_)->address(), 10'000));
    while ((*endpoint)->Poll(-1).empty()) {
    }
    const pid_t id = fork();
    if (id > 0) static_cast<void>(!write(ids[1], &id, sizeof(id)));
    SleepForEver();
  });
  const PeerId peer = Take(target_, Kind::kJoined).peer;
  ASSERT_EQ(read(ids[0], &grandchild, sizeof(grandchild)), std::ssize(std::string(4, ' ')));
  EXPECT_FALSE((*target_)->Fence(peer));
  child.Kill();
  EXPECT_TRUE(Await([&] { return (*target_)->Fence(peer); }));
  EXPECT_EQ(kill(grandchild, 0), 0);
  kill(grandchild, SIGKILL);
  for (const int id : ids) close(id);
}

// Goal: a peer of this process is fenced once its endpoint has polled or is gone, and not before.
TEST_P(MemFabricTest, PeerOfThisProcess) {
  for (const bool is_destroyed : {false, true}) {
    Node* const caller = Open({});
    const PeerId peer = Connect(caller, target_).second;
    EXPECT_EQ(Mappings(), 2);
    EXPECT_FALSE((*target_)->Fence(peer));
    EXPECT_FALSE((*target_)->Fence(peer));
    if (is_destroyed) {
      Close(caller);
    } else {
      Take(caller, Kind::kLeft);
    }
    EXPECT_TRUE((*target_)->Fence(peer));
    EXPECT_EQ(Mappings(), 1);
    EXPECT_TRUE((*target_)->Fence(peer));
    Take(target_, Kind::kLeft);
  }
}

// Goal: who could only read is fenced at once.
TEST_P(MemFabricTest, ReadersAreFencedAtOnce) {
  Node* const target = OpenTarget({{memory_.get(), Access::kRead}});
  Node* const caller = Open({});
  const PeerId peer = Connect(caller, target).second;
  EXPECT_TRUE((*target)->Fence(peer));
}

// Counts how often its pollers wait.
class CountingNetwork final : public Network {
 public:
  class CountingPoller final : public Poller {
   public:
    explicit CountingPoller(size_t& waits) : waits_(waits), poller_(SocketNetwork().NewPoller()) {}
    Status Add(Stream& stream, void* tag, bool want_read, bool want_write) override {
      return poller_->Add(stream, tag, want_read, want_write);
    }
    Status Change(Stream& stream, void* tag, bool want_read, bool want_write) override {
      return poller_->Change(stream, tag, want_read, want_write);
    }
    void Remove(Stream& stream) override { poller_->Remove(stream); }
    Status Add(Listener& listener, void* tag) override { return poller_->Add(listener, tag); }
    void Remove(Listener& listener) override { poller_->Remove(listener); }
    Status Add(DatagramSocket& socket, void* tag) override { return poller_->Add(socket, tag); }
    void Remove(DatagramSocket& socket) override { poller_->Remove(socket); }
    std::span<const ReadyEvent> Wait(int timeout_ms) override {
      ++waits_;
      return poller_->Wait(timeout_ms);
    }
    void Wake() override { poller_->Wake(); }

   private:
    size_t& waits_;
    std::unique_ptr<Poller> poller_;
  };

  Result<std::unique_ptr<Listener>> Listen(const Address& address) override {
    return SocketNetwork().Listen(address);
  }
  Result<std::unique_ptr<Stream>> Connect(const Address& address, int timeout_ms) override {
    return SocketNetwork().Connect(address, timeout_ms);
  }
  Result<std::unique_ptr<DatagramSocket>> BindDatagrams(const Address& address) override {
    return SocketNetwork().BindDatagrams(address);
  }
  Result<std::unique_ptr<DatagramSocket>> ConnectDatagrams(const Address& address) override {
    return SocketNetwork().ConnectDatagrams(address);
  }
  std::unique_ptr<Poller> NewPoller() override { return std::make_unique<CountingPoller>(waits); }

  size_t waits = 0;
};

// Goal: a Poll that has events of Posts makes no system call, but for one in 64, so that messages
// come through meanwhile; and what is to be sent is sent at once.
TEST_P(MemFabricTest, PollsWithoutSystemCalls) {
  CountingNetwork network;
  MemFabric fabric(network);
  auto endpoint = fabric.Open({});
  ASSERT_TRUE(endpoint);
  nodes_.push_back(std::make_unique<Node>(std::move(*endpoint)));
  Node* const caller = nodes_.back().get();
  const auto [peer, self] = Connect(caller, target_);
  (*target_)->Call(self, 1, "call");
  target_->Poll();
  uint64_t word = 0;
  const std::vector operations = {Read(0, 1, &word)};
  const auto polls = [&](size_t count) {
    const size_t before = network.waits;
    for (size_t i = 0; i < count; ++i) {
      (*caller)->Post(peer, i, operations);
      caller->Poll(-1);
    }
    return network.waits - before;
  };
  EXPECT_EQ(polls(640), 10u);
  EXPECT_EQ(caller->Count(Kind::kDone), 640u);
  EXPECT_EQ(caller->Count(Kind::kRequest), 1u);
  (*caller)->Reply(peer, caller->told.front().token, "reply");
  EXPECT_EQ(polls(1), 1u);
}

// The end of a connection that a test speaks for.
struct RawEnd {
  explicit RawEnd(const Address& address)
      : stream(std::move(*SocketNetwork().Connect(address, 10'000))) {}
  // Says hello with these regions and descriptors.
  void Say(std::vector<RegionExtent> regions, std::vector<int> descriptors) {
    passing.SendWithNext(std::move(descriptors));
    messages.Add({.kind = MessageKind::kHello,
                  .body = EncodeHello({.fabric = FabricKind::kMem,
                                       .message_bytes_max = 1000,
                                       .unsent_bytes_max = 1000,
                                       .regions = std::move(regions)})});
    EXPECT_TRUE(messages.Send().ok());
  }

  std::unique_ptr<Stream> stream;
  DescriptorStream passing{static_cast<SocketStream&>(*stream)};
  MessageStream messages{passing};
};

// Goal: a peer gets descriptors that let it do what the region's access says, and no more.
TEST_P(MemFabricTest, DescriptorsHaveTheAccess) {
  auto readable = NewMemory();
  Node* const target =
      OpenTarget({{memory_.get(), Access::kReadWrite}, {readable.get(), Access::kRead}});
  RawEnd raw((*target)->address());
  raw.Say({}, {});
  Take(target, Kind::kJoined);
  raw.messages.set_limits({.hello_bytes_max = kHelloBytesMax});
  ASSERT_TRUE(Await([&] { return *raw.messages.Receive() && raw.messages.Next()->has_value(); }));
  const std::vector<FileDescriptor> files = raw.passing.TakeReceived();
  ASSERT_EQ(files.size(), 2u);
  const auto may_map = [](const FileDescriptor& file, int protection) {
    void* const at = mmap(nullptr, 4096, protection, MAP_SHARED, file.get(), 0);
    if (at != MAP_FAILED) munmap(at, 4096);
    return at != MAP_FAILED;
  };
  EXPECT_TRUE(may_map(files[0], PROT_READ | PROT_WRITE));
  EXPECT_TRUE(may_map(files[1], PROT_READ));
  EXPECT_FALSE(may_map(files[1], PROT_READ | PROT_WRITE));
  EXPECT_EQ(ftruncate(files[0].get(), 0), -1);
  EXPECT_NE(fcntl(files[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

// Goal: a peer whose descriptors are not what its hello says is no peer, and leaves no descriptor
// and no mapping behind.
TEST_P(MemFabricTest, WrongDescriptors) {
  auto other = NewMemory();
  const FileDescriptor junk(open("/dev/zero", O_RDWR));
  const FileDescriptor unsealed(memfd_create("test", MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kRegionBytes), 0);
  const auto reader = other->ReadOnlyDescriptor();
  const RegionExtent extent = {.bytes = kRegionBytes, .access = Access::kReadWrite};
  const RegionExtent larger = {.bytes = 2 * kRegionBytes, .access = Access::kReadWrite};
  const std::vector<int> many(kRegionsMax, other->fd());
  const size_t before = OpenDescriptors();
  const auto is_refused = [&](std::vector<RegionExtent> regions, std::vector<int> descriptors) {
    RawEnd raw((*target_)->address());
    raw.Say(std::move(regions), std::move(descriptors));
    return Await([&] {
      const auto more = raw.messages.Receive();
      return !more || !*more;
    });
  };
  EXPECT_TRUE(is_refused({extent}, {}));
  EXPECT_TRUE(is_refused({}, {other->fd()}));
  EXPECT_TRUE(is_refused({extent}, many));
  EXPECT_TRUE(is_refused({extent, extent}, {other->fd()}));
  EXPECT_TRUE(is_refused({extent}, {junk.get()}));
  EXPECT_TRUE(is_refused({extent}, {unsealed.get()}));
  EXPECT_TRUE(is_refused({larger}, {other->fd()}));
  EXPECT_TRUE(is_refused({extent}, {reader->get()}));
  for (int i = 0; i < 5; ++i) Turn();
  EXPECT_TRUE(target_->told.empty());
  EXPECT_EQ(OpenDescriptors(), before);
  RawEnd good((*target_)->address());
  good.Say({extent}, {other->fd()});
  EXPECT_EQ((*target_)->RegionBytes(Take(target_, Kind::kJoined).peer, 0), kRegionBytes);
}

// Goal: descriptors that come after the hello are dropped by the kernel.
TEST_P(MemFabricTest, LateDescriptors) {
  RawEnd raw((*target_)->address());
  raw.Say({}, {});
  Take(target_, Kind::kJoined);
  const size_t before = OpenDescriptors();
  raw.passing.SendWithNext(std::vector<int>(kRegionsMax, memory_->fd()));
  raw.messages.Add({.kind = MessageKind::kCall, .token = 1, .body = "call"});
  EXPECT_TRUE(raw.messages.Send().ok());
  EXPECT_EQ(Take(target_, Kind::kRequest).bytes, "call");
  EXPECT_EQ(OpenDescriptors(), before);
}

// Goal: mem is of this machine only.
TEST_P(MemFabricTest, OnlyUnixSockets) {
  EXPECT_EQ(MemFabric().Open({.listen = "127.0.0.1:0"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ((*target_)->Connect("127.0.0.1:1", 1000).error().code(), Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Only, MemFabricTest, testing::Values(SocketBackends().front()),
                         NameOfBackend);

}  // namespace
}  // namespace skep::rma
