// sim_endpoint.h: an endpoint of the simulated fabric (sim_fabric.h).
//
// What happens to it waits in its inbox until it polls. Owner: that of its fabric.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rma/fabric.h"
#include "rma/hello.h"
#include "rma/testing/sim_fabric.h"

namespace skep::rma {

class SimEndpoint final : public Endpoint {
 public:
  SimEndpoint(SimFabric& fabric, const EndpointOptions& options);
  ~SimEndpoint() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  Address address() const override { return options_.listen; }
  Result<PeerId> Connect(const Address& address, int timeout_ms) override;
  void Disconnect(PeerId peer) override;
  uint64_t RegionBytes(PeerId peer, uint32_t region) const override;
  void Post(PeerId peer, uint64_t token, std::span<const Operation> operations) override;
  bool Abandon(PeerId peer, uint64_t token) override;
  void Call(PeerId peer, uint64_t token, std::string_view request) override;
  void Reply(PeerId peer, uint64_t token, std::string_view reply) override;
  std::span<const Event> Poll(int timeout_ms) override;
  void Wake() override { is_woken_ = true; }
  bool Fence(PeerId peer) override;

  // Whether the next Poll has something to return, or to accept.
  bool HasEvents() const { return !inbox_.empty() || is_woken_; }
  // Calls visit(bytes) for what the next Poll returns: messages, and others without bytes.
  template <typename Visit>
  void ForEachWaiting(Visit visit) const {
    for (const Item& item : inbox_) visit(std::string_view(item.bytes));
  }
  std::byte* RegionBegin(uint32_t region) const { return options_.regions[region].memory->begin(); }

 private:
  friend class SimFabric;
  using Link = std::shared_ptr<SimLink>;

  struct Item {
    Event event = {};
    std::string bytes = {};
    Link link = {};              // with a message: that it has come by. Else:
    bool is_connecting = false;  // somebody connects by this link
  };
  // A link, and which of its sides this endpoint is.
  struct End {
    Link link;
    int side = 0;
  };

  End* Find(PeerId peer);
  // Null if it is not joined.
  End* FindJoined(PeerId peer);
  PeerId Add(const Link& link, int side);
  void Push(const Event& event, std::string bytes = {}, const Link& link = {});
  void PushDone(PeerId peer, uint64_t token, Status status);
  void Accept(const Link& link);
  Status Check(const End* end, std::span<const Operation> operations) const;
  std::shared_ptr<SimPost> MakePost(uint64_t token, std::span<const Operation> operations);
  size_t MessageBytesMax(const End& end) const;

  SimFabric& fabric_;
  const EndpointOptions options_;
  const Capabilities capabilities_;
  std::vector<RegionExtent> regions_;
  std::map<PeerId, End> peers_;  // those that have left, too: their writes may be late
  PeerId last_peer_ = 0;
  uint32_t accepted_ = 0;  // and joined
  bool is_woken_ = false;
  std::deque<Item> inbox_;
  std::vector<Item> returned_items_;
  std::vector<Event> returned_;
};

}  // namespace skep::rma
