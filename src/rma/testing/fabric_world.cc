#include "rma/testing/fabric_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/temporary_directory_test.h"
#include "rma/mem_fabric.h"
#include "rma/tcp_fabric.h"
#include "rma/testing/sim_fabric.h"
#include "sim/sim_network.h"
#ifdef SKEP_OFI
#include "ofi/ofi_fabric.h"
#endif

namespace skep::rma {
namespace {

void LetTheKernelWork() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

class MemWorld final : public FabricWorld {
 public:
  Fabric& fabric() override { return fabric_; }
  Address NewAddress() override {
    return fmt::format("unix:{}/{}", directory_.path(), ++last_address_);
  }
  Address NobodysAddress() override { return NewAddress(); }
  void PassTime() override { LetTheKernelWork(); }

 private:
  TemporaryDirectory directory_;
  MemFabric fabric_;
  int last_address_ = 0;
};

class TcpWorld final : public FabricWorld {
 public:
  Fabric& fabric() override { return fabric_; }
  Address NewAddress() override { return "127.0.0.1:0"; }
  Address NobodysAddress() override { return "127.0.0.1:1"; }
  void PassTime() override { LetTheKernelWork(); }

 private:
  TcpFabric fabric_{SocketNetwork(), SystemClock()};
};

class TcpSimWorld final : public FabricWorld {
 public:
  Fabric& fabric() override { return fabric_; }
  Address NewAddress() override { return "10.0.0.1:0"; }
  Address NobodysAddress() override { return "10.0.0.1:1"; }
  void PassTime() override {
    if (!clock_.AdvanceToReminder()) clock_.Advance(1'000'000);
  }
  std::string Describe() const override { return fmt::format("the network's seed: {}", seed_); }

 private:
  const uint64_t seed_ = std::random_device{}();
  SimClock clock_;
  Trace trace_;
  SimNetwork network_{seed_, clock_, trace_};
  TcpFabric fabric_{network_, clock_};
};

class SimWorld final : public FabricWorld {
 public:
  Fabric& fabric() override { return fabric_; }
  Address NewAddress() override { return fmt::format("sim:{}", ++last_address_); }
  Address NobodysAddress() override { return "sim:nobody"; }
  void PassTime() override {
    if (!clock_.AdvanceToReminder()) clock_.Advance(1'000'000);
  }
  std::string Describe() const override { return fmt::format("the fabric's seed: {}", seed_); }

 private:
  const uint64_t seed_ = std::random_device{}();
  SimClock clock_;
  Trace trace_;
  SimFabric fabric_{seed_, clock_, trace_};
  int last_address_ = 0;
};

#ifdef SKEP_OFI
class OfiWorld final : public FabricWorld {
 public:
  explicit OfiWorld(const std::string& provider)
      : is_shm_(provider == "shm"), fabric_(std::move(*OfiFabric::Make(provider))) {}

  Fabric& fabric() override { return *fabric_; }
  Address NewAddress() override {
    if (!is_shm_) return "127.0.0.1:0";
    return fmt::format("unix:{}/{}", directory_.path(), ++last_address_);
  }
  Address NobodysAddress() override { return is_shm_ ? NewAddress() : "127.0.0.1:1"; }
  void PassTime() override { LetTheKernelWork(); }

 private:
  TemporaryDirectory directory_;
  const bool is_shm_;
  std::unique_ptr<Fabric> fabric_;
  int last_address_ = 0;
};
#endif

template <typename World>
FabricBackend Backend(const char* name) {
  return {.name = name, .make = [] { return std::make_unique<World>(); }};
}

}  // namespace

std::vector<FabricBackend> SocketBackends() {
  return {Backend<MemWorld>("Mem"), Backend<TcpWorld>("Tcp")};
}

std::vector<FabricBackend> OfiBackends() {
  std::vector<FabricBackend> backends;
#ifdef SKEP_OFI
  for (const auto& [name, provider] : {std::pair("OfiTcp", "tcp"), std::pair("OfiShm", "shm")}) {
    if (const auto fabric = OfiFabric::Make(provider); !fabric) {
      std::cout << "SKIPPED " << name << ": " << fabric.error().ToString() << "\n";
      continue;
    }
    backends.push_back(
        {.name = name, .make = [provider] { return std::make_unique<OfiWorld>(provider); }});
  }
#else
  std::cout << "SKIPPED OfiTcp, OfiShm: built without libfabric-dev\n";
#endif
  return backends;
}

std::vector<FabricBackend> AllBackends() {
  std::vector<FabricBackend> backends = {Backend<MemWorld>("Mem"), Backend<TcpWorld>("Tcp"),
                                         Backend<TcpSimWorld>("TcpSim"), Backend<SimWorld>("Sim")};
  std::ranges::move(OfiBackends(), std::back_inserter(backends));
  return backends;
}

}  // namespace skep::rma
