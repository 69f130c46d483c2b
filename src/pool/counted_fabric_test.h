// counted_fabric_test.h: a fabric whose endpoints stop sending after so many messages, as if their
// process had been killed before the next one, or break a connection instead of a reply.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "rma/fabric.h"

namespace skep::pool {

// The messages of one process.
struct MessageCount {
  uint64_t sent = 0;
  uint64_t sent_max = UINT64_MAX;
  bool is_dead = false;  // it has wanted to send one more
  int wait_ms = 0;       // that the last Poll was to take at most
  uint64_t posts = 0;
  bool counts_posts = false;          // they are messages, too
  std::function<void()> before_each;  // if any: called before each message is counted
  // The first reply after so many breaks its connection instead.
  uint64_t breaks_after = UINT64_MAX;

  bool Spend() {
    if (before_each) before_each();
    if (sent == sent_max) is_dead = true;
    if (!is_dead) ++sent;
    return !is_dead;
  }
};

class CountedEndpoint final : public rma::Endpoint {
 public:
  CountedEndpoint(std::unique_ptr<rma::Endpoint> inner, MessageCount& count)
      : inner_(std::move(inner)), count_(count) {}

  const rma::Capabilities& capabilities() const override { return inner_->capabilities(); }
  Address address() const override { return inner_->address(); }
  Result<rma::PeerId> Connect(const Address& address, int timeout_ms) override {
    return inner_->Connect(address, timeout_ms);
  }
  void Disconnect(rma::PeerId peer) override { inner_->Disconnect(peer); }
  uint64_t RegionBytes(rma::PeerId peer, uint32_t region) const override {
    return inner_->RegionBytes(peer, region);
  }
  void Post(rma::PeerId peer, uint64_t token, std::span<const rma::Operation> operations) override {
    ++count_.posts;
    // A Post to nobody ends at once.
    if (count_.counts_posts && !count_.Spend()) inner_->Disconnect(peer);
    inner_->Post(peer, token, operations);
  }
  void Call(rma::PeerId peer, uint64_t token, std::string_view request) override {
    if (count_.Spend()) inner_->Call(peer, token, request);
  }
  void Reply(rma::PeerId peer, uint64_t token, std::string_view reply) override {
    if (count_.sent >= count_.breaks_after) {
      count_.breaks_after = UINT64_MAX;
      return inner_->Disconnect(peer);
    }
    if (count_.Spend()) inner_->Reply(peer, token, reply);
  }
  std::span<const rma::Event> Poll(int timeout_ms) override {
    count_.wait_ms = timeout_ms;
    return inner_->Poll(timeout_ms);
  }
  void Wake() override { inner_->Wake(); }
  bool Fence(rma::PeerId peer) override { return inner_->Fence(peer); }

 private:
  const std::unique_ptr<rma::Endpoint> inner_;
  MessageCount& count_;
};

// `inner` and `count` outlive its endpoints.
class CountedFabric final : public rma::Fabric {
 public:
  CountedFabric(rma::Fabric& inner, MessageCount& count) : inner_(inner), count_(count) {}
  Result<std::unique_ptr<rma::Endpoint>> Open(const rma::EndpointOptions& options) override {
    auto endpoint = inner_.Open(options);
    if (!endpoint) return Fail(endpoint.error());
    return std::make_unique<CountedEndpoint>(std::move(*endpoint), count_);
  }

 private:
  rma::Fabric& inner_;
  MessageCount& count_;
};

}  // namespace skep::pool
