#include "rma/testing/sim_fabric.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "rma/testing/sim_endpoint.h"
#include "rma/word_copy.h"

namespace skep::rma {
namespace {

constexpr Status kGone(Code::kUnavailable, "the peer is not connected");
constexpr Status kClosed(Code::kUnavailable, "the connection has ended");

// Calls visit(LinePart, unit) for the units of the post's operations of this kind in the group.
template <typename Visit>
void ForEachPart(const SimPost& post, uint32_t group, Operation::Kind kind, Visit visit) {
  const std::byte* written = post.written.data();
  for (size_t i = 0; i < post.operations.size(); ++i) {
    const Operation& operation = post.operations[i];
    auto* local = static_cast<std::byte*>(operation.local);
    if (operation.kind == Operation::Kind::kWrite) {
      local = const_cast<std::byte*>(written);
      written += operation.bytes;
    }
    if (operation.kind != kind) continue;
    const uint64_t end = operation.offset + operation.bytes;
    for (uint64_t at = operation.offset; at < end;) {
      const uint64_t unit = at / post.unit_bytes;
      const uint64_t next = std::min(end, (unit + 1) * post.unit_bytes);
      if (post.GroupOf(i, unit) == group) {
        visit(LinePart{.region = operation.region,
                       .offset = at,
                       .bytes = static_cast<uint32_t>(next - at),
                       .local = local + (at - operation.offset)});
      }
      at = next;
    }
  }
}

}  // namespace

SimFabric::SimFabric(uint64_t seed, SimClock& clock, Trace& trace, const SimFabricOptions& options)
    : clock_(clock), trace_(trace), options_(options), random_(seed) {}

SimFabric::~SimFabric() = default;

Result<std::unique_ptr<Endpoint>> SimFabric::Open(const EndpointOptions& options) {
  if (const Status s = CheckRegions(options.regions); !s.ok()) return Fail(s);
  if (!options.listen.empty() && !options.listen.starts_with("sim:")) {
    return Fail(Code::kInvalidArgument, "the address is not one of this fabric");
  }
  if (FindListener(options.listen) != nullptr) {
    return Fail(Code::kIo, "the address is taken", EADDRINUSE);
  }
  auto endpoint = std::make_unique<SimEndpoint>(*this, options);
  if (!options.listen.empty()) listeners_[options.listen] = endpoint.get();
  return endpoint;
}

SimEndpoint* SimFabric::FindListener(const Address& address) const {
  const auto at = listeners_.find(address);
  return at == listeners_.end() ? nullptr : at->second;
}

uint64_t SimFabric::DelayNs(uint64_t bytes) {
  if (options_.wire) return options_.wire->round_trip_ns / 2 + TransferNs(bytes);
  const bool is_slow = random_.Chance(1, options_.slow_one_in);
  return 1 + random_.Below(is_slow ? options_.slow_ns_max : options_.step_ns_max);
}

uint64_t SimFabric::NoticeNs() { return DelayNs() + random_.Below(1 + options_.notice_ns_max); }

void SimFabric::Schedule(uint64_t at_ns, std::function<void()> work) {
  queue_.emplace(at_ns, std::move(work));
  clock_.Remind(at_ns);
}

void SimFabric::RunDue() {
  while (NextNs() <= clock_.MonotonicNs()) {
    const std::function<void()> work = std::move(queue_.begin()->second);
    queue_.erase(queue_.begin());
    work();
  }
}

void SimFabric::TakeTime() {
  clock_.Advance(random_.Below(1 + options_.call_ns_max));
  RunDue();
}

void SimFabric::Wait(uint64_t until_ns, const std::function<bool()>& is_ready) {
  if (waiter_) return waiter_(until_ns, is_ready);
  if (until_ns != UINT64_MAX) clock_.Remind(until_ns);
}

bool SimFabric::CutOne() {
  std::erase_if(links_, [](const auto& link) { return link.expired(); });
  std::vector<Link> joined;
  for (const auto& weak : links_) {
    const Link link = weak.lock();
    const bool is_joined = link->sides[0].state == SimLink::State::kJoined && link->IsSound();
    if (is_joined) joined.push_back(link);
  }
  if (joined.empty()) return false;
  Cut(joined[random_.Below(joined.size())]);
  return true;
}

void SimFabric::Cut(const Link& link) {
  link->is_cut = true;
  for (const int side : {0, 1}) EndLater(link, side, NoticeNs(), kClosed);
}

void SimFabric::CutAtTimes(const Link& link) {
  if (options_.cut_one_in == 0 || !link->IsSound()) return;
  if (random_.Chance(1, options_.cut_one_in)) Cut(link);
}

void SimFabric::Send(const Link& link, int to, SimMessage message, Status status) {
  SimLink::Side& side = link->sides[to];
  if (tamper_ != nullptr) tamper_->OnSend(message);
  side.unsent_bytes += message.bytes.size();
  const size_t unsent_max = link->sides[1 - to].endpoint->options_.unsent_bytes_max;
  if (side.unsent_bytes > unsent_max) {
    return End(link, 1 - to,
               Status(Code::kTooLarge, "the peer let too many bytes wait", unsent_max));
  }
  const uint64_t arrival_ns = clock_.MonotonicNs() + DelayNs(message.bytes.size());
  side.last_arrival_ns = std::max(side.last_arrival_ns, arrival_ns);
  Schedule(side.last_arrival_ns, [this, link, to, message = std::move(message), status]() mutable {
    Arrive(link, to, message, status);
  });
  CutAtTimes(link);
}

void SimFabric::Arrive(const Link& link, int to, SimMessage& message, Status status) {
  SimLink::Side& side = link->sides[to];
  if (side.state != SimLink::State::kJoined) return;
  if (!link->IsSound() && random_.Chance(1, 2)) side.is_deaf = true;
  if (side.is_deaf) return;
  if (tamper_ != nullptr) tamper_->OnArrival(message);
  trace_.Note(Trace::Event::kFabric, message.call, Trace::Of(message.bytes));
  Event event = {.kind = Event::Kind::kRequest, .peer = side.peer, .token = message.call};
  if (message.is_reply) {
    const auto call = side.calls.find(message.call);
    if (call == side.calls.end()) {
      return End(link, to, Status(Code::kCorrupt, "the peer sent a reply that nobody asked for"));
    }
    event.kind = Event::Kind::kReply;
    event.token = call->second;
    event.status = status;
    side.calls.erase(call);
  }
  side.endpoint->Push(event, std::move(message.bytes), link);
}

// As a message: what the listener sends now comes behind it.
void SimFabric::TellJoined(const Link& link) {
  SimLink::Side& side = link->sides[0];
  side.last_arrival_ns = std::max(side.last_arrival_ns, clock_.MonotonicNs() + DelayNs());
  Schedule(side.last_arrival_ns, [this, link] {
    SimLink::Side& connecting = link->sides[0];
    if (connecting.state != SimLink::State::kConnecting) return;
    connecting.state = SimLink::State::kJoined;
    links_.push_back(link);
    trace_.Note(Trace::Event::kFabric, connecting.peer);
    connecting.endpoint->Push({.kind = Event::Kind::kJoined, .peer = connecting.peer});
  });
}

void SimFabric::EndLater(const Link& link, int side, uint64_t delay_ns, Status why) {
  Schedule(clock_.MonotonicNs() + delay_ns, [this, link, side, why] { End(link, side, why); });
}

void SimFabric::End(const Link& link, int at, Status why) {
  SimLink::Side& side = link->sides[at];
  if (side.state == SimLink::State::kLeft) return;
  const bool is_stranger = side.state == SimLink::State::kStranger;
  side.state = SimLink::State::kLeft;
  trace_.Note(Trace::Event::kFabric, side.peer, side.calls.size());
  for (const auto& post : side.posts) post->is_over = true;
  if (side.endpoint != nullptr && !is_stranger) {
    for (const auto& post : side.posts) side.endpoint->PushDone(side.peer, post->token, kGone);
    for (const auto& [number, token] : side.calls) {
      side.endpoint->Push(
          {.kind = Event::Kind::kReply, .peer = side.peer, .token = token, .status = kGone});
    }
    side.endpoint->Push({.kind = Event::Kind::kLeft, .peer = side.peer, .status = why});
    if (at == 1) --side.endpoint->accepted_;
  }
  side.posts.clear();
  side.calls.clear();
  // After a cut each side finds out for itself.
  if (link->is_cut) return;
  const bool is_crash = side.endpoint == nullptr;
  EndLater(link, 1 - at, is_crash ? NoticeNs() : DelayNs(), kClosed);
}

void SimFabric::Begin(const Link& link, int from, const std::shared_ptr<SimPost>& post) {
  link->sides[from].posts.push_back(post);
  const uint64_t begin_ns = clock_.MonotonicNs() + StartNs();
  for (uint32_t group = 0; group < post->groups; ++group) {
    Schedule(begin_ns + DelayNs(),
             [this, link, from, post, group] { RunGroup(link, from, post, group); });
  }
  CutAtTimes(link);
}

uint64_t SimFabric::EndNs(SimLink::Side& from, const SimPost& post) {
  const uint64_t soonest_ns = clock_.MonotonicNs() + DelayNs();
  if (!options_.wire) return soonest_ns;
  from.wire_free_ns = std::max(soonest_ns, from.wire_free_ns) + TransferNs(post.bytes);
  return from.wire_free_ns;
}

void SimFabric::RunGroup(const Link& link, int from, const std::shared_ptr<SimPost>& post,
                         uint32_t group) {
  --post->groups_left;
  if (!link->IsSound() || post->is_over) return RunLate(link, from, post, group);
  CarryOut(*link, from, *post, group, true);
  if (post->groups_left > 0) return;
  Schedule(EndNs(link->sides[from], *post), [this, link, from, post] { Finish(link, from, post); });
}

// Of a connection that has ended.
void SimFabric::RunLate(const Link& link, int from, const std::shared_ptr<SimPost>& post,
                        uint32_t group) {
  const uint64_t late_ns = random_.Chance(1, 2) ? random_.Below(1 + options_.late_ns_max) : 0;
  if (random_.Chance(1, 3)) return;
  Schedule(clock_.MonotonicNs() + late_ns,
           [this, link, from, post, group] { CarryOut(*link, from, *post, group, false); });
}

void SimFabric::CarryOut(SimLink& link, int from, const SimPost& post, uint32_t group, bool reads) {
  const SimLink::Side& target = link.sides[1 - from];
  if (target.endpoint == nullptr) return;
  trace_.Note(Trace::Event::kFabric, post.token, group);
  if (reads) {
    ForEachPart(post, group, Operation::Kind::kRead, [&](const LinePart& part) {
      ReadPart(link.sides[from], target.endpoint->RegionBegin(part.region) + part.offset, part);
    });
  }
  if (target.fence_ns != 0 && clock_.MonotonicNs() >= target.fence_ns) return;
  ForEachPart(post, group, Operation::Kind::kWrite, [&](const LinePart& part) {
    WriteWords(part.local, target.endpoint->RegionBegin(part.region) + part.offset, part.bytes);
  });
}

// Of a fabric that is not coherent perhaps what the line was at an earlier read.
void SimFabric::ReadPart(SimLink::Side& reader, const std::byte* from, const LinePart& part) {
  ReadWords(from, part.local, part.bytes);
  if (options_.stale_ns_max == 0) return;
  const uint64_t now_ns = clock_.MonotonicNs();
  const uint64_t in_line = part.offset % kLineBytes;
  SimLink::Copy& copy = reader.copies[{part.region, part.offset / kLineBytes}];
  const bool is_fresh = copy.read_ns != 0 && copy.read_ns + options_.stale_ns_max >= now_ns;
  if (is_fresh && random_.Chance(1, 2)) {
    std::copy_n(copy.bytes.data() + in_line, part.bytes, part.local);
  } else {
    ReadWords(from - in_line, copy.bytes.data(), kLineBytes);
    copy.read_ns = now_ns;
  }
}

void SimFabric::Finish(const Link& link, int from, const std::shared_ptr<SimPost>& post) {
  if (!link->IsSound() || post->is_over) return;
  SimLink::Side& side = link->sides[from];
  post->is_over = true;
  std::erase(side.posts, post);
  trace_.Note(Trace::Event::kFabric, side.peer, post->token);
  side.endpoint->PushDone(side.peer, post->token, {});
}

}  // namespace skep::rma
