// passing_endpoint.h: an endpoint that does what another one does, for tests that change a part.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "rma/fabric.h"

namespace skep::rma {

class PassingEndpoint : public Endpoint {
 public:
  explicit PassingEndpoint(std::unique_ptr<Endpoint> inner) : inner_(std::move(inner)) {}

  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  Address address() const override { return inner_->address(); }
  Result<PeerId> Connect(const Address& address, int timeout_ms) override {
    return inner_->Connect(address, timeout_ms);
  }
  void Disconnect(PeerId peer) override { inner_->Disconnect(peer); }
  uint64_t RegionBytes(PeerId peer, uint32_t region) const override {
    return inner_->RegionBytes(peer, region);
  }
  void Post(PeerId peer, uint64_t token, std::span<const Operation> operations) override {
    inner_->Post(peer, token, operations);
  }
  bool Abandon(PeerId peer, uint64_t token) override { return inner_->Abandon(peer, token); }
  void Call(PeerId peer, uint64_t token, std::string_view request) override {
    inner_->Call(peer, token, request);
  }
  void Reply(PeerId peer, uint64_t token, std::string_view reply) override {
    inner_->Reply(peer, token, reply);
  }
  std::span<const Event> Poll(int timeout_ms) override { return inner_->Poll(timeout_ms); }
  void Wake() override { inner_->Wake(); }
  bool Fence(PeerId peer) override { return inner_->Fence(peer); }

 private:
  const std::unique_ptr<Endpoint> inner_;
};

}  // namespace skep::rma
