// pool_probe.h: asks single servers of a pool, as skep-pool ctl does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/network.h"
#include "rma/fabric.h"
#include "skep/status.h"

namespace skep {

// Thread safety: one owner.
class PoolProbe {
 public:
  // `fabric` outlives it. Errors as Fabric::Open.
  static Result<std::unique_ptr<PoolProbe>> Open(rma::Fabric& fabric);

  // The reply of the server at this address to a request; nothing: none came within `timeout_ms`.
  // Connects, and ends the connection.
  std::optional<std::string> Ask(const Address& address, std::string_view request, int timeout_ms);

 private:
  explicit PoolProbe(std::unique_ptr<rma::Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}
  const std::unique_ptr<rma::Endpoint> endpoint_;
};

}  // namespace skep
