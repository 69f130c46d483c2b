// lying_server.h: a client against a server that misbehaves as a program of bytes says, for a
// random test and a fuzzer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "client/remote_engine.h"
#include "scripted_world.h"
#include "skep/function.h"

namespace skep {

// Each byte of the program is one choice: what the client does, or how the server answers a
// message: rightly, as a whole or byte by byte, with another message's answer, with random bytes,
// with any length, not at all, or by hanging up. When no byte is left the server behaves.
class Lies {
 public:
  explicit Lies(std::string_view program)
      : left_(program),
        world_({.hello = [this](Peer& peer) { Hello(peer); },
                .message = [this](Peer& peer, const packed::Header& header,
                                  std::string_view payload) { Hear(peer, header, payload); },
                .idle = [this] { return SayMore(); },
                .accepts = [this] { return Below(8) != 1; },
                .pace = [this] { return Pace(); }}),
        network_(world_) {}

  // Runs the program. Every call must end in time, also when the server behaves again.
  void Play() {
    auto remote = client::Remote::Connect(
        {.timeout_ms = kTimeoutMs, .remembers_writes = Below(2) == 0}, network_, world_.clock());
    if (!remote) return;
    remote_ = std::move(*remote);
    client::RemoteEngine engine(*remote_, 0);
    while (!left_.empty()) Move(engine);
    // Messages on their way are still answered wrongly, and after a break the client pauses.
    under_way_.clear();
    if (limits_ && world_.peer() != nullptr) world_.peer()->HangUp();  // only a hello has limits
    world_.clock().Advance(1'000'000'000);
    for (int i = 0; i < 6; ++i) {
      Batch batch;
      batch.Get("n");
      const uint64_t begin_ms = world_.now_ms();
      engine.Execute(batch);
      SKEP_CHECK(world_.now_ms() <= begin_ms + kTimeoutMs);
      if (batch.outcome(0).status.ok()) return;
      world_.clock().Advance(1'100'000'000);
    }
    SKEP_CHECK(false);  // the client does not find the server again
  }

 private:
  using Peer = ScriptedWorld::Peer;
  static constexpr uint32_t kTimeoutMs = 20;
  static constexpr size_t kUnderWayMax = 20;

  struct Call {
    explicit Call(Batch::Kind kind) : batch(kind) {}
    Batch batch;
    BegunBatch begun;  // abandoned with the call, if it was not finished
    uint64_t begin_ms = 0;
  };

  uint64_t Next() {
    if (left_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  size_t Pace() {
    if (left_.empty()) return SIZE_MAX;
    const uint64_t lot = Below(16);
    return lot < 12 ? SIZE_MAX : lot - 11;  // a few bytes
  }

  // ---- The client ----

  void Move(client::RemoteEngine& engine) {
    switch (Below(8)) {
      case 0:
        return static_cast<void>(engine.OpenSnapshot(0));
      case 1:
        return static_cast<void>(engine.Watch("k", 0));
      case 2:
        return static_cast<void>(engine.Statistics());
      case 3:
        return world_.clock().Advance(1'000'000 * Below(256));
      case 4:
        if (!under_way_.empty()) under_way_.erase(under_way_.begin());
        return;
      case 5:
        if (!under_way_.empty()) Finish();
        return;
      default:
        if (under_way_.size() < kUnderWayMax) Begin(engine);
    }
  }
  void Begin(client::RemoteEngine& engine) {
    const bool atomic = Below(4) == 0;
    auto call = std::make_unique<Call>(atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
    for (uint64_t left = 1 + Below(3); left > 0; --left) {
      switch (Below(5)) {
        case 0:
          call->batch.Apply("n", functions::kAddDecimal, "1");
          break;
        case 1:
          call->batch.Scan(Range::Between("b", "x"), {.limit = 7, .reverse = Below(2) == 0});
          break;
        case 2:
          call->batch.Count(Range::All());
          break;
        case 3:
          call->batch.Put("k", "v", Request::kReturnPrevious);
          break;
        default:
          call->batch.Get("k");
      }
    }
    call->begin_ms = world_.now_ms();
    call->begun = engine.Begin(call->batch);
    SKEP_CHECK(world_.now_ms() <= call->begin_ms + kTimeoutMs);
    under_way_.push_back(std::move(call));
  }
  void Finish() {
    const auto call = std::move(under_way_.back());
    under_way_.pop_back();
    const bool has_ranges =
        std::ranges::any_of(call->batch.requests(), [](const Request& r) { return IsRange(r.op); });
    const uint64_t late_ms = std::max(call->begin_ms + kTimeoutMs, world_.now_ms());
    Engine::Finish(std::move(call->begun));
    // A range may take several messages.
    SKEP_CHECK(has_ranges || world_.now_ms() <= late_ms);
    for (uint32_t slot = 0; slot < call->batch.size(); ++slot) {
      const Outcome& outcome = call->batch.outcome(slot);
      SKEP_CHECK(outcome.verdict != Verdict::kRefused || !outcome.status.ok());
      for (const Item& item : call->batch.items(slot)) bytes_ += item.key.size();
    }
  }

  // ---- The server ----

  void Hello(Peer& peer) {
    packed::ServerHello hello = ScriptedWorld::UsualHello();
    switch (Below(12)) {
      case 1:
        return peer.HangUp();
      case 2:
        hello.version = static_cast<uint8_t>(Next());
        break;
      case 3:
        hello.features = packed::kNeedsAuth;
        break;
      case 4:
        hello.instance = Next();
        break;
      case 5:
        hello.operations_max = static_cast<uint32_t>(Below(4));
        limits_ = true;
        break;
      case 6:
        return peer.Say(std::string(Below(64), 'x'));
      default:
        break;
    }
    peer.Say(hello);
  }

  std::string RandomBytes(size_t bytes) {
    std::string random;
    for (size_t i = 0; i < bytes; ++i) random.push_back(static_cast<char>(Next()));
    return random;
  }

  // Returns the answer of a server that behaves.
  static std::string Right(const packed::Header& header, std::string_view payload) {
    if (packed::IsBatch(header.kind)) return ScriptedWorld::DoneWith(header.count, 0);
    if (header.kind == packed::Kind::kPing) return std::string(payload);
    return std::string(3, '\x01');
  }

  void Hear(Peer& peer, packed::Header header, std::string_view payload) {
    const packed::Header asked = header;
    std::string answer = Right(header, payload);
    switch (left_.empty() ? 15 : Below(16)) {
      case 0:
        return;  // no answer
      case 1:
        return peer.HangUp();
      case 2:
        header.id += static_cast<uint32_t>(Next()) - 128;
        break;
      case 3:
        header.kind = static_cast<packed::Kind>(Next());
        break;
      case 4:
        header.flags = static_cast<uint8_t>(Next());
        break;
      case 5:
        header.count += static_cast<uint32_t>(Next());
        break;
      case 6:
        answer = RandomBytes(Below(40));
        break;
      case 7:
        if (!answer.empty()) answer[Below(answer.size())] = static_cast<char>(Next());
        break;
      case 8:
        return peer.Say(RandomBytes(Below(40)));
      case 9: {  // a length, and fewer bytes than that
        header.payload_bytes = static_cast<uint32_t>(Next() << 24 | Next());
        std::string begin;
        packed::Append(begin, header);
        return peer.Say(begin + RandomBytes(Below(20)));
      }
      case 10:
        later_.push_back({asked, answer});
        return;
      case 11:
        peer.Say(header, answer);  // answers twice
        break;
      case 12: {
        std::string reply;
        packed::AppendFailure(reply, header,
                              {static_cast<Code>(1 + Below(9)), "the server says so", Next()});
        return peer.Say(reply);
      }
      default:
        break;
    }
    peer.Say(header, answer);
  }

  // Sends delayed answers now and then, on any connection.
  bool SayMore() {
    if (later_.empty() || (!left_.empty() && Below(2) == 0)) return false;
    const auto [header, answer] = later_.back();
    later_.pop_back();
    if (world_.peer() == nullptr || world_.peer()->is_over()) return false;
    world_.peer()->Say(header, answer);
    return true;
  }

  std::string_view left_;
  ScriptedWorld world_;
  SteppedNetwork network_;
  std::unique_ptr<client::Remote> remote_;
  std::vector<std::unique_ptr<Call>> under_way_;
  std::vector<std::pair<packed::Header, std::string>> later_;
  bool limits_ = false;  // a hello had limits that are too low for the client
  uint64_t bytes_ = 0;
};

inline void PlayLies(std::string_view program) { Lies(program).Play(); }

}  // namespace skep
