#include "tests/coordinator/link_proxy.h"

#include <errno.h>

#include <utility>

#include "base/check.h"

namespace skep {

LinkProxy::LinkProxy(const Address& server) : server_(server) {
  auto listener = SocketNetwork().Listen("127.0.0.1:0");
  SKEP_CHECK(listener.has_value());
  listener_ = std::move(*listener);
  SKEP_CHECK(poller_->Add(*listener_, nullptr).ok());
  thread_ = std::thread([this] {
    while (true) {
      poller_->Wait(1000);
      MutexLock lock(mutex_);
      if (is_stopping_) return;
      Turn();
    }
  });
}

LinkProxy::~LinkProxy() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  poller_->Wake();
  thread_.join();
}

void LinkProxy::Set(bool to_server, bool to_client) {
  MutexLock lock(mutex_);
  if (to_server && to_client) {
    for (auto& connection : connections_) connection->is_over = true;
  }
  to_server_ = to_server;
  to_client_ = to_client;
  is_refusing_ = false;
  poller_->Wake();
}

void LinkProxy::Refuse() {
  MutexLock lock(mutex_);
  for (auto& connection : connections_) connection->is_over = true;
  is_refusing_ = true;
  poller_->Wake();
}

// Few connections: all are looked at in each turn.
void LinkProxy::Turn() SKEP_NO_THREAD_SAFETY_ANALYSIS {
  Accept();
  for (auto& connection : connections_) {
    Move(*connection, *connection->client, *connection->server, to_server_);
    Move(*connection, *connection->server, *connection->client, to_client_);
    if (connection->is_over) Remove(*connection);
  }
  std::erase_if(connections_, [](const auto& connection) { return connection->is_over; });
}

void LinkProxy::Accept() SKEP_NO_THREAD_SAFETY_ANALYSIS {
  int error = 0;
  while (auto client = listener_->Accept(&error)) {
    if (is_refusing_) continue;
    auto server = SocketNetwork().Connect(server_, 1000);
    if (!server) continue;  // the client is told by the end of its connection
    auto connection = std::make_unique<Connection>();
    connection->client = std::move(client);
    connection->server = std::move(*server);
    SKEP_CHECK(poller_->Add(*connection->client, connection.get(), true, false).ok());
    SKEP_CHECK(poller_->Add(*connection->server, connection.get(), true, false).ok());
    connections_.push_back(std::move(connection));
  }
}

// The end of what comes is only passed on if bytes are.
void LinkProxy::Move(Connection& connection, Stream& from, Stream& to, bool passes) {
  char bytes[16 * 1024];
  while (!connection.is_over) {
    const ssize_t got = from.Read(bytes, sizeof(bytes));
    if (got == -EAGAIN) return;
    connection.is_over = got <= 0;
    std::string_view left(bytes, got > 0 ? static_cast<size_t>(got) : 0);
    while (passes && !left.empty() && !connection.is_over) {
      const ssize_t written = to.Write(left);
      connection.is_over = written < 0 && written != -EAGAIN;
      if (written > 0) left.remove_prefix(static_cast<size_t>(written));
    }
  }
}

void LinkProxy::Remove(Connection& connection) {
  poller_->Remove(*connection.client);
  poller_->Remove(*connection.server);
}

}  // namespace skep
