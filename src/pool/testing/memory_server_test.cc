// A memory server: who may say hello, and what a fence ends.
#include "pool/memory_server.h"

#include <gtest/gtest.h>

#include <string>

#include "pool/fields.h"
#include "pool/testing/pool_worlds.h"

namespace skep::pool {
namespace {

template <typename World>
class MemoryServerTest : public testing::Test {
 protected:
  static constexpr uint32_t kId = 9;
  static constexpr uint32_t kChunks = 2;

  // A connection of its own endpoint.
  struct Client {
    std::unique_ptr<rma::Endpoint> endpoint;
    rma::PeerId peer = 0;
    bool has_left = false;
  };
  Client Connect() {
    Client client = {.endpoint = world_.fabric.Open({}).value()};
    client.peer = client.endpoint->Connect(server_->address(), 10'000).value();
    bool has_joined = false;
    while (!has_joined) {
      for (const rma::Event& event : client.endpoint->Poll(0)) {
        has_joined |= event.kind == rma::Event::Kind::kJoined;
      }
      server_->Turn(0);
    }
    return client;
  }
  // One turn of the client and one of the server. The reply that has come; else empty.
  std::string Turn(Client& client) {
    std::string reply;
    for (const rma::Event& event : client.endpoint->Poll(0)) {
      client.has_left |= event.kind == rma::Event::Kind::kLeft;
      if (event.kind == rma::Event::Kind::kReply) reply = event.bytes;
    }
    server_->Turn(0);
    return reply;
  }
  std::string Call(Client& client, MessageKind kind, uint32_t number, uint32_t server = kId) {
    std::string request(1, static_cast<char>(kind));
    AppendVarint(request, number);
    if (kind == MessageKind::kHello) AppendVarint(request, server);
    client.endpoint->Call(client.peer, 1, request);
    std::string reply;
    while (reply.empty()) reply = Turn(client);
    return reply;
  }
  static ReplyCode CodeOf(const std::string& reply) { return static_cast<ReplyCode>(reply.at(0)); }

  World world_;
  std::unique_ptr<MemoryServer> server_ =
      MemoryServer::Open(world_.fabric, world_.AddressOf(1), kId, kChunks).value();
};

TYPED_TEST_SUITE(MemoryServerTest, AllWorlds<testing::Types>);

TYPED_TEST(MemoryServerTest, TellsHowManyChunksThereAre) {
  auto client = this->Connect();
  EXPECT_EQ(this->Call(client, MessageKind::kHello, 5), std::string({'\0', char{this->kChunks}}));
  EXPECT_EQ(this->CodeOf(this->Call(client, MessageKind::kHello, 6)), ReplyCode::kMalformed)
      << "a connection is one client's";
  EXPECT_EQ(this->CodeOf(this->Call(client, MessageKind::kScan, 5)), ReplyCode::kMalformed);
}

// A server that was at this address before is gone, and its chunks with it.
TYPED_TEST(MemoryServerTest, IsNotTakenForAnotherOne) {
  auto client = this->Connect();
  EXPECT_EQ(this->CodeOf(this->Call(client, MessageKind::kHello, 5, 8)), ReplyCode::kNotServing);
  EXPECT_EQ(this->CodeOf(this->Call(client, MessageKind::kHello, 5)), ReplyCode::kOk);
}

// H11: a client that is fenced loses its connection, and never gets another one in its name.
TYPED_TEST(MemoryServerTest, AFenceIsForEver) {
  auto server = this->Connect();
  auto client = this->Connect();
  EXPECT_EQ(this->CodeOf(this->Call(client, MessageKind::kHello, 5)), ReplyCode::kOk);
  while (this->Call(server, MessageKind::kFence, 5) != std::string("\0\1", 2)) {
    this->Turn(client);
  }
  while (!client.has_left) this->Turn(client);
  auto again = this->Connect();
  EXPECT_EQ(this->CodeOf(this->Call(again, MessageKind::kHello, 5)), ReplyCode::kUnknownClient);
  EXPECT_EQ(this->CodeOf(this->Call(again, MessageKind::kHello, 6)), ReplyCode::kOk);
}

}  // namespace
}  // namespace skep::pool
