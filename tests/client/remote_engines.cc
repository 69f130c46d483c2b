// The engines that the conformance suite tests through a client: each is in a server of its own, in
// this process, and every batch goes over a socket in the packed protocol.
//
// Calls of the suite that a client cannot make of a server (upkeep, invariants, the time) go to the
// engine itself. The server's time is that of the batch.
#include <atomic>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/random.h"
#include "base/temporary_directory_test.h"
#include "client/remote_engine.h"
#include "engine/forwarding_engine.h"
#include "engine/testing/conformance.h"
#include "netindex/leaves/leaf_share.h"
#include "server/server.h"

namespace skep {
namespace {

// A clock that advances only when it is told to.
class TestClock final : public Clock {
 public:
  uint64_t MonotonicNs() override { return now_ms_.load() * 1'000'000; }
  uint64_t WallUs() override { return now_ms_.load() * 1'000; }
  void Advance(uint64_t now_ms) {
    uint64_t before = now_ms_.load();
    while (before < now_ms && !now_ms_.compare_exchange_weak(before, now_ms)) {
    }
  }

 private:
  std::atomic<uint64_t> now_ms_{1};
};

// Forwards to an engine that has another owner.
class Borrowed final : public ForwardingEngine {
 public:
  explicit Borrowed(Engine& inner) : ForwardingEngine(inner) {}
  Version Execute(Batch& batch) override {
    const Version ticket = inner().Execute(batch);
    inner().AwaitRelease(ticket);
    gate_.Release(ticket);
    return ticket;
  }
  // The suite calls Maintain itself, when nothing else runs.
  bool Maintain(uint64_t) override { return false; }
};

// The engine of the server that is made next.
Engine* engine_to_serve = nullptr;
constexpr EngineInfo kServed = {
    .name = "served", .summary = "", .make = [](const EngineOptions&) -> std::unique_ptr<Engine> {
      return std::make_unique<Borrowed>(*engine_to_serve);
    }};

enum class Transport : uint8_t { kTcp, kUdp, kUnix, kReadOverMem, kReadOverTcp };

class Served final : public ForwardingEngine {
 public:
  Served(std::unique_ptr<Engine> engine, Transport transport)
      : ForwardingEngine(*engine), engine_(std::move(engine)) {
    ServerOptions options;
    options.databases = 1;
    options.workers = 2;
    options.loglevel = "warning";
    options.client_output_buffer_limit.normal = {};
    options.port = 0;
    options.udp = transport == Transport::kUdp;
    if (transport == Transport::kUnix) {
      options.bind = {};
      options.unixsocket = directory_.path() + "/socket";
    }
    if (transport == Transport::kReadOverMem) {
      options.share_leaves = "mem:unix:" + directory_.path() + "/leaves";
    } else if (transport == Transport::kReadOverTcp) {
      options.share_leaves = "tcp:127.0.0.1:0";
    }
    engine_to_serve = engine_.get();
    server_ = std::make_unique<Server>(
        options, Environment{clock_, SystemRandom(), PosixFileSystem(), SocketNetwork()}, &kServed);
    SKEP_CHECK(server_->Start().ok());
    thread_ = std::thread([this] { SKEP_CHECK(server_->Run().ok()); });
    const leaves::LeafShare* const share = server_->state().leaf_share();
    auto remote = client::Remote::Connect({.address = server_->addresses()[0],
                                           .connections = 2,
                                           .timeout_ms = 60'000,
                                           .datagrams = options.udp,
                                           .one_sided = share != nullptr ? share->place() : "",
                                           .wants_versions = true},
                                          SocketNetwork(), SystemClock());
    SKEP_CHECK(remote.has_value());
    remote_ = std::move(*remote);
    client_ = std::make_unique<client::RemoteEngine>(*remote_, 0);
  }
  ~Served() override {
    client_.reset();
    remote_.reset();
    server_->Stop();
    thread_.join();
  }

