// test_server.h: a server in this process, on a socket of the machine, and a client that sends and
// receives plain bytes.
#pragma once

#include <string>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/temporary_directory_test.h"
#include "server/server.h"

namespace skep {

inline Environment RealEnvironment(Network& network = SocketNetwork()) {
  return {SystemClock(), SystemRandom(), PosixFileSystem(), network};
}

// A server that runs from its construction to its destruction.
class TestServer {
 public:
  // Listens on a unix socket of that path, or, if it is empty, on the port that is set or a free
  // one.
  explicit TestServer(ServerOptions options, const std::string& socket = {},
                      const EngineInfo* engine = nullptr, Network& network = SocketNetwork())
      : server_(WithAddress(std::move(options), socket), RealEnvironment(network), engine) {
    const Status started = server_.Start();
    SKEP_CHECK(started.ok());
    thread_ = std::thread([this] { SKEP_CHECK(server_.Run().ok()); });
  }
  ~TestServer() {
    server_.Stop();
    thread_.join();
  }

  Address address() const { return server_.addresses()[0]; }
  Server& server() { return server_; }

 private:
  static ServerOptions WithAddress(ServerOptions options, const std::string& socket) {
    if (options.port == ServerOptions{}.port) options.port = 0;
    options.loglevel = "warning";
    options.unixsocket = socket;
    if (!socket.empty()) options.bind.clear();
    return options;
  }

  Server server_;
  std::thread thread_;
};

// A client's connection that sends and receives any bytes.
class RawClient {
 public:
  explicit RawClient(const Address& address) : poller_(SocketNetwork().NewPoller()) {
    auto stream = SocketNetwork().Connect(address, -1);
    SKEP_CHECK(stream.has_value());
    stream_ = std::move(*stream);
    SKEP_CHECK(poller_->Add(*stream_, nullptr, true, false).ok());
  }
  ~RawClient() { poller_->Remove(*stream_); }

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = stream_->Write(bytes);
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      if (sent < 0 && sent != -EAGAIN) return;  // the server has hung up
    }
  }
  void FinishSending() { stream_->FinishSending(); }

  // Returns that many bytes, or fewer if the server hangs up, or sends nothing for five seconds.
  std::string Receive(size_t bytes) {
    std::string received(bytes, '\0');
    size_t have = 0;
    while (have < bytes) {
      poller_->Wait(5000);
      const ssize_t got = stream_->Read(received.data() + have, bytes - have);
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    received.resize(have);
    return received;
  }
  // Returns whether the server hangs up now, without another byte.
  bool IsOver() { return Receive(1).empty(); }

 private:
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace skep
