// Reads and writes the node of a map.
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "ranges/range_map.h"

namespace skep::ranges {
namespace {

constexpr std::string_view kRoot = "/skep-ranges";
constexpr uint32_t kSessionMs = 4000;

constexpr Status kNoAnswer(Code::kUnavailable, "ZooKeeper does not answer");
constexpr Status kRefused(Code::kIo, "ZooKeeper refuses");

std::string PathOf(std::string_view name) { return std::string(kRoot) + "/" + std::string(name); }

// One request after the other, each waited for.
class Caller {
 public:
  // The coordinator outlives it.
  Caller(Coordinator& coordinator, uint32_t timeout_ms)
      : until_(std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms)) {
    auto session = coordinator.Open({.timeout_ms = kSessionMs, .wake = [this] { Wake(); }});
    if (session) session_ = std::move(*session);
  }

  // Nothing: there was no answer in time.
  std::optional<CoordinatorEvent> Get(std::string_view path) {
    return Ask([&](uint64_t token) { session_->Get(token, path, CoordinatorWatch::kNone); });
  }
  std::optional<CoordinatorEvent> Create(std::string_view path, std::string_view bytes) {
    return Ask([&](uint64_t token) {
      session_->Create(token, path, bytes, CoordinatorNode::kPersistent);
    });
  }
  std::optional<CoordinatorEvent> Set(std::string_view path, std::string_view bytes,
                                      int32_t version) {
    return Ask([&](uint64_t token) { session_->Set(token, path, bytes, version); });
  }

 private:
  template <typename Request>
  std::optional<CoordinatorEvent> Ask(Request request) {
    if (session_ == nullptr) return std::nullopt;
    const uint64_t token = ++token_;
    bool is_asked = false;
    do {
      for (CoordinatorEvent& event : session_->TakeEvents()) {
        const bool is_answer =
            event.kind == CoordinatorEvent::Kind::kAnswer && event.token == token;
        if (is_answer) return std::move(event);
      }
      if (!is_asked && session_->state() == CoordinatorSession::State::kConnected) {
        is_asked = true;
        request(token);
      }
    } while (Wait());
    return std::nullopt;
  }

  void Wake() {
    const MutexLock lock(mutex_);
    is_woken_ = true;
    woken_.NotifyAll();
  }
  // False: it is too late.
  bool Wait() {
    const MutexLock lock(mutex_);
    while (!is_woken_) {
      if (!woken_.WaitUntil(mutex_, until_) && !is_woken_) return false;
    }
    is_woken_ = false;
    return true;
  }

  const std::chrono::steady_clock::time_point until_;
  Mutex mutex_;
  ConditionVariable woken_;
  bool is_woken_ SKEP_GUARDED_BY(mutex_) = true;
  uint64_t token_ = 0;
  std::unique_ptr<CoordinatorSession> session_;
};

// What an answer means that is not what was hoped for.
Status WhyNot(const std::optional<CoordinatorEvent>& answer) {
  const bool is_lost = !answer || answer->outcome == CoordinatorOutcome::kUnknown ||
                       answer->outcome == CoordinatorOutcome::kNotSent;
  return is_lost ? kNoAnswer : kRefused;
}

bool Is(const std::optional<CoordinatorEvent>& answer, CoordinatorOutcome outcome) {
  return answer && answer->outcome == outcome;
}

Status Replace(Caller& caller, const std::string& path, const std::string& bytes) {
  const auto before = caller.Get(path);
  if (!Is(before, CoordinatorOutcome::kDone)) return WhyNot(before);
  const auto set = caller.Set(path, bytes, before->version);
  return Is(set, CoordinatorOutcome::kDone) ? Status() : WhyNot(set);
}

}  // namespace

Result<RangeMap> ReadRangeMap(Coordinator& coordinator, std::string_view name,
                              uint32_t timeout_ms) {
  Caller caller(coordinator, timeout_ms);
  const auto answer = caller.Get(PathOf(name));
  if (Is(answer, CoordinatorOutcome::kAbsent)) {
    return Fail(Code::kInvalidArgument, "there is no map of ranges of this name");
  }
  if (!Is(answer, CoordinatorOutcome::kDone)) return Fail(WhyNot(answer));
  RangeMap map;
  if (!RangeMap::Decode(answer->bytes, &map)) {
    return Fail(Code::kCorrupt, "ZooKeeper's node of this name is no map of ranges");
  }
  return map;
}

Status WriteRangeMap(Coordinator& coordinator, std::string_view name, const RangeMap& map,
                     bool replaces, uint32_t timeout_ms) {
  if (const Status status = map.Check(); !status.ok()) return status;
  Caller caller(coordinator, timeout_ms);
  const auto root = caller.Create(kRoot, "");
  if (!Is(root, CoordinatorOutcome::kDone) && !Is(root, CoordinatorOutcome::kExists)) {
    return WhyNot(root);
  }
  const std::string bytes = map.Encode();
  const auto made = caller.Create(PathOf(name), bytes);
  if (Is(made, CoordinatorOutcome::kDone)) return {};
  if (!Is(made, CoordinatorOutcome::kExists)) return WhyNot(made);
  if (!replaces) return {Code::kInvalidArgument, "there is a map of ranges of this name already"};
  return Replace(caller, PathOf(name), bytes);
}

}  // namespace skep::ranges
