#include "client/remote.h"

#include <chrono>
#include <functional>
#include <new>
#include <thread>
#include <utility>

#include "base/varint.h"

namespace skep::client {
namespace {

constexpr uint32_t kConnectionsMax = 256;
constexpr auto kSavePause = std::chrono::milliseconds(5);

}  // namespace

Remote::Remote(const ConnectOptions& options, Network& network, Clock& clock) : options_(options) {
  for (uint32_t i = 0; i < options.connections; ++i) {
    // Message ids are of one connection, and so is the client id.
    connections_.push_back(std::make_unique<Connection>(options_, network, clock));
  }
}

Result<std::unique_ptr<Remote>> Remote::Connect(const ConnectOptions& options, Network& network,
                                                Clock& clock) {
  if (options.connections == 0 || options.connections > kConnectionsMax) {
    return Fail(Code::kInvalidArgument, "a store has 1 to 256 connections", kConnectionsMax);
  }
  auto remote = std::unique_ptr<Remote>(new Remote(options, network, clock));
  for (const auto& connection : remote->connections_) {
    if (Status s = connection->Connect(); !s.ok()) return Fail(s);
  }
  if (options.one_sided.empty()) return remote;
  auto sessions = LeafSessions::Connect(options.one_sided, options.connections, clock);
  if (!sessions) return Fail(sessions.error());
  remote->leaf_sessions_ = std::move(*sessions);
  return remote;
}

size_t Remote::IndexForThread() const {
  if (connections_.size() == 1) return 0;
  static std::atomic<size_t> threads{0};
  thread_local const size_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return number % connections_.size();
}

void FillMessage(Message& message, packed::Kind kind, uint32_t keyspace, std::string_view payload) {
  const size_t begin = packed::BeginMessage(
      message.bytes, {.kind = kind, .keyspace = static_cast<uint16_t>(keyspace)});
  message.bytes.append(payload);
  packed::EndMessage(message.bytes, begin);
  message.may_repeat = true;
}

Result<std::string> Remote::Ask(packed::Kind kind, uint32_t keyspace, std::string_view payload,
                                size_t connection, uint32_t* answered_on) {
  Message message;
  FillMessage(message, kind, keyspace, payload);
  connections_[connection]->Begin(message);
  if (Status s = connections_[connection]->Await(message); !s.ok()) return Fail(s);
  if (answered_on != nullptr) *answered_on = message.generation;
  return std::string(message.payload());
}

void Remote::Tell(packed::Kind kind, uint32_t keyspace, uint64_t number, size_t connection) {
  try {
    std::string payload;
    AppendVarint(payload, number);
    Message message;
    FillMessage(message, kind, keyspace, payload);
    connections_[connection]->Begin(message);
    connections_[connection]->Abandon(message);
  } catch (const std::bad_alloc&) {
    // The snapshot or watch ends with its connection.
  }
}

Status Remote::Save() {
  uint64_t number = 0;
  do {
    std::string payload;
    AppendVarint(payload, number);
    const auto reply = Ask(packed::Kind::kSave, 0, payload, IndexForThread());
    if (!reply) return reply.error();
    std::string_view left = *reply;
    if (!TakeVarint(left, &number)) return {Code::kCorrupt, "the reply is malformed"};
    if (number != 0) std::this_thread::sleep_for(kSavePause);
  } while (number != 0);
  return {};
}

}  // namespace skep::client
