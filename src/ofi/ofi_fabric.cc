#include "ofi/ofi_fabric.h"

#include <utility>

#include "ofi/ofi_domain.h"
#include "ofi/ofi_endpoint.h"

namespace skep::rma {

Result<std::unique_ptr<OfiFabric>> OfiFabric::Make(const std::string& provider) {
  const auto info = OfiDomain::Find(provider, "");
  if (!info) return Fail(info.error());
  return std::unique_ptr<OfiFabric>(new OfiFabric(provider, (*info)->ep_attr->max_msg_size));
}

Result<std::unique_ptr<Endpoint>> OfiFabric::Open(const EndpointOptions& options) {
  auto endpoint = std::make_unique<OfiEndpoint>(provider_, post_bytes_max_, options);
  if (const Status s = endpoint->Open(); !s.ok()) return Fail(s);
  return endpoint;
}

}  // namespace skep::rma
