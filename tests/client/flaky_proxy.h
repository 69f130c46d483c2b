// flaky_proxy.h: passes bytes between clients and a server, and cuts their connections at random.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/network.h"

namespace skep {

// Owner: the thread that made it; a thread of its own does the work.
class FlakyProxy {
 public:
  // A connection passes at least this much, so that a client that gives up if it cannot even begin
  // does not.
  static constexpr uint64_t kBytesMin = 200;

  // Each connection is cut after a random number of bytes, `bytes_mean` on average, of both
  // directions together. `after_cut` is called, with the number of connections that are left,
  // before any client gets another one.
  FlakyProxy(const Address& server, unsigned seed, uint64_t bytes_mean,
             std::function<void(size_t left)> after_cut = {})
      : server_(server), rng_(seed), bytes_mean_(bytes_mean), after_cut_(std::move(after_cut)) {
    auto listener = SocketNetwork().Listen("127.0.0.1:0");
    SKEP_CHECK(listener.has_value());
    listener_ = std::move(*listener);
    SKEP_CHECK(poller_->Add(*listener_, nullptr).ok());
    thread_ = std::thread([this] {
      while (!stopping_.load()) Turn();
    });
  }
  ~FlakyProxy() {
    stopping_.store(true);
    poller_->Wake();
    thread_.join();
  }

  Address address() const { return listener_->address(); }
  uint64_t cuts() const { return cuts_.load(); }

 private:
  struct Side {
    std::unique_ptr<Stream> stream;
  };
  struct Pair {
    Side sides[2];
    uint64_t left;  // number of bytes until the cut
  };

  void Turn() {
    for (const ReadyEvent& event : poller_->Wait(1000)) {
      if (event.tag == nullptr) {
        Accept();
      } else if (Pair* const pair = static_cast<Pair*>(event.tag); !Pass(*pair)) {
        cut_.push_back(pair);
      }
    }
    for (Pair* const pair : cut_) Cut(*pair);
    cut_.clear();
  }

  void Accept() {
    int error = 0;
    auto client = listener_->Accept(&error);
    auto server = SocketNetwork().Connect(server_, -1);
    if (client == nullptr || !server) return;
    auto pair = std::make_unique<Pair>();
    pair->sides[0].stream = std::move(client);
    pair->sides[1].stream = std::move(*server);
    pair->left = kBytesMin + rng_() % (2 * bytes_mean_);
    for (Side& side : pair->sides) {
      SKEP_CHECK(poller_->Add(*side.stream, pair.get(), true, false).ok());
    }
    pairs_.emplace(pair.get(), std::move(pair));
  }

  // Returns false if the connection is over.
  bool Pass(Pair& pair) {
    char bytes[512];
    for (int i = 0; i < 2; ++i) {
      const ssize_t got = pair.sides[i].stream->Read(bytes, sizeof(bytes));
      if (got == -EAGAIN) continue;
      if (got <= 0) return false;
      const auto passed = std::min<uint64_t>(static_cast<uint64_t>(got), pair.left);
      const ssize_t written = pair.sides[1 - i].stream->Write({bytes, passed});
      pair.left -= passed;
      // Bytes that a side does not take at once are not kept: the connection is cut.
      if (pair.left == 0 || written != static_cast<ssize_t>(passed)) {
        ++cuts_;
        return false;
      }
    }
    return true;
  }

  void Cut(Pair& pair) {
    const auto found = pairs_.find(&pair);
    if (found == pairs_.end()) return;
    for (Side& side : pair.sides) poller_->Remove(*side.stream);
    pairs_.erase(found);
    if (after_cut_) after_cut_(pairs_.size());
  }

  const Address server_;
  std::mt19937_64 rng_;
  const uint64_t bytes_mean_;
  const std::function<void(size_t left)> after_cut_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Poller> poller_ = SocketNetwork().NewPoller();
  std::map<Pair*, std::unique_ptr<Pair>> pairs_;
  std::vector<Pair*> cut_;
  std::atomic<uint64_t> cuts_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace skep
