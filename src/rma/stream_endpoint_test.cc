// What a peer that is no endpoint, or a wrong one, can do to an endpoint of mem and tcp: nothing
// but lose its connection.
#include "rma/stream_endpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/sanitized.h"
#include "rma/post_message.h"
#include "rma/testing/fabric_test.h"

namespace skep::rma {
namespace {

using Kind = Event::Kind;

// One end of a connection that says whatever the test wants.
class RawPeer {
 public:
  explicit RawPeer(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

  void Say(std::string_view bytes) { EXPECT_EQ(stream_->Write(bytes), std::ssize(bytes)); }
  void Say(const Message& message) {
    MessageStream messages(*stream_);
    messages.Add(message);
    EXPECT_TRUE(messages.Send().ok());
    EXPECT_EQ(messages.unsent_bytes(), 0u);
  }
  // Reads what there is. False once the connection has ended.
  bool Read() {
    char bytes[4096];
    const ssize_t got = stream_->Read(bytes, sizeof(bytes));
    if (got > 0) read += std::string(bytes, static_cast<size_t>(got));
    return got > 0 || got == -EAGAIN;
  }

  std::string read;

 private:
  std::unique_ptr<Stream> stream_;
};

class StreamEndpointTest : public FabricTest {
 protected:
  void SetUp() override {
    target_ = OpenTarget({{memory_.get(), Access::kReadWrite}, {memory_.get(), Access::kRead}},
                         {.message_bytes_max = 1000});
    caller_ = Open({});
    peer_ = Connect(caller_, target_).first;
  }
  FabricKind Fabric() const {
    return GetParam().name == "Mem" ? FabricKind::kMem : FabricKind::kTcp;
  }
  std::string HelloOf(FabricKind fabric, std::vector<RegionExtent> regions = {}) const {
    return EncodeHello({.fabric = fabric,
                        .message_bytes_max = 1 << 20,
                        .unsent_bytes_max = 1 << 20,
                        .regions = std::move(regions)});
  }
  RawPeer ConnectRaw() {
    auto stream = SocketNetwork().Connect((*target_)->address(), 10'000);
    EXPECT_TRUE(stream);
    return RawPeer(std::move(*stream));
  }
  RawPeer Join() {
    RawPeer peer = ConnectRaw();
    peer.Say({.kind = MessageKind::kHello, .body = HelloOf(Fabric())});
    Take(target_, Kind::kJoined);
    EXPECT_TRUE(Await([&] { return peer.Read() && !peer.read.empty(); }));
    return peer;
  }
  // The target ends the connection, and is as it was for its other peer.
  void ExpectEnd(RawPeer& peer) {
    EXPECT_TRUE(Await([&] { return !peer.Read(); }));
  }
  void ExpectCorrupt(const Message& message) {
    RawPeer peer = Join();
    peer.Say(message);
    ExpectEnd(peer);
    EXPECT_EQ(Take(target_, Kind::kLeft).status.code(), Code::kCorrupt);
    ExpectUnharmed();
  }
  void ExpectUnharmed() {
    uint64_t word = 0;
    EXPECT_TRUE(Do(caller_, peer_, {Read(0, 1, &word)}).ok());
    EXPECT_TRUE(target_->told.empty());
    EXPECT_TRUE(
        std::all_of(Words(*memory_), Words(*memory_) + kWords, [](uint64_t w) { return w == 0; }));
  }
  static std::string PostOf(const std::vector<Operation>& operations) {
    std::string body(EncodedPostBytes(operations), '\0');
    EncodePost(operations, body.data());
    return body;
  }

  std::unique_ptr<SharedMemory> memory_ = NewMemory();
  Node* target_ = nullptr;
  Node* caller_ = nullptr;
  PeerId peer_ = 0;
};

// Goal: a stranger that says anything but hello loses its connection, and nobody is told of it.
TEST_P(StreamEndpointTest, StrangersThatSayNoHello) {
  const FabricKind other = Fabric() == FabricKind::kMem ? FabricKind::kTcp : FabricKind::kMem;
  const std::string hello = HelloOf(Fabric());
  std::string magic = hello;
  magic[0] = 'X';
  const std::string longer = hello + "x";
  const std::string of_other = HelloOf(other);
  for (const Message& message : std::vector<Message>{
           {.kind = MessageKind::kHello, .body = ""},
           {.kind = MessageKind::kHello, .body = magic},
           {.kind = MessageKind::kHello, .body = std::string_view(hello).substr(1)},
           {.kind = MessageKind::kHello, .body = longer},
           {.kind = MessageKind::kHello, .body = of_other},
           {.kind = MessageKind::kRefuse},
           {.kind = MessageKind::kCall, .token = 1},
           {.kind = MessageKind::kCall, .token = 1, .body = "early"},
           {.kind = MessageKind::kPosted, .token = 1},
       }) {
    RawPeer peer = ConnectRaw();
    peer.Say(message);
    ExpectEnd(peer);
    ExpectUnharmed();
  }
}

// Goal: bytes that are no message at all end the connection of a stranger and of a peer alike.
TEST_P(StreamEndpointTest, RandomBytes) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < Rounds(50); ++round) {
    const bool is_peer = random.Chance(1, 2);
    RawPeer peer = is_peer ? Join() : ConnectRaw();
    std::string junk(16 + random.Below(3000), '\0');
    for (char& byte : junk) byte = static_cast<char>(random.Below(256));
    junk[6] = 1;  // of what is zero
    peer.Say(junk);
    ExpectEnd(peer);
    if (!is_peer) continue;
    EXPECT_EQ(Take(target_, Kind::kLeft).status.code(), Code::kCorrupt);
  }
  ExpectUnharmed();
}

// Goal: a peer that stops in the middle of a message costs nothing once it is gone.
TEST_P(StreamEndpointTest, PartOfAMessage) {
  {
    RawPeer peer = Join();
    peer.Say(std::string_view("\x64\0\0\0\x03\0\0\0\x01\0\0\0\0\0\0\0half", 20));
    (*target_)->Wake();
    EXPECT_FALSE(target_->Poll(-1)) << "woken, although something was ready that made no event";
    for (int i = 0; i < 20; ++i) Turn();
    ExpectUnharmed();
  }
  EXPECT_EQ(Take(target_, Kind::kLeft).status.code(), Code::kUnavailable);
  ExpectUnharmed();
}

// Goal: a message that nobody asked for, or that is too long, ends the connection: its header is
// enough, whatever length it says.
TEST_P(StreamEndpointTest, MessagesThatNobodyAskedFor) {
  ExpectCorrupt({.kind = MessageKind::kHello, .body = HelloOf(Fabric())});
  ExpectCorrupt({.kind = MessageKind::kRefuse});
  ExpectCorrupt({.kind = MessageKind::kReply, .token = 1, .body = "reply"});
  ExpectCorrupt({.kind = MessageKind::kReply, .code = Code::kTooLarge, .token = 1});
  ExpectCorrupt({.kind = MessageKind::kPosted, .token = 1});
  ExpectCorrupt({.kind = MessageKind::kPosted, .token = 1, .body = "12345678"});
  ExpectCorrupt({.kind = MessageKind::kCall, .body = std::string(1001, 'x')});
  RawPeer peer = Join();
  peer.Say(std::string_view("\xff\xff\xff\xff\x03\0\0\0\x01\0\0\0\0\0\0\0", 16));
  ExpectEnd(peer);
  EXPECT_EQ(Take(target_, Kind::kLeft).status.code(), Code::kCorrupt);
}

// Goal: operations that the regions do not allow are not carried out, none of them, and end the
// connection; of mem so do those that they allow, since nobody sends any.
TEST_P(StreamEndpointTest, OperationsThatAreNotAllowed) {
  uint64_t words[4] = {1, 2, 3, 4};
  const Operation good = Write(0, 4, words);
  std::vector<Operation> bad;
  bad.push_back(Write(kWords, 1, words));
  bad.push_back(Write(0, 1, words, 1));
  bad.push_back(Write(0, 1, words, 2));
  bad.push_back(Read(kWords - 1, 2, words));
  bad.push_back({.offset = 4, .bytes = 8});
  bad.push_back({.offset = 8, .bytes = 4});
  bad.push_back({.offset = ~uint64_t{7}, .bytes = 16});
  bad.push_back({.offset = 0, .bytes = 0});
  for (const Operation& operation : bad) {
    ExpectCorrupt({.kind = MessageKind::kPost, .token = 1, .body = PostOf({good, operation})});
  }
  const std::string body = PostOf({good});
  ExpectCorrupt({.kind = MessageKind::kPost, .token = 1, .body = body + "12345678"});
  ExpectCorrupt({.kind = MessageKind::kPost,
                 .token = 1,
                 .body = std::string_view(body).substr(0, body.size() - 8)});
  ExpectCorrupt({.kind = MessageKind::kPost, .token = 1, .body = std::string(8, '\0')});
  ExpectCorrupt({.kind = MessageKind::kPost, .token = 1, .body = ""});
  std::string count = body;
  count[3] = '\x7f';
  ExpectCorrupt({.kind = MessageKind::kPost, .token = 1, .body = count});
  std::string kind = body;
  kind[8 + 14] = 2;
  ExpectCorrupt({.kind = MessageKind::kPost, .token = 1, .body = kind});
  if (Fabric() == FabricKind::kMem) {
    ExpectCorrupt({.kind = MessageKind::kPost, .token = 1, .body = body});
  }
}

// Goal: strangers that say nothing, more of them than may be, keep nobody out.
TEST_P(StreamEndpointTest, SilentStrangers) {
  std::vector<RawPeer> strangers;
  for (size_t i = 0; i < StreamEndpoint::kStrangersMax + 50; ++i) {
    strangers.push_back(ConnectRaw());
    if (i % 20 == 0) Turn();
  }
  Node* const late = Open({});
  Connect(late, target_);
  EXPECT_TRUE(Await([&] { return !strangers.front().Read(); }));
  EXPECT_TRUE(strangers.back().Read());
  ExpectUnharmed();
}

// Goal: a Connect to something that is no endpoint ends with kLeft, whatever it answers.
TEST_P(StreamEndpointTest, ConnectToSomethingElse) {
  auto listener = SocketNetwork().Listen(world_->NewAddress());
  ASSERT_TRUE(listener);
  const auto answer = [&](const std::function<void(RawPeer&)>& say) {
    const auto peer = (*caller_)->Connect((*listener)->address(), 200);
    EXPECT_TRUE(peer);
    std::unique_ptr<Stream> accepted;
    EXPECT_TRUE(Await([&] {
      int error = 0;
      accepted = (*listener)->Accept(&error);
      return accepted != nullptr;
    }));
    RawPeer raw(std::move(accepted));
    EXPECT_TRUE(Await([&] { return raw.Read() && !raw.read.empty(); }));
    say(raw);
    return Take(caller_, Kind::kLeft, *peer).status.code();
  };
  EXPECT_EQ(answer([](RawPeer&) {}), Code::kUnavailable);
  EXPECT_EQ(answer([](RawPeer& raw) { raw = RawPeer(nullptr); }), Code::kUnavailable);
  EXPECT_EQ(answer([](RawPeer& raw) { raw.Say("HTTP/1.1 400 Bad Request\r\n\r\n"); }),
            Code::kCorrupt);
  EXPECT_EQ(answer([](RawPeer& raw) { raw.Say({.kind = MessageKind::kRefuse}); }),
            Code::kUnavailable);
  EXPECT_EQ(answer([&](RawPeer& raw) {
              raw.Say({.kind = MessageKind::kHello, .body = HelloOf(FabricKind{7})});
            }),
            Code::kUnavailable);
  ExpectUnharmed();
}

INSTANTIATE_TEST_SUITE_P(Sockets, StreamEndpointTest, testing::ValuesIn(SocketBackends()),
                         NameOfBackend);

}  // namespace
}  // namespace skep::rma
