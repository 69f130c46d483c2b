// remote.h: a server as a store sees it: some connections, and an engine for each of its keyspaces.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "client/connection.h"
#include "client/leaf_sessions.h"
#include "engine/engine.h"
#include "wire/packed_control.h"
#include "wire/packed_request.h"

namespace skep::client {

// Makes a message that is no batch, and may be sent again.
void FillMessage(Message& message, packed::Kind kind, uint32_t keyspace, std::string_view payload);

// Thread-safe.
class Remote {
 public:
  // Connects.
  //   kInvalidArgument  options.connections is 0
  //   and the errors of Connection::Connect, and with options.one_sided of LeafSessions::Connect
  static Result<std::unique_ptr<Remote>> Connect(const ConnectOptions& options, Network& network,
                                                 Clock& clock);

  uint32_t keyspaces() const { return connections_[0]->hello().keyspaces; }
  uint32_t message_bytes_max() const { return connections_[0]->hello().message_bytes_max; }
  uint32_t operations_max() const { return connections_[0]->hello().operations_max; }
  bool gives_parts() const {
    return (connections_[0]->hello().features & packed::kGivesParts) != 0;
  }
  const ConnectOptions& options() const { return options_; }

  size_t connections() const { return connections_.size(); }
  Connection& connection(size_t index) { return *connections_[index]; }
  // The index of the connection that the calling thread uses.
  size_t IndexForThread() const;

  // Null without options.one_sided.
  LeafSessions* leaf_sessions() { return leaf_sessions_.get(); }

  // Sends a message that is no batch and waits for its reply's payload. *answered_on, if given, is
  // set to the generation of the connection on which the reply came.
  Result<std::string> Ask(packed::Kind kind, uint32_t keyspace, std::string_view payload,
                          size_t connection, uint32_t* answered_on = nullptr);
  // Sends a message whose payload is this number, and waits for no reply. Without memory it does
  // nothing.
  void Tell(packed::Kind kind, uint32_t keyspace, uint64_t number, size_t connection);
  // As Store::SaveSnapshot.
  Status Save();

 private:
  Remote(const ConnectOptions& options, Network& network, Clock& clock);

  const ConnectOptions options_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::unique_ptr<LeafSessions> leaf_sessions_;  // one for each connection
};

}  // namespace skep::client
