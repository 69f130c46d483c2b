#include "rma/fabrics.h"

#include <array>

#include "base/module.h"
#include "rma/mem_fabric.h"
#include "rma/tcp_fabric.h"

namespace skep::rma {
namespace {

constexpr std::string_view kOfi = "ofi:";

Result<std::unique_ptr<Fabric>> MakeOfi(const std::string& provider, std::string* problem) {
  std::string why;
  const auto make = reinterpret_cast<OfiEntry>(LoadModule("ofi", kOfiEntry, &why));
  if (make == nullptr) {
    *problem = "the fabric of libfabric cannot be loaded: " + why +
               " (the package libfabric1; to build it, libfabric-dev)";
    return Fail(Code::kNotSupported,
                "libskep-ofi, the fabric of libfabric, cannot be loaded: make pool builds it");
  }
  std::array<char, 256> told = {};
  std::unique_ptr<Fabric> fabric(make(provider.c_str(), told.data(), told.size()));
  if (fabric != nullptr) return fabric;
  *problem = "ofi:" + provider + ": " + told.data();
  return Fail(Code::kNotSupported, "libfabric has no such provider that this machine can use");
}

}  // namespace

bool IsFabricName(std::string_view name) {
  return name == "mem" || name == "tcp" || (name.starts_with(kOfi) && name.size() > kOfi.size());
}

bool ListensAtPaths(std::string_view name) { return name == "mem" || name == "ofi:shm"; }

Result<std::unique_ptr<Fabric>> MakeFabric(std::string_view name, std::string* problem) {
  if (name == "mem") return std::make_unique<MemFabric>();
  if (name == "tcp") return std::make_unique<TcpFabric>(SocketNetwork(), SystemClock());
  if (IsFabricName(name)) return MakeOfi(std::string(name.substr(kOfi.size())), problem);
  *problem = kFabricNames;
  return Fail(Code::kInvalidArgument, kFabricNames);
}

}  // namespace skep::rma
