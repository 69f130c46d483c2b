#include "rma/testing/fabric_world.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/temporary_directory_test.h"
#include "rma/mem_fabric.h"
#include "rma/tcp_fabric.h"
#include "rma/testing/sim_fabric.h"
#include "sim/sim_network.h"

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

template <typename World>
FabricBackend Backend(const char* name) {
  return {.name = name, .make = [] { return std::make_unique<World>(); }};
}

}  // namespace

std::vector<FabricBackend> SocketBackends() {
  return {Backend<MemWorld>("Mem"), Backend<TcpWorld>("Tcp")};
}

std::vector<FabricBackend> AllBackends() {
  return {Backend<MemWorld>("Mem"), Backend<TcpWorld>("Tcp"), Backend<TcpSimWorld>("TcpSim"),
          Backend<SimWorld>("Sim")};
}

}  // namespace skep::rma
