#include "server/hot_gets.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace skep {
namespace {

constexpr uint64_t kAgeMs = 1000;

std::string TextOf(uint32_t address) {
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return text;
}

// A bit for each address of the interface that the server listens on.
uint64_t ServedOf(const ServerOptions& options, const XdpConfig& config) {
  const auto listens = [&](std::string_view host) {
    return std::ranges::find(options.bind, host) != options.bind.end();
  };
  uint64_t served = 0;
  for (uint32_t i = 0; i < XDP_ADDRESSES_MAX && config.addresses[i] != 0; ++i) {
    if (listens("0.0.0.0") || listens(TextOf(config.addresses[i]))) served |= uint64_t{1} << i;
  }
  return served;
}

}  // namespace

Result<std::unique_ptr<HotGets>> HotGets::Open(const ServerOptions& options, uint64_t instance,
                                               Random& random, std::string* problem) {
  auto lease = xdp::XdpLease::Take(options.xdp, problem);
  if (!lease) return std::unexpected(lease.error());
  const xdp::XdpOffer& offer = lease->offer();
  if (offer.config.port != options.port) {
    *problem = fmt::format("xdp {}: the helper answers on port {}, the server on {}", options.xdp,
                           offer.config.port, options.port);
    return Fail(Code::kInvalidArgument, "the helper is for another port", offer.config.port);
  }
  const uint64_t served = ServedOf(options, offer.config);
  if (served == 0) {
    *problem = fmt::format("xdp {}: bind has no address of {}, which has {}", options.xdp,
                           offer.interface, TextOf(offer.config.addresses[0]));
    return Fail(Code::kInvalidArgument, "the server does not listen on the helper's interface");
  }
  const uint64_t seed = random.Next();
  return std::unique_ptr<HotGets>(
      new HotGets(std::move(*lease), served, instance, seed, options.databases));
}

HotGets::HotGets(xdp::XdpLease lease, uint64_t served, uint64_t instance, uint64_t seed,
                 uint32_t keyspaces)
    : lease_(std::move(lease)),
      served_(served),
      instance_(instance),
      map_(lease_.map(), instance, seed) {
  for (uint32_t i = 0; i < keyspaces; ++i) writes_.emplace_back(map_, i);
}

bool HotGets::Upkeep(uint64_t monotonic_ms) {
  if (!mutex_.try_lock()) return true;  // another worker is looking
  const MutexLock lock(mutex_, std::adopt_lock);
  if (!is_attached_) return true;
  if (!lease_.HelperIsThere()) {
    StopLocked();
    return false;
  }
  if (monotonic_ms >= next_age_ms_) {
    next_age_ms_ = monotonic_ms + kAgeMs;
    map_.Age();
  }
  return true;
}

void HotGets::Stop() {
  const MutexLock lock(mutex_);
  StopLocked();
}

void HotGets::StopLocked() {
  is_attached_ = false;
  lease_.Detach();
}

std::string HotGets::interface() const {
  const MutexLock lock(mutex_);
  return is_attached_ ? lease_.offer().interface : "";
}

}  // namespace skep
