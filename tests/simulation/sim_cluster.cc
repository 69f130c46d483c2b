#include "tests/simulation/sim_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <ostream>

#include "base/check.h"
#include "server/config_file.h"
#include "tests/simulation/lagging_engine.h"

namespace skep::simulation {
namespace {

// Writes are released at one in so many steps.
constexpr uint64_t kLagSteps = 6;

RespReply ErrorReply(std::string_view text) {
  RespReply reply;
  reply.type = RespReply::Type::kError;
  reply.text = text;
  return reply;
}

void WriteFile(FileSystem& disk, const std::string& path, std::string_view bytes) {
  auto file = disk.Open(path, FileSystem::Mode::kCreate);
  SKEP_CHECK(file.has_value() && (*file)->Append(bytes).ok() && (*file)->Sync().ok());
}

// Returns the tree of this seed: with nodes of the usual size, or small ones with a short log or
// none, so that a few hundred keys are many leaves. Any three seeds of one parity have one of each.
std::string TreeConfig(uint64_t seed) {
  constexpr std::array<const char*, 3> kConfigs = {
      "", "btree-node-bytes = 2048\nbtree-log-bytes = 128\n",
      "btree-node-bytes = 2048\nbtree-log-bytes = 0\n"};
  return kConfigs[seed / 2 % kConfigs.size()];
}

std::string DurableConfig(uint64_t seed) {
  constexpr std::array<const char*, 3> kSyncs = {"always", "everysec", "no"};
  return fmt::format(
      "dir = \"data\"\nappendfsync = \"{}\"\nlog-segment-bytes = \"16kb\"\n"
      "recovery-threads = 1\n",
      kSyncs[seed / 4 % kSyncs.size()]);
}

}  // namespace

SimNetworkOptions RandomNetwork(uint64_t seed) {
  SeededRandom random(seed);
  constexpr std::array<size_t, 4> kBuffers = {300, 4'000, 20'000, 64 * 1024};
  constexpr std::array<size_t, 4> kSegments = {3, 100, 1'500, 16 * 1024};
  constexpr std::array<uint64_t, 3> kDelays = {5'000, 50'000, 500'000};
  SimNetworkOptions network;
  network.buffer_bytes = kBuffers[random.Below(kBuffers.size())];
  network.segment_bytes_max = kSegments[random.Below(kSegments.size())];
  network.delay_ns_min = 1'000;
  network.delay_ns_max = kDelays[random.Below(kDelays.size())];
  network.short_writes_ppm = random.Chance(1, 2) ? 300'000 : 0;
  network.partitions_ppm = random.Chance(1, 2) ? 1'000 : 0;
  network.partition_ns_max = 1'000'000;
  return network;
}

SimCluster::SimCluster(uint64_t seed, const ClusterOptions& options)
    : options_(options), sim_(seed, options.world) {
  std::string config =
      fmt::format("bind = [\"127.0.0.1\"]\nport = 6379\nlogfile = \"{}\"\n", kLogPath);
  if (options.durable) config += DurableConfig(seed);
  WriteFile(sim_.disk(), kConfigPath, config + TreeConfig(seed) + options.config);
  SKEP_CHECK(sim_.disk().SyncDirectory(".").ok());
  Start();
}

SimCluster::~SimCluster() { DestroyServer(); }

void SimCluster::Start() {
  ServerOptions parsed;
  std::string error;
  const Status loaded = LoadConfig(sim_.disk(), kConfigPath, parsed, &error);
  if (!loaded.ok()) fmt::print(stderr, "{}\n", error);
  SKEP_CHECK(loaded.ok());

  const Environment world{sim_.clock(), sim_.random(), sim_.disk(), sim_.network()};
  server_ = std::make_unique<Server>(parsed, world, options_.lagging ? &kLaggingEngine : nullptr);
  const Status started = server_->Start();
  if (!started.ok()) fmt::print(stderr, "{}\n{}\n", started.ToString(), log());
  SKEP_CHECK(started.ok());
  for (size_t i = 0; i < server_->worker_count(); ++i) {
    Worker* const worker = &server_->worker(i);
    server_actors_.push_back(
        sim_.AddActor("worker", [this, worker] { return TurnWorker(*worker); }));
  }
  if (options_.lagging) {
    server_actors_.push_back(sim_.AddActor("release", [this] { return ReleaseSome(); }));
  }
  if (options_.durable) {
    next_log_step_ns_ = 0;
    server_actors_.push_back(sim_.AddActor("log", [this] { return StepLog(); }));
    server_actors_.push_back(
        sim_.AddActor("saver", [this] { return server_->persistence()->saver().Step(); }));
  }
}

void SimCluster::Restart(bool loses_power) {
  DestroyServer();
  if (loses_power) sim_.disk().Crash();
  Start();
}

// Does a step of the log's own thread.
bool SimCluster::StepLog() {
  durable::Log& log = server_->persistence()->log();
  const uint64_t now_ns = sim_.clock().MonotonicNs();
  const bool is_asked = log.wants_step();
  if (!is_asked && now_ns < next_log_step_ns_) return false;
  next_log_step_ns_ = now_ns + static_cast<uint64_t>(log.Step()) * 1'000'000;
  sim_.clock().Remind(next_log_step_ns_);
  return is_asked;
}

// Turns a worker as Server::Run() does.
bool SimCluster::TurnWorker(Worker& worker) {
  if (worker.drained()) return false;
  if (server_->stopping()) worker.Drain();
  ++turns_;
  return worker.Turn(-1);
}

bool SimCluster::ReleaseSome() {
  bool waits = false;
  for (uint32_t i = 0; i < server_->keyspaces().count(); ++i) {
    auto* const engine = static_cast<LaggingEngine*>(server_->keyspaces().if_used(i));
    if (engine == nullptr || !engine->has_unreleased()) continue;
    waits = true;
    if (sim_.random().Chance(1, kLagSteps)) engine->Release();
  }
  return waits;
}

void SimCluster::DestroyServer() {
  if (server_ == nullptr) return;
  for (uint32_t i = 0; i < server_->keyspaces().count(); ++i) {
    const Engine* const engine = server_->keyspaces().if_used(i);
    if (engine == nullptr) continue;
    EXPECT_STREQ(engine->Verify(), nullptr);
  }
  for (const Simulation::ActorId actor : server_actors_) sim_.RemoveActor(actor);
  server_actors_.clear();
  server_.reset();
}

bool SimCluster::drained() {
  for (size_t i = 0; i < server_->worker_count(); ++i) {
    if (!server_->worker(i).drained()) return false;
  }
  return true;
}

SimClient& SimCluster::Connect(int protocol) {
  clients_.push_back(NewClient(protocol));
  SimClient* const client = clients_.back().get();
  sim_.AddActor("client", [client] { return client->Move(); });
  return *client;
}

std::unique_ptr<SimClient> SimCluster::NewClient(int protocol) {
  return std::make_unique<SimClient>(sim_.network(), kAddress, protocol);
}

RespReply SimCluster::Ask(SimClient& client, std::initializer_list<std::string_view> args) {
  client.Send(args);
  return Await(client);
}

RespReply SimCluster::Await(SimClient& client) {
  RunUntil([&] { return client.replies() > 0 || client.closed(); });
  std::optional<RespReply> reply = client.Take();
  if (reply) return std::move(*reply);
  return ErrorReply(client.closed() ? "closed" : "no reply");
}

std::string Describe(const RespReply& reply) {
  constexpr std::array kNames = {"null", "simple", "error",   "integer", "bulk",     "array", "map",
                                 "set",  "push",   "boolean", "double",  "verbatim", "big"};
  const std::string name = kNames[static_cast<size_t>(reply.type)];
  if (reply.type == RespReply::Type::kInteger) return fmt::format("{} {}", name, reply.integer);
  if (reply.elements.empty()) return fmt::format("{} '{}'", name, reply.text);
  std::string text = name + " [";
  for (const RespReply& element : reply.elements) text += Describe(element) + ", ";
  return text + "]";
}

}  // namespace skep::simulation

void skep::PrintTo(const RespReply& reply, std::ostream* out) {
  *out << simulation::Describe(reply).substr(0, 2000);
}
