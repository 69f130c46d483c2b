#include "server/server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/network_address.h"
#include "server/hot_gets.h"
#include "server/info.h"

namespace skep {
namespace {

const std::string kUnixPrefix = "unix:";

std::vector<Address> ListenAddresses(const ServerOptions& options) {
  std::vector<Address> addresses;
  for (const std::string& host : options.bind) addresses.push_back(AddressOf(host, options.port));
  if (!options.unixsocket.empty()) addresses.push_back(kUnixPrefix + options.unixsocket);
  return addresses;
}

uint32_t WorkersOf(const ServerOptions& options) {
  return options.workers != 0 ? options.workers : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

Server::Server(const ServerOptions& options, const Environment& environment,
               const EngineInfo* engine)
    : state_(options, environment, engine) {}

Status Server::Start() {
  const ServerOptions options = this->options();
  std::string problem;
  if (const Status s = state_.Open(&problem); !s.ok()) return FailStart(s, std::move(problem));
  WorkerPool& pool = *this;
  for (uint32_t i = 0; i < WorkersOf(options); ++i) {
    workers_.push_back(std::make_unique<Worker>(state_, *this, pool));
  }
  for (const Address& address : ListenAddresses(options)) {
    if (Status s = Listen(options, address); !s.ok()) return s;
  }
  if (HotGets* const hot = state_.hot_gets()) StartHotGets(*hot);
  return {};
}

Status Server::Listen(const ServerOptions& options, const Address& address) {
  auto listener = state_.environment().network.Listen(address);
  const auto fail = [&](const Status& s) {
    return FailStart(s, fmt::format("cannot listen on {}: {}", address, s.ToString()));
  };
  if (!listener) return fail(listener.error());
  listeners_.push_back(std::move(*listener));
  if (const Status s = workers_[0]->Listen(*listeners_.back()); !s.ok()) return fail(s);
  if (!options.udp || address.starts_with(kUnixPrefix)) return {};
  return ServeDatagrams(listeners_.back()->address());
}

// Without a log file the log goes to standard output, and the line would be printed twice.
Status Server::FailStart(const Status& status, std::string problem) {
  problem_ = std::move(problem);
  if (state_.log().is_open() && !options().logfile.empty()) {
    state_.log().logger().error("{}", problem_);
  }
  return status;
}

// Each worker has a socket; the system spreads the peers over them.
Status Server::ServeDatagrams(const Address& address) {
  for (auto& worker : workers_) {
    auto socket = state_.environment().network.BindDatagrams(address);
    const Status s = socket ? worker->Serve(std::move(*socket)) : socket.error();
    if (!s.ok()) {
      return FailStart(s, fmt::format("cannot take datagrams on {}: {}", address, s.ToString()));
    }
  }
  return {};
}

void Server::StartHotGets(HotGets& hot) {
  hot.Start();
  state_.log().logger().info("xdp: hot GETs are answered by {}, {}", hot.interface(),
                             hot.is_native() ? "in its driver" : "behind its driver (generic)");
}

Status Server::Run() {
  durable::Persistence* const persistence = state_.persistence();
  if (persistence != nullptr) persistence->StartThreads();
  std::vector<std::thread> threads;
  for (auto& worker : workers_) {
    threads.emplace_back([this, &worker] {
      worker->AllowSideThread();
      while (!worker->drained()) {
        if (stopping()) worker->Drain();
        worker->Turn(-1);
      }
      worker->StopSideThread();
    });
  }
  for (std::thread& thread : threads) thread.join();
  state_.StopRanges();
  if (HotGets* const hot = state_.hot_gets()) hot->Stop();
  state_.StopSharing();
  if (persistence == nullptr) return {};
  const Status closed = persistence->Close();
  if (!closed.ok()) {
    state_.log().logger().error("the log could not be ended: {}", closed.ToString());
  }
  return closed;
}

void Server::Stop() {
  stopping_.store(true, std::memory_order_relaxed);
  WakeAll();
}

void Server::WakeAll() {
  for (auto& worker : workers_) worker->Wake();
}

ServerCounts Server::CountAll() {
  ServerCounts all;
  for (const auto& worker : workers_) {
    all.Add(worker->statistics());
    all.AddBeside(worker->side_statistics());
  }
  for (uint32_t i = 0; i < keyspaces().count(); ++i) {
    const Engine* const engine = keyspaces().if_used(i);
    if (engine != nullptr) all.expired_keys += engine->Statistics().expired_keys;
  }
  all.evicted_clients = clients().evicted();
  return all;
}

std::string Server::Describe(std::span<const std::string_view> sections) {
  return DescribeServer(*this, sections);
}

std::string Server::SetOptions(std::span<const OptionChange> changes) {
  return state_.SetOptions(changes);
}

std::string Server::RewriteConfigFile() {
  return state_.options().Rewrite(state_.environment().files);
}

size_t Server::EndClients(const ClientFilter& filter, const ClientInfo& self, bool* ends_self) {
  const size_t count = state_.clients().EndMatching(filter, self, ends_self);
  if (count > 0) WakeAll();
  return count;
}

std::vector<Address> Server::addresses() const {
  std::vector<Address> all;
  for (const auto& listener : listeners_) all.push_back(listener->address());
  return all;
}

void Server::Place(std::unique_ptr<Stream> stream) {
  const auto least = std::ranges::min_element(
      workers_, {}, [](const auto& worker) { return worker->connections(); });
  (*least)->Adopt(std::move(stream));
}

size_t Server::connections() const {
  size_t all = 0;
  for (const auto& worker : workers_) all += worker->connections();
  return all;
}

}  // namespace skep
