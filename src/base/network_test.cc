// Tests of what only sockets do; sim/network_conformance_test.cc tests every Network.
#include "base/network.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/busy_listener_test.h"
#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/network_address.h"
#include "base/network_socket.h"
#include "base/temporary_directory_test.h"

namespace skep {
namespace {

class UnixSocketTest : public testing::Test {
 protected:
  std::string path() const { return directory_.path() + "/sock"; }
  Address address() const { return "unix:" + path(); }
  // Leaves a socket file as a killed process does.
  void LeaveStaleFile() const {
    SocketAddress where = *ParseAddress(address());
    const FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(fd.get(), where.raw(), where.length), 0);
  }

  TemporaryDirectory directory_;
};

TEST(NetworkAddress, FormatUndoesParse) {
  for (const char* text : {"127.0.0.1:6379", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:6379",
                           "[::]:1", "[fe80::1:2]:80", "unix:/run/skep.sock", "unix:relative"}) {
    const Result<SocketAddress> parsed = ParseAddress(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(FormatAddress(*parsed), text);
  }
}

TEST(NetworkAddress, RejectsWhatIsNoAddress) {
  const Address with_zero("unix:a\0b", 8);
  for (const Address& text :
       {Address(), Address(":"), Address(":80"), Address("127.0.0.1"), Address("127.0.0.1:"),
        Address("127.0.0.1:65536"), Address("127.0.0.1:-1"), Address("127.0.0.1:8o"),
        Address("127.0.0.1:80 "), Address("127.0.0:80"), Address("localhost:80"),
        Address("::1:80x"), Address("[::1]"), Address("[::1:80"), Address("[]:80"),
        Address("[127.0.0.1]:80"), Address("unix:"), "unix:" + std::string(108, 'p'), with_zero}) {
    const Result<SocketAddress> parsed = ParseAddress(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument) << text;
  }
  EXPECT_TRUE(ParseAddress("unix:" + std::string(107, 'p')));
}

TEST(NetworkAddress, LooksUpNamesOnly) {
  for (const char* same : {"127.0.0.1:1", "[::1]:6379", "unix:/run/x.sock"}) {
    EXPECT_EQ(LookUp(same), std::vector<Address>{same});
  }
  const auto local = LookUp("localhost:6379");
  ASSERT_TRUE(local.has_value());
  const auto is_local = [](const Address& a) { return a == "127.0.0.1:6379" || a == "[::1]:6379"; };
  EXPECT_FALSE(local->empty());
  EXPECT_TRUE(std::ranges::all_of(*local, is_local));
  for (const char* none : {"", "localhost", "localhost:port", "unix:", "a b:1"}) {
    EXPECT_EQ(LookUp(none).error().code(), Code::kInvalidArgument) << none;
  }
  EXPECT_EQ(AddressOf("::1", 80), "[::1]:80");
  EXPECT_EQ(AddressOf("localhost", 80), "localhost:80");
}

TEST_F(UnixSocketTest, StaleFileIsReplacedAndRemovedAtTheEnd) {
  LeaveStaleFile();
  auto listener = SocketNetwork().Listen(address());
  ASSERT_TRUE(listener) << listener.error().ToString();
  EXPECT_TRUE(SocketNetwork().Connect(address(), -1));
  listener->reset();
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(UnixSocketTest, LiveSocketIsNotTakenOver) {
  auto first = SocketNetwork().Listen(address());
  ASSERT_TRUE(first);
  auto second = SocketNetwork().Listen(address());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().detail(), EADDRINUSE);
  EXPECT_TRUE(SocketNetwork().Connect(address(), -1));
}

// Goal: a listener too busy to take another connection is not mistaken for a dead one.
TEST_F(UnixSocketTest, BusySocketIsNotTakenOver) {
  const BusyListener busy(address());
  EXPECT_EQ(SocketNetwork().Listen(address()).error().detail(), EADDRINUSE);
  EXPECT_TRUE(std::filesystem::exists(path()));
}

// Goal: a caller that is neither connected nor refused is told so in time, with a unix socket too.
TEST_F(UnixSocketTest, ConnectingEndsInTime) {
  for (const Address& where : {Address("127.0.0.1:0"), address()}) {
    SCOPED_TRACE(where);
    const BusyListener busy(where);
    const uint64_t begin_ms = SystemClock().MonotonicMs();
    for (const int timeout_ms : {0, 50}) {
      const auto late = SocketNetwork().Connect(busy.address(), timeout_ms);
      ASSERT_FALSE(late);
      EXPECT_EQ(late.error().code(), Code::kIo);
      EXPECT_EQ(late.error().detail(), ETIMEDOUT);
    }
    // The system gives up after two minutes.
    EXPECT_LT(SystemClock().MonotonicMs() - begin_ms, 60'000u);
  }
}

TEST_F(UnixSocketTest, FileThatIsNoSocketIsKept) {
  std::ofstream(path()) << "precious";
  auto listener = SocketNetwork().Listen(address());
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().detail(), EADDRINUSE);
  EXPECT_TRUE(std::filesystem::is_regular_file(path()));
}

// Goal: a listener that ends does not remove the file of the one that came after it.
// Method: remove the first one's file by hand, listen again, end the first.
TEST_F(UnixSocketTest, SuccessorsFileIsKept) {
  auto first = SocketNetwork().Listen(address());
  ASSERT_TRUE(first);
  // A link keeps the inode, so that the second file cannot get its number.
  std::filesystem::create_hard_link(path(), path() + ".old");
  ASSERT_EQ(unlink(path().c_str()), 0);
  auto second = SocketNetwork().Listen(address());
  ASSERT_TRUE(second);
  first->reset();
  EXPECT_TRUE(SocketNetwork().Connect(address(), -1));
}

int SocketOption(int fd, int level, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  EXPECT_EQ(getsockopt(fd, level, option, &value, &size), 0);
  return value;
}

TEST(SocketNetwork, StreamsAreNonBlockingPrivateAndUndelayed) {
  auto listener = SocketNetwork().Listen("127.0.0.1:0");
  ASSERT_TRUE(listener);
  auto client = SocketNetwork().Connect((*listener)->address(), -1);
  ASSERT_TRUE(client);
  int error = 0;
  const auto server = (*listener)->Accept(&error);
  ASSERT_NE(server, nullptr);
  for (const Stream* stream : {client->get(), server.get()}) {
    const int fd = static_cast<const SocketStream*>(stream)->fd();
    EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(SocketOption(fd, IPPROTO_TCP, TCP_NODELAY), 1);
  }
}

// Goal: a server can start again on the port of one that just ended.
// Method: the server's side closes first, so that its port is left in TIME_WAIT.
TEST(SocketNetwork, PortCanBeUsedAgainAtOnce) {
  auto listener = SocketNetwork().Listen("127.0.0.1:0");
  ASSERT_TRUE(listener);
  const Address address = (*listener)->address();
  auto client = SocketNetwork().Connect(address, -1);
  int error = 0;
  auto server = (*listener)->Accept(&error);
  ASSERT_NE(server, nullptr);
  server.reset();
  client->reset();
  listener->reset();
  const auto again = SocketNetwork().Listen(address);
  EXPECT_TRUE(again) << again.error().ToString();
}

// Goal: a wake-up from another thread ends a wait that has no timeout, even one that starts later.
// Method: each round is one Wake and one Wait, in either order.
TEST(SocketPoller, WakeFromAnotherThread) {
  const auto poller = SocketNetwork().NewPoller();
  std::atomic<int> rounds_waited = 0;
  constexpr int kRounds = 1'000;
  std::jthread waker([&] {
    for (int round = 0; round < kRounds; ++round) {
      poller->Wake();
      rounds_waited.wait(round);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_TRUE(poller->Wait(-1).empty());
    ++rounds_waited;
    rounds_waited.notify_one();
  }
}

// Goal: a wake-up ends one wait and not the next.
// Method: a wait that nothing ends takes its whole time, however slow the machine.
TEST(SocketPoller, WakeIsUsedUp) {
  const auto poller = SocketNetwork().NewPoller();
  poller->Wake();
  poller->Wake();
  EXPECT_TRUE(poller->Wait(-1).empty());
  const uint64_t start_ns = SystemClock().MonotonicNs();
  EXPECT_TRUE(poller->Wait(20).empty());
  EXPECT_GE(SystemClock().MonotonicNs() - start_ns, 20'000'000);
}

// Goal: a signal ends a wait without an event and without harm.
// Method: signals are sent until the waiting thread has come back.
TEST(SocketPoller, SignalEndsAWait) {
  const auto old_handler = signal(SIGUSR1, [](int) {});
  const auto poller = SocketNetwork().NewPoller();
  std::atomic<bool> returned = false;
  std::jthread waiter([&] {
    EXPECT_TRUE(poller->Wait(-1).empty());
    returned = true;
  });
  while (!returned) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  waiter.join();
  signal(SIGUSR1, old_handler);
}

// Goal: running out of descriptors is reported, and the connection is accepted once there is one.
// Method: descriptors are used up by hand, one is given back.
TEST(SocketNetwork, AcceptTellsThatDescriptorsRanOut) {
  auto listener = SocketNetwork().Listen("127.0.0.1:0");
  ASSERT_TRUE(listener);
  auto client = SocketNetwork().Connect((*listener)->address(), -1);
  ASSERT_TRUE(client);

  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  const FileDescriptor probe(dup(0));
  const rlimit none_left = {.rlim_cur = static_cast<rlim_t>(probe.get()) + 1,
                            .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  int error = 0;
  EXPECT_EQ((*listener)->Accept(&error), nullptr);
  EXPECT_EQ(error, EMFILE);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_NE((*listener)->Accept(&error), nullptr);
}

}  // namespace
}  // namespace skep
