// expiry_test_server.h: a server for tests of `skep-bench expiry` that misbehaves on demand.
//
// It has one thread, listens on loopback, and knows GET, SET (PXAT), TIME and INFO. Keys are
// reclaimed all at once, at a chosen time after the last deadline.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "bench/loopback_listener.h"
#include "wire/resp_decoder.h"

namespace skep::bench {

class ExpiryTestServer {
 public:
  struct Behaviour {
    uint64_t clock_lead_ms = 0;            // of its clock, before the machine's
    uint64_t reclaim_delay_ms = 0;         // after the last deadline
    uint64_t stall_ms = 0;                 // once, some time after the first deadline
    uint64_t first_deadline_pause_ms = 0;  // before it answers the first SET with a deadline
    bool loses_keys = false;               // a GET finds nothing
    bool hangs_up = false;                 // at the first GET
    bool refuses_deadlines = false;
  };
  static constexpr uint64_t kStallAfterMs = 200;  // after the first deadline

  explicit ExpiryTestServer(const Behaviour& behaviour) : behaviour_(behaviour) {
    thread_ = std::jthread([this](std::stop_token stop) { Serve(std::move(stop)); });
  }

  uint16_t port() const { return listener_.port(); }
  // Ends the server; its keys can be read afterwards.
  void Stop() {
    thread_.request_stop();
    thread_.join();
  }
  size_t keys() const { return values_.size(); }
  size_t keys_with_deadline() const { return deadlines_.size(); }
  // Stores a key that expires in an hour. To be called before any client connects.
  void AddForeignDeadline() { foreign_.store(true); }

 private:
  struct Client {
    explicit Client(FileDescriptor accepted) : socket(std::move(accepted)) {}
    FileDescriptor socket;
    RespDecoder decoder;
    std::string in;
    bool gone = false;
  };

  void Serve(std::stop_token stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> polled = {{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0}};
      for (const Client& client : clients_) {
        polled.push_back({.fd = client.socket.get(), .events = POLLIN, .revents = 0});
      }
      poll(polled.data(), polled.size(), 5);
      Tick();
      for (size_t i = 1; i < polled.size(); ++i) {
        if (polled[i].revents != 0) Read(clients_[i - 1]);
      }
      std::erase_if(clients_, [](const Client& client) { return client.gone; });
      if (polled[0].revents != 0) clients_.emplace_back(listener_.Accept());
    }
  }

  uint64_t NowMs() const { return SystemClock().WallUs() / 1000 + behaviour_.clock_lead_ms; }

  // Does what is due by now.
  void Tick() {
    if (deadlines_.empty()) return;
    const auto [first, last] = std::ranges::minmax_element(deadlines_, {}, &Deadline::second);
    if (behaviour_.stall_ms != 0 && NowMs() >= first->second + kStallAfterMs) {
      SleepMs(std::exchange(behaviour_.stall_ms, 0));
    }
    if (NowMs() < last->second + behaviour_.reclaim_delay_ms) return;
    for (const auto& [key, at_ms] : deadlines_) values_.erase(key);
    deadlines_.clear();
  }

  void Read(Client& client) {
    char buffer[65536];
    const ssize_t got = recv(client.socket.get(), buffer, sizeof(buffer), 0);
    if (got <= 0) {
      client.gone = true;
      return;
    }
    client.in.append(buffer, static_cast<size_t>(got));
    std::string out;
    std::vector<std::string_view> args;
    size_t at = 0;
    while (at < client.in.size() && !client.gone) {
      const std::string_view rest = std::string_view(client.in).substr(at);
      if (client.decoder.Next(rest, {}, args) != RespDecoder::Event::kCommand) break;
      Answer(args, client, out);
      at += client.decoder.consumed();
    }
    client.in.erase(0, at);
    send(client.socket.get(), out.data(), out.size(), MSG_NOSIGNAL);
  }

  void Answer(const std::vector<std::string_view>& args, Client& client, std::string& out) {
    if (args[0] == "SET") {
      out += Set(args) ? "+OK\r\n" : "-ERR refused\r\n";
    } else if (args[0] == "GET") {
      client.gone = behaviour_.hangs_up;
      const auto found = values_.find(std::string(args[1]));
      out += behaviour_.loses_keys || found == values_.end() ? "$-1\r\n" : Bulk(found->second);
    } else if (args[0] == "TIME") {
      out += "*2\r\n" + Bulk(std::to_string(NowMs() / 1000)) +
             Bulk(std::to_string(NowMs() % 1000 * 1000));
    } else {
      out +=
          Bulk(fmt::format("# All\r\nredis_version:fake\r\nused_memory:{}\r\nused_memory_rss:{}\r\n"
                           "db0:keys={},expires={},avg_ttl=0\r\n",
                           values_.size() * 100, values_.size() * 200, values_.size(),
                           deadlines_.size() + (foreign_.load() ? 1 : 0)));
    }
  }

  bool Set(const std::vector<std::string_view>& args) {
    std::string key(args[1]);
    if (args.size() == 5) {
      if (behaviour_.refuses_deadlines) return false;
      SleepMs(std::exchange(behaviour_.first_deadline_pause_ms, 0));
      deadlines_[key] = std::stoull(std::string(args[4]));
    }
    values_[std::move(key)] = args[2];
    return true;
  }

  static std::string Bulk(std::string_view bytes) {
    return fmt::format("${}\r\n{}\r\n", bytes.size(), bytes);
  }
  static void SleepMs(uint64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

  using Deadline = std::pair<const std::string, uint64_t>;

  Behaviour behaviour_;
  const LoopbackListener listener_;
  std::atomic<bool> foreign_ = false;
  // Only the thread uses these until it has ended.
  std::vector<Client> clients_;
  std::map<std::string, std::string> values_;
  std::map<std::string, uint64_t> deadlines_;
  std::jthread thread_;
};

}  // namespace skep::bench
