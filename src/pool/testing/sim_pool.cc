#include "pool/testing/sim_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace skep::pool {
namespace {

constexpr std::chrono::hours kForEver(24 * 365);

}  // namespace

SimPool::SimPool(uint64_t seed, const SimPoolOptions& options)
    : options_(options),
      simulation_(seed, options.simulation),
      fabric_(simulation_.random().Next(), simulation_.clock(), simulation_.trace(),
              options.fabric) {
  fabric_.set_waiter([this](uint64_t until_ns, const std::function<bool()>& is_ready) {
    Wait(until_ns, is_ready);
  });
  simulation_.AddActor("fabric", [this] {
    const uint64_t before = simulation_.trace().events();
    fabric_.RunDue();
    return simulation_.trace().events() != before;
  });
  Random& random = simulation_.random();
  map_ = {.epoch = 1, .hash_server = 1, .sorted_server = 2};
  map_.keys = {.index = {random.Next(), random.Next()}, .tag = {random.Next(), random.Next()}};
  for (uint32_t i = 101; i <= 100 + options.memory_servers; ++i) AddMemoryServer(i);
  simulation_.AddActor("memory", [this] { return TurnOneMemoryServer(); });
  for (const uint32_t id : {1u, 2u}) {
    map_.index_servers[id] = AddressOf(id);
    IndexServerOptions of_server = {.id = id,
                                    .listen = AddressOf(id),
                                    .times = options.times(id),
                                    .buckets_max = options.buckets_max,
                                    .overflow_max = options.buckets_max,
                                    .make_tree = options.make_tree,
                                    .free_chunks_min = options.free_chunks_min};
    if (options.adjust) options.adjust(of_server);
    auto server = IndexServer::Open(fabric_, simulation_.clock(), std::move(of_server));
    SKEP_CHECK(server.has_value());
    Server& added = Add(id, {.index = std::move(*server)});
    added.actor = simulation_.AddActor(std::to_string(id), [this, &added] { return Turn(added); });
  }
  for (const uint32_t id : {1u, 2u}) Tell(id);
}

SimPool::~SimPool() = default;

void SimPool::AddMemoryServer(uint32_t number) {
  map_.memory_servers[number] = AddressOf(number);
  map_.live_memory_servers.insert(number);
  auto server = MemoryServer::Open(fabric_, AddressOf(number), number, options_.chunks);
  SKEP_CHECK(server.has_value());
  memory_servers_.push_back(&Add(number, {.memory = std::move(*server)}));
}

SimPool::Server& SimPool::Add(uint32_t number, Server server) {
  Server& added = servers_.emplace(number, std::move(server)).first->second;
  added.number = number;
  added.endpoint = fabric_.FindListener(AddressOf(number));
  return added;
}

bool SimPool::TurnOneMemoryServer() {
  const size_t count = memory_servers_.size();
  const size_t first = count < 2 ? 0 : simulation_.random().Below(count);
  for (size_t i = 0; i < count; ++i) {
    if (Turn(*memory_servers_[(first + i) % count])) return true;
  }
  return false;
}

bool SimPool::Turn(Server& server) {
  if (now_ns() < server.paused_until_ns) return false;
  if (!server.is_busy && !server.endpoint->HasEvents() && now_ns() < server.reminder_ns) {
    return false;
  }
  if (server.index != nullptr && Works(server)) return true;
  const bool did = server.memory != nullptr ? server.memory->Turn(0) : server.index->Turn(0);
  server.is_busy = did;
  Random& random = simulation_.random();
  if (did && random.Chance(1, options_.stall_one_in)) {
    Stall(server, now_ns() + random.Below(1 + options_.stall_ns_max));
  }
  if (now_ns() >= server.reminder_ns) {
    server.reminder_ns = now_ns() + options_.idle_ns;
    simulation_.clock().Remind(server.reminder_ns);
  }
  return did;
}

// Returns whether messages wait for which it has not worked yet.
bool SimPool::Works(Server& server) {
  if (!options_.message_ns) return false;
  uint64_t ns = 0;
  server.endpoint->ForEachWaiting(
      [&](std::string_view message) { ns += options_.message_ns(server.number, message); });
  const uint64_t worked_ns = std::exchange(server.worked_ns, ns);
  if (ns > worked_ns) {
    Stall(server, now_ns() + ns - worked_ns);
    return true;
  }
  server.worked_ns = 0;
  return false;
}

