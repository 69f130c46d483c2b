#include "bench/net/generator.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <set>
#include <utility>

#include "base/clock.h"
#include "bench/net/measured_run.h"
#include "bench/net/schedule.h"

namespace skep::bench {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint64_t kTimeoutNs = uint64_t{StreamConnection::kTimeoutMs} * 1'000'000;
constexpr uint64_t kLongestSleepNs = kNsPerSecond / 10;
constexpr uint64_t kLostNs = kNsPerSecond / 5;  // a datagram without an answer for so long is lost
// The kernel may wake a sleeper this much later, so that it can batch wake-ups.
constexpr unsigned long kTimerSlackNs = 1;

uint64_t NowNs() { return SystemClock().MonotonicNs(); }

bool Watch(int epoll, int operation, const NetLane& lane, size_t index) {
  epoll_event wanted = {};
  wanted.events = EPOLLIN | (lane.has_unsent() ? EPOLLOUT : 0u);
  wanted.data.u64 = index;
  return epoll_ctl(epoll, operation, lane.descriptor(), &wanted) == 0;
}

// One run. Functions that return a Problem return what went wrong; it is empty if nothing did.
class GeneratorRun {
 public:
  using Problem = std::string;

  GeneratorRun(int epoll, std::vector<NetLane>& lanes, const NetPace& pace)
      : epoll_(epoll),
        lanes_(lanes),
        pace_(pace),
        start_ns_(NowNs()),
        schedule_(start_ns_, std::max<uint64_t>(pace.rate, 1), pace.group),
        run_(pace, start_ns_),
        heard_ns_(start_ns_) {}

  Problem Drive() {
    run_.Observe(start_ns_);
    if (Problem problem = Begin(); !problem.empty()) return problem;
    while (!IsOver()) {
      if (Problem problem = Turn(); !problem.empty()) return problem;
    }
    return {};
  }

  // Returns the figures. The run must be over.
  NetFigures TakeFigures() { return run_.TakeFigures(); }

 private:
  bool is_open() const { return pace_.rate != 0; }

  bool IsOver() const { return run_.is_over() && !HasDue() && IsIdle(); }
  bool IsIdle() const { return std::ranges::all_of(lanes_, &NetLane::empty); }
  // Returns whether an open loop has more to send, now or later.
  bool HasDue() const { return is_open() && run_.window().Sends(next_ns_); }

  Problem Begin() {
    if (is_open()) return {};
    for (size_t i = 0; i < lanes_.size(); ++i) {
      Fill(lanes_[i], start_ns_);
      if (Problem problem = Send(i); !problem.empty()) return problem;
    }
    return {};
  }

  Problem Turn() {
    if (is_open()) {
      if (Problem problem = SendDue(); !problem.empty()) return problem;
    }
    std::array<epoll_event, 64> events;
    const int ready = Wait(events);
    if (ready < 0) return fmt::format("epoll: errno {}", errno);
    uint64_t now_ns = NowNs();
    if (ready > 0) heard_ns_ = now_ns;
    if (now_ns - heard_ns_ > kTimeoutNs && !IsIdle()) return "the server is silent";
    for (int i = 0; i < ready; ++i) {
      const size_t lane = events[static_cast<size_t>(i)].data.u64;
      // Handling an event takes time, so the clock is read again for each later one.
      if (i > 0) now_ns = NowNs();
      Problem problem = Handle(lane, events[static_cast<size_t>(i)].events, now_ns);
      if (!problem.empty()) return problem;
    }
    run_.Observe(now_ns);
    return now_ns > next_give_up_ns_ ? GiveUpLost(now_ns) : Problem();
  }

