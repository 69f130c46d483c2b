// pool_worlds.h: where a pool of a test lives: a fabric, and an address for each of its servers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/network.h"
#include "base/temporary_directory_test.h"
#include "pool/testing/local_pool.h"
#include "rma/mem_fabric.h"
#include "rma/tcp_fabric.h"
#ifdef SKEP_OFI
#include "ofi/ofi_fabric.h"
#endif

namespace skep::pool {

struct MemWorld {
  TemporaryDirectory directory;
  rma::MemFabric fabric;
  Address AddressOf(uint32_t server) const {
    return "unix:" + directory.path() + "/" + std::to_string(server);
  }
};

struct TcpWorld {
  rma::TcpFabric fabric{SocketNetwork(), SystemClock()};
  Address AddressOf(uint32_t) const { return "127.0.0.1:0"; }
};

#ifdef SKEP_OFI
// Over a provider of libfabric that is in each of its packages.
struct OfiTcpWorld {
  std::unique_ptr<rma::Fabric> made = rma::OfiFabric::Make("tcp").value();
  rma::Fabric& fabric = *made;
  Address AddressOf(uint32_t) const { return "127.0.0.1:0"; }
};

template <template <typename...> typename List>
using AllWorlds = List<MemWorld, TcpWorld, OfiTcpWorld>;
#else
template <template <typename...> typename List>
using AllWorlds = List<MemWorld, TcpWorld>;
#endif
// For tests of many threads: beside libfabric's own, on two processors, they would wait for too
// long.
template <template <typename...> typename List>
using OwnWorlds = List<MemWorld, TcpWorld>;

// Threads that wait for a processor may take long.
inline constexpr PoolTimes kPatientTimes = {.read_ns_max = 2'000'000'000,
                                            .lease_ns = 2'000'000'000};
inline constexpr PoolEngineOptions kPatientEngine = {.timeout_ms = 100'000};

// `world` outlives the pool.
template <typename World>
LocalPoolOptions PoolOptionsOf(const World& world, const PoolTimes& times = kPatientTimes) {
  return {.times = times, .address = [&world](uint32_t server) { return world.AddressOf(server); }};
}

}  // namespace skep::pool
