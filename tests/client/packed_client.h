// packed_client.h: a client of the packed protocol that sends messages one by one, and returns the
// replies as they come.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "test_server.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"

namespace skep {

struct PackedReply {
  packed::Header header;
  std::string payload;

  bool failed() const { return (header.flags & packed::kFailed) != 0; }
  Status status() const {
    std::string_view left = payload;
    Status status;
    EXPECT_TRUE(packed::TakeStatus(left, &status));
    return status;
  }
};

// A client that has said hello.
class PackedClient : public RawClient {
 public:
  explicit PackedClient(const Address& address, uint64_t client = 0) : RawClient(address) {
    std::string bytes;
    packed::Append(bytes, packed::ClientHello{.client = client});
    Send(bytes);
    const std::string received = Receive(sizeof(packed::ServerHello));
    EXPECT_EQ(received.size(), sizeof(packed::ServerHello));
    if (received.size() == sizeof(hello)) hello = packed::Read<packed::ServerHello>(received);
  }

  void Send(std::string_view bytes) { RawClient::Send(bytes); }
  void Send(const Batch& batch, packed::Header header) {
    std::string bytes;
    packed::AppendBatch(bytes, header, batch);
    Send(bytes);
  }
  void Send(packed::Kind kind, std::string_view payload, uint32_t id = 1) {
    std::string bytes;
    const size_t begin = packed::BeginMessage(bytes, {.id = id, .kind = kind});
    bytes.append(payload);
    packed::EndMessage(bytes, begin);
    Send(bytes);
  }
  std::optional<PackedReply> Take() {
    const std::string header = Receive(sizeof(packed::Header));
    if (header.size() < sizeof(packed::Header)) return std::nullopt;
    PackedReply reply{.header = packed::Read<packed::Header>(header), .payload = {}};
    reply.payload = Receive(reply.header.payload_bytes);
    return reply;
  }
  // Executes a batch; no other message may be under way.
  Status Execute(Batch& batch, packed::Header header = {.id = 1}) {
    Send(batch, header);
    const auto reply = Take();
    if (!reply) return {Code::kUnavailable, "the server has hung up"};
    if (reply->failed()) return reply->status();
    payload_ = reply->payload;
    return packed::ReadReply(reply->header, payload_, batch);
  }

  packed::ServerHello hello;

 private:
  std::string payload_;
};

}  // namespace skep
