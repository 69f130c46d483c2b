// dialer.h: connections of one endpoint to servers that are known by number, made when they are
// first wanted and again, after a pause, when they have ended.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "rma/fabric.h"

namespace skep::pool {

// Thread safety: one owner.
class Dialer {
 public:
  static constexpr uint64_t kPauseNs = 50'000'000;
  // To connect may hold the caller up for so long, which is to be far below a lease; after a
  // failure it is not tried again for ten times as long.
  static constexpr int kConnectMs = 50;
  static constexpr uint64_t kFailedPauseNs = uint64_t{10} * kConnectMs * 1'000'000;

  explicit Dialer(rma::Endpoint& endpoint) : endpoint_(endpoint) {}
  // Ends all its connections.
  ~Dialer() {
    for (auto& [server, line] : lines_) {
      if (line.peer != 0) endpoint_.Disconnect(line.peer);
    }
  }
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

  // The connection to the server; 0: there is none yet, but one is being made. At another address
  // than before it is another server.
  rma::PeerId Find(uint32_t server, const Address& address, uint64_t now_ns) {
    Line& line = lines_[server];
    if (line.peer != 0 && line.address == address) return line.is_joined ? line.peer : 0;
    if (line.peer != 0) Drop(line);
    if (line.address == address && now_ns < line.retry_ns) return 0;
    line.address = address;
    line.retry_ns = now_ns + kPauseNs;
    const auto peer = endpoint_.Connect(address, kConnectMs);
    if (peer) {
      line.peer = *peer;
      servers_[*peer] = server;
    } else {
      line.retry_ns = now_ns + kFailedPauseNs;
    }
    return 0;
  }
  // Ends the connection to a server, if there is one.
  void HangUp(uint32_t server) {
    const auto at = lines_.find(server);
    if (at != lines_.end() && at->second.peer != 0) endpoint_.Disconnect(at->second.peer);
  }
  // Takes kJoined and kLeft. Returns the server; 0: it is none of this dialer's connections.
  uint32_t Handle(const rma::Event& event) {
    const auto at = servers_.find(event.peer);
    if (at == servers_.end()) return 0;
    const uint32_t server = at->second;
    Line& line = lines_[server];
    if (event.kind == rma::Event::Kind::kJoined) {
      line.is_joined = true;
    } else if (event.kind == rma::Event::Kind::kLeft) {
      servers_.erase(at);
      if (line.peer == event.peer) line = {.address = line.address, .retry_ns = line.retry_ns};
    }
    return server;
  }

 private:
  struct Line {
    Address address;
    rma::PeerId peer = 0;  // 0: not even begun
    bool is_joined = false;
    uint64_t retry_ns = 0;
  };

  void Drop(Line& line) {
    servers_.erase(line.peer);
    endpoint_.Disconnect(line.peer);
    line.peer = 0;
    line.is_joined = false;
    line.retry_ns = 0;
  }

  rma::Endpoint& endpoint_;
  std::unordered_map<uint32_t, Line> lines_;
  std::unordered_map<rma::PeerId, uint32_t> servers_;
};

}  // namespace skep::pool