  const EngineTraits& traits() const override { return client_->traits(); }
  Version Execute(Batch& batch) override { return Finish(Begin(batch)); }
  BegunBatch Begin(Batch& batch) override {
    clock_.Advance(batch.now_ms());
    return {.ticket = 0, .under_way = std::make_unique<SentBatch>(*this, client_->Begin(batch))};
  }
  Result<SnapshotRef> OpenSnapshot(uint64_t now_ms) override {
    clock_.Advance(now_ms);
    return client_->OpenSnapshot(now_ms);
  }
  void CloseSnapshot(SnapshotRef snapshot) override {
    client_->CloseSnapshot(snapshot);
    // CloseSnapshot has no answer; the answer to a later message shows that it is done.
    static_cast<void>(client_->Statistics());
  }
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override {
    clock_.Advance(now_ms);
    return client_->Watch(key, now_ms);
  }
  void Unwatch(uint64_t watch) override {
    client_->Unwatch(watch);
    // Unwatch has no answer either; the ping goes over the connection that has the watches.
    SKEP_CHECK(remote_->Ask(packed::Kind::kPing, 0, {}, 0).has_value());
  }
  EngineStatistics Statistics() const override { return client_->Statistics(); }

 private:
  class SentBatch final : public BatchUnderWay {
   public:
    SentBatch(Served& served, BegunBatch begun) : served_(served), begun_(std::move(begun)) {}
    Version Finish() override {
      client::RemoteEngine::Finish(std::move(begun_));
      const Version released = served_.inner().gate().released();
      served_.gate_.Release(released);
      return served_.traits().multi_version ? released : 0;
    }

   private:
    Served& served_;
    BegunBatch begun_;
  };

  TestClock clock_;
  TemporaryDirectory directory_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::unique_ptr<client::Remote> remote_;
  std::unique_ptr<client::RemoteEngine> client_;
};

template <Transport kTransport>
std::unique_ptr<Engine> MakeServed(const char* engine, EngineOptions options) {
  options.index.btree.shared =
      kTransport == Transport::kReadOverMem || kTransport == Transport::kReadOverTcp;
  return std::make_unique<Served>(FindEngine(engine)->make(options), kTransport);
}

constexpr EngineInfo kEngines[] = {
    {.name = "tcp_btree",
     .summary = "",
     .make =
         [](const EngineOptions& options) {
           return MakeServed<Transport::kTcp>("btree", options);
         }},
    {.name = "tcp_hash",
     .summary = "",
     .make =
         [](const EngineOptions& options) { return MakeServed<Transport::kTcp>("hash", options); }},
    {.name = "udp_btree",
     .summary = "",
     .make =
         [](const EngineOptions& options) {
           return MakeServed<Transport::kUdp>("btree", options);
         }},
    {.name = "mem_btree",
     .summary = "",
     .make =
         [](const EngineOptions& options) {
           return MakeServed<Transport::kReadOverMem>("btree", options);
         }},
    {.name = "tcp_leaves_btree",
     .summary = "",
     .make =
         [](const EngineOptions& options) {
           return MakeServed<Transport::kReadOverTcp>("btree", options);
         }},
    {.name = "unix_model",
     .summary = "",
     .make =
         [](const EngineOptions& options) {
           return MakeServed<Transport::kUnix>("model", options);
         }},
};

}  // namespace

std::vector<EngineVariant> EnginesUnderTest() {
  std::vector<EngineVariant> variants;
  for (const EngineInfo& info : kEngines) {
    // Sanitized runs test only datagrams, which use a connection as well, the fastest engine, and
    // leaves that are read.
    const bool is_sanitized =
        info.name == "udp_btree" || info.name == "tcp_hash" || info.name == "mem_btree";
    if (kSanitized && !is_sanitized) continue;
    variants.push_back({.name = std::string(info.name),
                        .info = &info,
                        .options = {},
                        .in_process = false,
                        .keeps_order = !info.name.starts_with("udp")});
  }
  return variants;
}

}  // namespace skep
