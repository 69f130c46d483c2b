// breaking_world.h: a real server whose client's connections break at a chosen byte, in a world of
// one thread (stepped_network.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "server/server.h"
#include "sim/simulation.h"
#include "stepped_network.h"

namespace skep {

// A breakage: what happens at the n-th byte of all that the client has sent, or received, so far.
struct Breakage {
  enum class Way : uint8_t { kSent, kReceived };
  enum class What : uint8_t {
    kCut,      // the connection breaks; earlier bytes have arrived
    kStall,    // nothing passes any more, and no end of stream comes
    kRestart,  // the server's process ends, and another one begins
    kAway,     // as kRestart, but the new process begins some time later
    kForget,   // as kCut; then so many other clients come that the server forgets this one
  };
  Way way = Way::kSent;
  uint64_t at = UINT64_MAX;  // number of bytes before it
  What what = What::kCut;
};

class BreakingWorld final : public SteppedWorld {
 public:
  static constexpr uint64_t kAwayMs = 50;

  BreakingWorld() : network_(1, clock(), trace_, Quick()) { Start(); }

  // Plans breakages, in order.
  void Plan(std::vector<Breakage> breakages) { plan_ = std::move(breakages); }
  size_t left() const { return plan_.size(); }
  uint64_t sent() const { return bytes_[0]; }
  uint64_t received() const { return bytes_[1]; }
  uint64_t connections() const { return connections_; }

  // Returns what was ever added to the counter `key`, in all processes of the server.
  int64_t Added(const std::string& key) { return lost_[key] + CounterOf(key); }

  std::unique_ptr<SteppedStream> Connect() override {
    if (server_ == nullptr) return nullptr;
    auto inner = network_.Connect(kAddress, 0);
    if (!inner) return nullptr;
    ++connections_;
    return std::make_unique<BreakingStream>(*this, std::move(*inner));
  }
  bool Step() override {
    if (server_ == nullptr && now_ms() >= back_ms_) Start();
    if (server_ == nullptr) return false;
    clock().Advance(1);  // bytes sent arrive
    return server_->worker(0).Turn(0);
  }

  Server& server() { return *server_; }

 private:
  static constexpr const char* kAddress = "127.0.0.1:6379";

  class BreakingStream final : public SteppedStream {
   public:
    BreakingStream(BreakingWorld& world, std::unique_ptr<Stream> inner)
        : world_(world), inner_(std::move(inner)) {}

    ssize_t Read(char* to, size_t bytes) override {
      if (is_stalled_) return -EAGAIN;
      if (inner_ == nullptr) return -ECONNRESET;
      const uint64_t most = world_.Before(Breakage::Way::kReceived);
      if (most == 0) return Broken() ? -EAGAIN : -ECONNRESET;
      const ssize_t got = inner_->Read(to, std::min<uint64_t>(bytes, most));
      if (got > 0) world_.bytes_[1] += static_cast<uint64_t>(got);
      return got;
    }
    ssize_t Write(std::string_view bytes) override {
      if (is_stalled_) return static_cast<ssize_t>(bytes.size());  // they fill the socket's buffer
      if (inner_ == nullptr) return -EPIPE;
      const uint64_t most = world_.Before(Breakage::Way::kSent);
      if (most == 0) return Broken() ? static_cast<ssize_t>(bytes.size()) : -EPIPE;
      const ssize_t sent = inner_->Write(bytes.substr(0, most));
      if (sent > 0) world_.bytes_[0] += static_cast<uint64_t>(sent);
      return sent;
    }
    void FinishSending() override { inner_->FinishSending(); }
    bool Readable() const override {
      if (is_stalled_) return false;
      return inner_ == nullptr || static_cast<const SimStream&>(*inner_).Readable();
    }
    bool Writable() const override {
      return is_stalled_ || inner_ == nullptr || static_cast<const SimStream&>(*inner_).Writable();
    }

   private:
    // Makes the next breakage happen. Returns whether the connection stalls.
    bool Broken() {
      const Breakage::What what = world_.plan_.front().what;
      world_.plan_.erase(world_.plan_.begin());
      is_stalled_ = what == Breakage::What::kStall;
      if (!is_stalled_) inner_.reset();
      if (what == Breakage::What::kForget) world_.Forget();
      if (what == Breakage::What::kRestart || what == Breakage::What::kAway) {
        // The server executes what it has received, as it may have done before it ended.
        while (world_.Step()) {
        }
        world_.Stop();
        world_.back_ms_ = world_.now_ms() + (what == Breakage::What::kAway ? kAwayMs : 0);
      }
      return is_stalled_;
    }

    BreakingWorld& world_;
    std::unique_ptr<Stream> inner_;  // null: the connection is broken
    bool is_stalled_ = false;
  };

  // Returns how many bytes pass in that direction before the next breakage.
  uint64_t Before(Breakage::Way way) const {
    if (plan_.empty() || plan_.front().way != way) return UINT64_MAX;
    return plan_.front().at - std::min(plan_.front().at, bytes_[static_cast<size_t>(way)]);
  }

  static SimNetworkOptions Quick() {
    return {
        .delay_ns_min = 0, .delay_ns_max = 0, .segment_bytes_max = 1 << 20, .short_writes_ppm = 0};
  }

  void Start() {
    ServerOptions options;
    options.bind = {"127.0.0.1"};
    options.workers = 1;
    options.logfile = "log";
    options.databases = 2;
    options.maxmemory = 32 << 20;  // about a thousand clients are remembered then
    const Environment environment{clock(), random_, disk_, network_};
    server_ = std::make_unique<Server>(options, environment);
    SKEP_CHECK(server_->Start().ok());
  }
  // Makes the server forget the client, which has no connection any more.
  void Forget() {
    while (Step()) {
    }
    SKEP_CHECK(server_->connections() == 0);
    ReplyMemory& replies = server_->state().replies();
    for (size_t i = 0; i <= replies.clients_max(); ++i) {
      ReplyMemory::Reply reply;
      uint64_t first_new = 0;
      const uint64_t client = random_.Next() | 1;
      if (replies.Begin(client, {.id = 1}, &reply, &first_new) == ReplyMemory::Known::kNew) {
        replies.Finish(client, 1, "x", 0);
      }
    }
  }
  void Stop() {
    for (const char* key : {"a", "b", "c"}) lost_[key] += CounterOf(key);
    server_.reset();
  }
  int64_t CounterOf(const std::string& key) {
    if (server_ == nullptr) return 0;
    Batch batch;
    batch.Get(key);
    server_->keyspaces().at(0).Execute(batch);
    const Outcome& outcome = batch.outcome(0);
    return outcome.verdict == Verdict::kDone ? std::stoll(std::string(outcome.value)) : 0;
  }

  Trace trace_;
  SimNetwork network_;
  SimFileSystem disk_{1, trace_};
  SeededRandom random_{1};
  std::unique_ptr<Server> server_;
  std::vector<Breakage> plan_;
  uint64_t bytes_[2] = {0, 0};
  uint64_t connections_ = 0;
  uint64_t back_ms_ = 0;
  std::map<std::string, int64_t> lost_;  // of servers that have ended
};

}  // namespace skep
