#include "ranges/map_client.h"

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/decimal.h"

namespace skep::ranges {
namespace {

constexpr uint32_t kSessionMs = 4000;

constexpr Status kNoAnswer(Code::kUnavailable, "ZooKeeper does not answer");
constexpr Status kRefused(Code::kIo, "ZooKeeper refuses");

// What an answer means that is not what was hoped for.
Status WhyNot(const std::optional<CoordinatorEvent>& answer) {
  const bool is_lost = !answer || answer->outcome == CoordinatorOutcome::kUnknown ||
                       answer->outcome == CoordinatorOutcome::kNotSent;
  return is_lost ? kNoAnswer : kRefused;
}

bool Is(const std::optional<CoordinatorEvent>& answer, CoordinatorOutcome outcome) {
  return answer && answer->outcome == outcome;
}

}  // namespace

MapClient::MapClient(Coordinator& coordinator, std::string name, uint32_t timeout_ms)
    : coordinator_(coordinator), name_(std::move(name)), timeout_ms_(timeout_ms) {}

MapClient::~MapClient() = default;

CoordinatorSession* MapClient::Session() {
  if (session_ != nullptr && session_->state() == CoordinatorSession::State::kExpired) {
    session_.reset();
  }
  if (session_ == nullptr) {
    auto session = coordinator_.Open({.timeout_ms = kSessionMs, .wake = [this] { Wake(); }});
    if (session) session_ = std::move(*session);
    ++opened_;
  }
  return session_.get();
}

void MapClient::Wake() {
  const MutexLock lock(mutex_);
  is_woken_ = true;
  woken_.NotifyAll();
}

// False: it is too late.
bool MapClient::Wait(uint64_t until_ns) {
  const auto until = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until_ns));
  const MutexLock lock(mutex_);
  while (!is_woken_) {
    if (!woken_.WaitUntil(mutex_, until) && !is_woken_) return false;
  }
  is_woken_ = false;
  return true;
}

template <typename Request>
std::optional<CoordinatorEvent> MapClient::Ask(Request request) {
  const uint64_t until_ns = SystemClock().MonotonicNs() + uint64_t{timeout_ms_} * 1'000'000;
  const uint64_t token = ++token_;
  uint64_t asked_in = 0;  // the number of a session
  for (;;) {
    CoordinatorSession* const session = Session();
    if (session == nullptr) return std::nullopt;
    for (CoordinatorEvent& event : session->TakeEvents()) {
      const bool is_answer = event.kind == CoordinatorEvent::Kind::kAnswer && event.token == token;
      if (is_answer) return std::move(event);
    }
    // An ended session has dropped the request, or done it: the next one is asked again.
    if (session->state() == CoordinatorSession::State::kExpired) continue;
    if (asked_in != opened_ && session->state() == CoordinatorSession::State::kConnected) {
      asked_in = opened_;
      request(*session, token);
    }
    if (!Wait(until_ns)) return std::nullopt;
  }
}

Result<RangeMap> MapClient::Read() {
  const auto answer = Ask([&](CoordinatorSession& session, uint64_t token) {
    session.Confirm(0);
    session.Get(token, MapPathOf(name_), CoordinatorWatch::kNone);
  });
  if (Is(answer, CoordinatorOutcome::kAbsent)) {
    return Fail(Code::kInvalidArgument, "there is no map of ranges of this name");
  }
  if (!Is(answer, CoordinatorOutcome::kDone)) return Fail(WhyNot(answer));
  RangeMap map;
  if (!RangeMap::Decode(answer->bytes, &map)) {
    return Fail(Code::kCorrupt, "ZooKeeper's node of this name is no map of ranges");
  }
  map.version = answer->version;
  return map;
}

Status MapClient::Create(const RangeMap& map) {
  if (const Status status = map.Check(); !status.ok()) return status;
  const auto made = Ask([&](CoordinatorSession& session, uint64_t token) {
    const std::string path = MapPathOf(name_);
    session.Create(0, path.substr(0, path.rfind('/')), "", CoordinatorNode::kPersistent);
    session.Create(token, path, map.Encode(), CoordinatorNode::kPersistent);
  });
  if (Is(made, CoordinatorOutcome::kDone)) return {};
  if (!Is(made, CoordinatorOutcome::kExists)) return WhyNot(made);
  return {Code::kInvalidArgument, "there is a map of ranges of this name already"};
}

Status MapClient::Replace(const RangeMap& map) {
  if (const Status status = map.Check(); !status.ok()) return status;
  const auto set = Ask([&](CoordinatorSession& session, uint64_t token) {
    session.Set(token, MapPathOf(name_), map.Encode(), map.version);
  });
  if (Is(set, CoordinatorOutcome::kDone)) return {};
  if (!Is(set, CoordinatorOutcome::kStale)) return WhyNot(set);
  return {Code::kAborted, "the map has changed meanwhile"};
}

Result<std::optional<int32_t>> MapClient::VersionAt(std::string_view address) {
  const auto answer = Ask([&](CoordinatorSession& session, uint64_t token) {
    session.Confirm(0);
    session.Get(token, ServerPathOf(name_, address), CoordinatorWatch::kNone);
  });
  if (Is(answer, CoordinatorOutcome::kAbsent)) return std::nullopt;
  if (!Is(answer, CoordinatorOutcome::kDone)) return Fail(WhyNot(answer));
  return ParseDecimal<int32_t>(answer->bytes).value_or(-1);
}

}  // namespace skep::ranges
