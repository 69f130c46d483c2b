// sim_cluster.h: runs the real server, its disk and its clients in one thread, from one seed.
//
//   SimCluster cluster(seed, {.config = "workers = 2\n"});
//   SimClient& client = cluster.Connect();
//   EXPECT_EQ(cluster.Ask(client, {"PING"}).text, "PONG");
//
// The server's options come from a file on the simulated disk, read by its own loader; its log is
// on that disk as well. Each worker's event loop is one actor of the simulation, each client
// another; nothing has a thread. The engine is the server's usual one, the tree, with node sizes of
// the seed, or a LaggingEngine.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/server.h"
#include "sim/simulation.h"
#include "tests/simulation/sim_client.h"

namespace skep::simulation {

struct ClusterOptions {
  std::string config;    // lines of the options file, besides address and log
  bool lagging = false;  // the engine is a LaggingEngine
  bool durable = false;  // the data is on the simulated disk, synced as the seed decides
  SimulationOptions world = {};
};

// Returns the network of this seed: from quick and smooth to slow, with tiny buffers and bytes in
// small pieces, now and then parted. No resets.
SimNetworkOptions RandomNetwork(uint64_t seed);

// Thread safety: one owner.
class SimCluster {
 public:
  static constexpr const char* kAddress = "127.0.0.1:6379";
  static constexpr const char* kConfigPath = "skep.toml";
  static constexpr const char* kLogPath = "skep.log";

  // Starts the server; stops the test program if its options are refused.
  explicit SimCluster(uint64_t seed, const ClusterOptions& options = {});
  ~SimCluster();

  Simulation& sim() { return sim_; }
  Server& server() { return *server_; }
  std::string log() { return sim_.disk().ReadAll(kLogPath).value_or(""); }
  // Returns the turns of all workers so far.
  uint64_t turns() const { return turns_; }
  bool drained();
  // Destroys the server in whatever state it is, as a kill does. Its engines must be sound.
  void DestroyServer();
  // Kills the server, maybe with the machine's power, and starts it again. It must be durable.
  void Restart(bool loses_power);

  // Connects a client that moves by itself; it lives as long as the cluster.
  SimClient& Connect(int protocol = 2);
  // Makes a client that moves when the caller's actor does.
  std::unique_ptr<SimClient> NewClient(int protocol);

  // Sends a command and runs until its reply comes. Returns the error "closed" if the connection
  // closes instead, "no reply" if a minute passes.
  RespReply Ask(SimClient& client, std::initializer_list<std::string_view> args);
  // Waits in the same way for the next reply to a command that was sent before.
  RespReply Await(SimClient& client);

  Simulation::End RunUntil(const std::function<bool()>& done,
                           std::chrono::nanoseconds limit = std::chrono::minutes(1)) {
    return sim_.RunUntil(done, limit);
  }
  void RunFor(std::chrono::nanoseconds time) {
    sim_.RunUntil([] { return false; }, time);
  }

 private:
  void Start();
  bool StepLog();
  bool TurnWorker(Worker& worker);
  bool ReleaseSome();

  const ClusterOptions options_;
  uint64_t next_log_step_ns_ = 0;
  // The members are declared in the order in which they must outlive each other.
  Simulation sim_;
  std::unique_ptr<Server> server_;
  std::vector<Simulation::ActorId> server_actors_;
  std::vector<std::unique_ptr<SimClient>> clients_;
  uint64_t turns_ = 0;
};

// Returns three letters for each type, and texts: for messages of failed expectations.
std::string Describe(const RespReply& reply);

}  // namespace skep::simulation

namespace skep {
void PrintTo(const RespReply& reply, std::ostream* out);
}  // namespace skep
