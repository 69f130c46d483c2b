// stepped_network.h: a network for one client in one thread. A client waits in Poller::Wait, and
// there everything else happens: its server does what there is to do, and if that is nothing, the
// simulated time passes. So one call of a client runs a whole world, the same way each time,
// without real waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/network.h"
#include "sim/sim_clock.h"

namespace skep {

// A connection of the client, made by the world that plays its server.
class SteppedStream : public Stream {
 public:
  virtual bool Readable() const = 0;
  virtual bool Writable() const = 0;
  Address peer() const override { return "127.0.0.1:6379"; }
  Address local() const override { return "127.0.0.1:32768"; }
};

// Everything but the client. Thread safety: one owner, as all of this file.
class SteppedWorld {
 public:
  virtual ~SteppedWorld() = default;
  // Returns null if the connection is refused.
  virtual std::unique_ptr<SteppedStream> Connect() = 0;
  // Does a bounded piece of work. Returns false if there is nothing to do before time passes.
  virtual bool Step() = 0;

  SimClock& clock() { return clock_; }
  uint64_t now_ms() { return clock_.MonotonicMs(); }

 private:
  SimClock clock_;
};

class SteppedNetwork final : public Network {
 public:
  explicit SteppedNetwork(SteppedWorld& world) : world_(world) {}

  // Called whenever a client waits; it may use the client, as another thread would.
  void set_other(std::function<void()> other) { other_ = std::move(other); }

  Result<std::unique_ptr<Listener>> Listen(const Address&) override {
    return Fail(Code::kNotSupported, "only clients");
  }
  Result<std::unique_ptr<Stream>> Connect(const Address&, int) override {
    auto stream = world_.Connect();
    if (stream == nullptr) return Fail(Code::kIo, "cannot connect", ECONNREFUSED);
    return std::unique_ptr<Stream>(std::move(stream));
  }
  Result<std::unique_ptr<DatagramSocket>> BindDatagrams(const Address&) override {
    return Fail(Code::kNotSupported, "only streams");
  }
  Result<std::unique_ptr<DatagramSocket>> ConnectDatagrams(const Address&) override {
    return Fail(Code::kNotSupported, "only streams");
  }
  std::unique_ptr<Poller> NewPoller() override { return std::make_unique<SteppedPoller>(*this); }

 private:
  class SteppedPoller final : public Poller {
   public:
    explicit SteppedPoller(SteppedNetwork& network) : network_(network) {}

    Status Add(Stream& stream, void* tag, bool want_read, bool want_write) override {
      entries_.push_back({static_cast<SteppedStream*>(&stream), tag, want_read, want_write});
      return {};
    }
    Status Change(Stream& stream, void* tag, bool want_read, bool want_write) override {
      const auto entry = std::ranges::find(entries_, &stream, &Entry::stream);
      SKEP_CHECK(entry != entries_.end());
      *entry = {static_cast<SteppedStream*>(&stream), tag, want_read, want_write};
      return {};
    }
    void Remove(Stream& stream) override {
      std::erase_if(entries_, [&](const Entry& entry) { return entry.stream == &stream; });
    }
    Status Add(Listener&, void*) override { return Unsupported(); }
    void Remove(Listener&) override {}
    Status Add(DatagramSocket&, void*) override { return Unsupported(); }
    void Remove(DatagramSocket&) override {}

    std::span<const ReadyEvent> Wait(int timeout_ms) override {
      constexpr uint64_t kMs = 1'000'000;
      SteppedWorld& world = network_.world_;
      const uint64_t until_ms = world.now_ms() + static_cast<uint64_t>(std::max(timeout_ms, 0));
      while (true) {
        if (network_.other_) network_.other_();
        Collect();
        if (!ready_.empty() || std::exchange(woken_, false)) return ready_;
        if (world.Step()) continue;
        Collect();
        if (!ready_.empty() || world.now_ms() >= until_ms) return ready_;
        world.clock().Advance(kMs - world.clock().MonotonicNs() % kMs);
      }
    }
    void Wake() override { woken_ = true; }

   private:
    struct Entry {
      SteppedStream* stream;
      void* tag;
      bool want_read, want_write;
    };

    static Status Unsupported() { return {Code::kNotSupported, "only streams"}; }
    void Collect() {
      ready_.clear();
      for (const Entry& entry : entries_) {
        const bool readable = entry.want_read && entry.stream->Readable();
        const bool writable = entry.want_write && entry.stream->Writable();
        if (readable || writable) ready_.push_back({entry.tag, readable, writable});
      }
    }

    SteppedNetwork& network_;
    std::vector<Entry> entries_;
    std::vector<ReadyEvent> ready_;
    bool woken_ = false;
  };

  SteppedWorld& world_;
  std::function<void()> other_;
};

}  // namespace skep
