#include "bench/hstore/stopwatch_fabric.h"

#include <map>
#include <utility>

#include "pool/messages.h"

namespace skep::bench {
namespace {

// A request or a Post.
using Key = std::pair<rma::PeerId, uint64_t>;

void Add(std::atomic<uint64_t>& sum, uint64_t ns) { sum.fetch_add(ns, std::memory_order_relaxed); }

bool IsShipment(std::string_view request) {
  return !request.empty() && request[0] == static_cast<char>(pool::MessageKind::kShip);
}

}  // namespace

class StopwatchEndpoint final : public rma::Endpoint {
 public:
  StopwatchEndpoint(std::unique_ptr<rma::Endpoint> inner, StopwatchFabric& fabric, bool is_client)
      : inner_(std::move(inner)), fabric_(fabric), is_client_(is_client) {}

  const rma::Capabilities& capabilities() const override { return inner_->capabilities(); }
  Address address() const override { return inner_->address(); }
  Result<rma::PeerId> Connect(const Address& address, int timeout_ms) override {
    const auto peer = inner_->Connect(address, timeout_ms);
    if (peer && fabric_.IsMemoryServer(address)) memory_servers_.insert(*peer);
    return peer;
  }
  void Disconnect(rma::PeerId peer) override { inner_->Disconnect(peer); }
  uint64_t RegionBytes(rma::PeerId peer, uint32_t region) const override {
    return inner_->RegionBytes(peer, region);
  }
  void Post(rma::PeerId peer, uint64_t token, std::span<const rma::Operation> operations) override {
    if (is_client_) begun_[{peer, token}] = Now();
    inner_->Post(peer, token, operations);
  }
  bool Abandon(rma::PeerId peer, uint64_t token) override { return inner_->Abandon(peer, token); }
  void Call(rma::PeerId peer, uint64_t token, std::string_view request) override {
    if (is_client_) {
      begun_[{peer, token}] = Now();
    } else if (IsShipment(request)) {
      for (auto& [key, waiting] : requests_) {
        if (waiting.shipped_ns == 0) waiting = {waiting.come_ns, Now(), 0, token};
      }
    }
    inner_->Call(peer, token, request);
  }
  void Reply(rma::PeerId peer, uint64_t token, std::string_view reply) override {
    const auto at = requests_.find({peer, token});
    if (at != requests_.end()) Answer(at->second);
    if (at != requests_.end()) requests_.erase(at);
    inner_->Reply(peer, token, reply);
  }
  std::span<const rma::Event> Poll(int timeout_ms) override {
    const auto events = inner_->Poll(timeout_ms);
    for (const rma::Event& event : events) is_client_ ? SeeAsClient(event) : SeeAsServer(event);
    return events;
  }
  void Wake() override { inner_->Wake(); }
  bool Fence(rma::PeerId peer) override { return inner_->Fence(peer); }

 private:
  // When a client's request came to an index server, and what became of it since; a time is 0 until
  // it has come.
  struct Request {
    uint64_t come_ns = 0;
    uint64_t shipped_ns = 0;
    uint64_t acknowledged_ns = 0;
    uint64_t shipment = 0;
  };

  uint64_t Now() const { return fabric_.clock_.MonotonicNs(); }

  void SeeAsClient(const rma::Event& event) {
    const bool is_done = event.kind == rma::Event::Kind::kDone;
    if (!is_done && event.kind != rma::Event::Kind::kReply) return;
    const auto at = begun_.find({event.peer, event.token});
    if (at == begun_.end()) return;
    auto& sum = !is_done                               ? fabric_.sums_.calls
                : memory_servers_.contains(event.peer) ? fabric_.sums_.kv_access
                                                       : fabric_.sums_.index_read;
    Add(sum, Now() - at->second);
    begun_.erase(at);
  }

  void SeeAsServer(const rma::Event& event) {
    if (event.kind == rma::Event::Kind::kRequest && !IsShipment(event.bytes)) {
      requests_[{event.peer, event.token}] = {.come_ns = Now()};
    }
    if (event.kind != rma::Event::Kind::kReply) return;
    for (auto& [key, waiting] : requests_) {
      const bool is_of_it = waiting.shipped_ns != 0 && waiting.acknowledged_ns == 0;
      if (is_of_it && waiting.shipment == event.token) waiting.acknowledged_ns = Now();
    }
  }

  void Answer(const Request& request) {
    const bool was_shipped = request.acknowledged_ns != 0;
    if (was_shipped) {
      Add(fabric_.sums_.queue_wait, request.shipped_ns - request.come_ns);
      Add(fabric_.sums_.log_sync, request.acknowledged_ns - request.shipped_ns);
    }
    Add(fabric_.sums_.index_op, Now() - (was_shipped ? request.acknowledged_ns : request.come_ns));
  }

  const std::unique_ptr<rma::Endpoint> inner_;
  StopwatchFabric& fabric_;
  const bool is_client_;
  std::set<rma::PeerId> memory_servers_;
  std::map<Key, uint64_t> begun_;    // of a client: when
  std::map<Key, Request> requests_;  // of an index server
};

Result<std::unique_ptr<rma::Endpoint>> StopwatchFabric::Open(const rma::EndpointOptions& options) {
  auto endpoint = inner_.Open(options);
  if (!endpoint) return Fail(endpoint.error());
  // A memory server's region is written by its clients; those of an index server are not.
  const bool is_written =
      !options.regions.empty() && options.regions[0].access == rma::Access::kReadWrite;
  if (is_written) {
    const MutexLock lock(mutex_);
    memory_servers_.insert((*endpoint)->address());
  }
  return std::make_unique<StopwatchEndpoint>(std::move(*endpoint), *this, options.listen.empty());
}

TimeParts StopwatchFabric::parts() const {
  return {.kv_access = sums_.kv_access,
          .index_read = sums_.index_read,
          .calls = sums_.calls,
          .queue_wait = sums_.queue_wait,
          .log_sync = sums_.log_sync,
          .index_op = sums_.index_op};
}

TimeParts operator-(const TimeParts& a, const TimeParts& b) {
  return {.kv_access = a.kv_access - b.kv_access,
          .index_read = a.index_read - b.index_read,
          .calls = a.calls - b.calls,
          .queue_wait = a.queue_wait - b.queue_wait,
          .log_sync = a.log_sync - b.log_sync,
          .index_op = a.index_op - b.index_op};
}

}  // namespace skep::bench
