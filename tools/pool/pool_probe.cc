#include "tools/pool/pool_probe.h"

#include "base/clock.h"

namespace skep {
namespace {

constexpr int kPollMs = 10;

}  // namespace

Result<std::unique_ptr<PoolProbe>> PoolProbe::Open(rma::Fabric& fabric) {
  auto endpoint = fabric.Open({});
  if (!endpoint) return Fail(endpoint.error());
  return std::unique_ptr<PoolProbe>(new PoolProbe(std::move(*endpoint)));
}

std::optional<std::string> PoolProbe::Ask(const Address& address, std::string_view request,
                                          int timeout_ms) {
  const auto peer = endpoint_->Connect(address, timeout_ms);
  if (!peer) return std::nullopt;
  const uint64_t until_ms = SystemClock().MonotonicMs() + static_cast<uint64_t>(timeout_ms);
  std::optional<std::string> reply;
  bool has_left = false;
  while (!reply && !has_left && SystemClock().MonotonicMs() < until_ms) {
    for (const rma::Event& event : endpoint_->Poll(kPollMs)) {
      if (event.peer != *peer) continue;
      if (event.kind == rma::Event::Kind::kJoined) endpoint_->Call(*peer, 1, request);
      if (event.kind == rma::Event::Kind::kReply && event.status.ok()) reply = event.bytes;
      if (event.kind == rma::Event::Kind::kLeft) has_left = true;
    }
  }
  endpoint_->Disconnect(*peer);
  return reply;
}

}  // namespace skep
