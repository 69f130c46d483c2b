// lossy_network.h: the machine's sockets, except that datagrams are lost, doubled or late.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/network.h"

namespace skep {

struct LossRates {  // of a million
  uint32_t lost = 0;
  uint32_t doubled = 0;
  uint32_t delayed = 0;  // sent together with later ones
};

// Thread safety: as SocketNetwork(). Must outlive what it makes.
class LossyNetwork final : public Network {
 public:
  LossyNetwork(const LossRates& rates, unsigned seed) : rates_(rates), seed_(seed) {}

  Result<std::unique_ptr<Listener>> Listen(const Address& address) override {
    return SocketNetwork().Listen(address);
  }
  Result<std::unique_ptr<Stream>> Connect(const Address& address, int timeout_ms) override {
    return SocketNetwork().Connect(address, timeout_ms);
  }
  Result<std::unique_ptr<DatagramSocket>> BindDatagrams(const Address& address) override {
    return Wrap(SocketNetwork().BindDatagrams(address));
  }
  Result<std::unique_ptr<DatagramSocket>> ConnectDatagrams(const Address& address) override {
    return Wrap(SocketNetwork().ConnectDatagrams(address));
  }
  std::unique_ptr<Poller> NewPoller() override { return std::make_unique<LossyPoller>(); }

  // Counts of both directions.
  uint64_t carried() const { return carried_.load(); }
  uint64_t lost() const { return lost_.load(); }

 private:
  // One direction.
  class Way {
   public:
    // Returns the datagrams that remain, in the order in which they arrive.
    std::span<const Datagram> Disturb(std::span<const Datagram> sent, LossyNetwork& network,
                                      std::minstd_rand& rng) {
      const auto draws = [&](uint32_t ppm) { return rng() % 1'000'000 < ppm; };
      const std::vector<Late> late = std::exchange(late_, {});
      kept_.clear();
      bytes_.clear();
      for (const Datagram& datagram : sent) {
        network.carried_.fetch_add(1);
        if (draws(network.rates_.lost)) {
          network.lost_.fetch_add(1);
        } else if (draws(network.rates_.delayed)) {
          late_.push_back({datagram.peer, std::string(datagram.bytes)});
        } else {
          kept_.insert(kept_.end(), draws(network.rates_.doubled) ? 2 : 1, datagram);
        }
      }
      for (const Late& one : late) {
        bytes_.push_back(one.bytes);
        kept_.push_back({.peer = one.peer, .bytes = bytes_.back()});
      }
      return kept_;
    }

   private:
    struct Late {
      DatagramPeer peer;
      std::string bytes;
    };

    std::vector<Late> late_;
    std::vector<Datagram> kept_;
    std::deque<std::string> bytes_;  // of datagrams in kept_
  };

  class LossyDatagrams final : public DatagramSocket {
   public:
    LossyDatagrams(LossyNetwork& network, std::unique_ptr<DatagramSocket> inner, unsigned seed)
        : network_(network), inner_(std::move(inner)), rng_(seed) {}

    std::span<const Datagram> Receive() override {
      return in_.Disturb(inner_->Receive(), network_, rng_);
    }
    void Send(std::span<const Datagram> datagrams) override {
      inner_->Send(out_.Disturb(datagrams, network_, rng_));
    }
    Address address() const override { return inner_->address(); }
    DatagramSocket& inner() { return *inner_; }

   private:
    LossyNetwork& network_;
    std::unique_ptr<DatagramSocket> inner_;
    std::minstd_rand rng_;
    Way in_, out_;
  };

  // A poller of the machine knows only the machine's own sockets.
  class LossyPoller final : public Poller {
   public:
    Status Add(Stream& stream, void* tag, bool want_read, bool want_write) override {
      return inner_->Add(stream, tag, want_read, want_write);
    }
    Status Change(Stream& stream, void* tag, bool want_read, bool want_write) override {
      return inner_->Change(stream, tag, want_read, want_write);
    }
    void Remove(Stream& stream) override { inner_->Remove(stream); }
    Status Add(Listener& listener, void* tag) override { return inner_->Add(listener, tag); }
    void Remove(Listener& listener) override { inner_->Remove(listener); }
    Status Add(DatagramSocket& socket, void* tag) override {
      return inner_->Add(Inner(socket), tag);
    }
    void Remove(DatagramSocket& socket) override { inner_->Remove(Inner(socket)); }
    std::span<const ReadyEvent> Wait(int timeout_ms) override { return inner_->Wait(timeout_ms); }
    void Wake() override { inner_->Wake(); }

   private:
    static DatagramSocket& Inner(DatagramSocket& socket) {
      return static_cast<LossyDatagrams&>(socket).inner();
    }

    std::unique_ptr<Poller> inner_ = SocketNetwork().NewPoller();
  };

  Result<std::unique_ptr<DatagramSocket>> Wrap(Result<std::unique_ptr<DatagramSocket>> inner) {
    if (!inner) return inner;
    return std::make_unique<LossyDatagrams>(*this, std::move(*inner), seed_ + made_.fetch_add(1));
  }

  const LossRates rates_;
  const unsigned seed_;
  std::atomic<unsigned> made_{0};
  std::atomic<uint64_t> carried_{0};
  std::atomic<uint64_t> lost_{0};
};

}  // namespace skep