  // Gives up datagrams that have had no answer for a while.
  Problem GiveUpLost(uint64_t now_ns) {
    next_give_up_ns_ = now_ns + kLostNs / 4;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].GiveUp(now_ns - kLostNs, run_.tally());
      if (is_open() || !lanes_[i].empty()) continue;
      Fill(lanes_[i], now_ns);
      if (Problem problem = Send(i); !problem.empty()) return problem;
    }
    return {};
  }

  Problem Handle(size_t index, uint32_t events, uint64_t now_ns) {
    NetLane& lane = lanes_[index];
    if ((events & ~EPOLLOUT) != 0) {
      const auto received = lane.Receive(run_.tally(), [&](const NetLane::Answered& answered) {
        run_.window().Answered(answered.meant_ns, now_ns, answered.operations);
      });
      if (!received) return received.error();
      if (run_.tally().errors != 0 && !pace_.allow_errors) {
        return fmt::format("the server answered: {}", run_.tally().first_error);
      }
      if (!is_open()) Fill(lane, now_ns);
    }
    return lane.has_unsent() ? Send(index) : Problem();
  }

  // Fills a lane with requests, in a closed loop.
  void Fill(NetLane& lane, uint64_t now_ns) {
    if (run_.is_over()) return;
    while (lane.HasRoom() && lane.HasMore()) lane.Issue(now_ns);
  }

  Problem SendDue() {
    const uint64_t now_ns = NowNs();
    while (next_ns_ <= now_ns && HasDue() && FindRoom()) {
      run_.window().Sent(next_ns_, now_ns);
      // A lane that has unsent bytes is already in the list, or waits for room.
      if (!lanes_[cursor_].has_unsent()) touched_.push_back(cursor_);
      lanes_[cursor_].Issue(next_ns_);
      cursor_ = (cursor_ + 1) % lanes_.size();
      next_ns_ = schedule_.MeantNs(++issued_);
    }
    for (const size_t lane : touched_) {
      if (Problem problem = Send(lane); !problem.empty()) return problem;
    }
    touched_.clear();
    return {};
  }

  // Moves the cursor to the next lane with room; returns false if there is none.
  bool FindRoom() {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      if (lanes_[cursor_].HasRoom()) return true;
      cursor_ = (cursor_ + 1) % lanes_.size();
    }
    return false;
  }

  // Sends on a lane; bytes that cannot go now wait for room.
  Problem Send(size_t index) {
    NetLane& lane = lanes_[index];
    const bool waited = waiting_.contains(index);
    if (Status status = lane.Send(); !status.ok()) return status.ToString();
    if (waited == lane.has_unsent()) return {};
    waited ? void(waiting_.erase(index)) : void(waiting_.insert(index));
    if (!Watch(epoll_, EPOLL_CTL_MOD, lane, index)) return fmt::format("epoll: errno {}", errno);
    return {};
  }

  int Wait(std::array<epoll_event, 64>& events) {
    const uint64_t now_ns = NowNs();
    uint64_t wake_ns = std::min(run_.window().edge_ns(), now_ns + kLongestSleepNs);
    if (HasDue() && FindRoom()) wake_ns = std::min(wake_ns, next_ns_);
    const uint64_t wait_ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
    const timespec timeout = {.tv_sec = static_cast<time_t>(wait_ns / kNsPerSecond),
                              .tv_nsec = static_cast<long>(wait_ns % kNsPerSecond)};
    const int ready =
        epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
    return ready < 0 && errno == EINTR ? 0 : ready;
  }

  const int epoll_;
  std::vector<NetLane>& lanes_;
  const NetPace& pace_;
  const uint64_t start_ns_;
  const OpenSchedule schedule_;
  MeasuredRun run_;
  uint64_t heard_ns_;  // when the last answer came
  uint64_t next_give_up_ns_ = 0;
  // Used by an open loop.
  uint64_t issued_ = 0;           // requests
  uint64_t next_ns_ = start_ns_;  // when the next one is meant to be sent
  size_t cursor_ = 0;             // the lane whose turn it is
  std::vector<size_t> touched_;   // lanes to send on
  std::set<size_t> waiting_;      // lanes that wait for room
};

}  // namespace

Result<NetGenerator> NetGenerator::Make(std::vector<NetLane> lanes) {
  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return Fail(Code::kIo, "epoll", static_cast<uint64_t>(errno));
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (!Watch(epoll.get(), EPOLL_CTL_ADD, lanes[i], i)) {
      return Fail(Code::kIo, "epoll", static_cast<uint64_t>(errno));
    }
  }
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  return NetGenerator(std::move(epoll), std::move(lanes));
}

NetGenerator::Outcome NetGenerator::Run(const NetPace& pace) {
  GeneratorRun run(epoll_.get(), lanes_, pace);
  if (std::string problem = run.Drive(); !problem.empty()) return std::unexpected(problem);
  return run.TakeFigures();
}

}  // namespace skep::bench