void SimPool::Stall(Server& server, uint64_t until_ns) {
  server.paused_until_ns = std::max(server.paused_until_ns, until_ns);
  simulation_.clock().Remind(until_ns);
}

void SimPool::LeaveOut(uint32_t id) {
  ++map_.epoch;
  map_.hash_server = id == 1 ? 2 : 1;
  map_.sorted_server = 0;
  map_.index_servers.erase(id);
}

void SimPool::Tell(uint32_t id) {
  const auto at = servers_.find(id);
  if (at == servers_.end()) return;
  at->second.index->SetMap(map_);
  const auto agent = agents_.find(id);
  if (agent != agents_.end()) agent->second->SetMap(map_);
}

void SimPool::Kill(uint32_t id) {
  const auto at = servers_.find(id);
  SKEP_CHECK(at != servers_.end());
  if (at->second.index != nullptr) simulation_.RemoveActor(at->second.actor);
  std::erase(memory_servers_, &at->second);
  servers_.erase(at);
  const auto agent = agents_.find(id);
  if (agent != agents_.end()) agent->second->SetMap({});
}

IndexServer* SimPool::index_server(uint32_t id) {
  const auto at = servers_.find(id);
  return at == servers_.end() ? nullptr : at->second.index.get();
}

void SimPool::Pause(uint32_t server, uint64_t until_ns) {
  const auto at = servers_.find(server);
  if (at != servers_.end()) Stall(at->second, until_ns);
}

std::unique_ptr<PoolEngine> SimPool::OpenEngine(const PoolEngineOptions& options,
                                                MapSource source) {
  return std::make_unique<PoolEngine>(fabric_, simulation_.clock(), std::move(source), options);
}

void SimPool::AddClient(std::string_view name, std::function<void()> body,
                        std::function<uint64_t()> pause_ns) {
  clients_.push_back(std::make_unique<Client>(
      Client{.fiber = std::make_unique<Fiber>(std::move(body)), .pause_ns = std::move(pause_ns)}));
  Client& client = *clients_.back();
  client.actor = simulation_.AddActor(name, [this, &client] { return Step(client); });
}

void SimPool::AddAgents(Eviction eviction, const std::function<uint64_t()>& pause_ns) {
  for (const uint32_t id : {1u, 2u}) {
    UpkeepAgent& agent = *agents_
                              .emplace(id, std::make_unique<UpkeepAgent>(
                                               fabric_, simulation_.clock(),
                                               UpkeepOptions{.server = id, .eviction = eviction}))
                              .first->second;
    agent.SetMap(map_);
    const auto body = [this, &agent] {
      while (!agents_end_) {
        if (!agent.Turn()) Sleep(options_.idle_ns);
      }
    };
    AddClient("agent", body, pause_ns);
    clients_.back()->is_agent = true;
  }
}

bool SimPool::Step(Client& client) {
  if (client.fiber->is_over() || now_ns() < client.not_before_ns) return false;
  const bool is_ready = client.is_ready != nullptr && (*client.is_ready)();
  if (!is_ready && now_ns() < client.until_ns) return false;
  running_ = &client;
  client.fiber->Resume();
  running_ = nullptr;
  return true;
}

void SimPool::Wait(uint64_t until_ns, const std::function<bool()>& is_ready) {
  SimClock& clock = simulation_.clock();
  if (until_ns != UINT64_MAX) clock.Remind(until_ns);
  if (Fiber::Current() == nullptr) {
    simulation_.RunUntil([&] { return is_ready() || clock.MonotonicNs() >= until_ns; }, kForEver);
    return;
  }
  Client& client = *running_;
  client.until_ns = until_ns;
  client.is_ready = &is_ready;
  client.not_before_ns = now_ns() + client.pause_ns();
  clock.Remind(client.not_before_ns);
  Fiber::Suspend();
  client.is_ready = nullptr;
}

void SimPool::Sleep(uint64_t ns) {
  Wait(now_ns() + ns, [] { return false; });
}

bool SimPool::Run(std::chrono::nanoseconds limit) {
  const auto are_over = [this] {
    return std::ranges::all_of(clients_, [this](const auto& client) {
      return client->fiber->is_over() || (client->is_agent && !agents_end_);
    });
  };
  if (simulation_.RunUntil(are_over, limit) != Simulation::End::kDone) return false;
  agents_end_ = true;
  if (simulation_.RunUntil(are_over, limit) != Simulation::End::kDone) return false;
  for (const auto& client : clients_) simulation_.RemoveActor(client->actor);
  clients_.clear();
  return true;
}

}  // namespace skep::pool
