#include "bench/expiry_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <ctime>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/network_address.h"
#include "bench/stream_connection.h"
#include "wire/resp_reply.h"

namespace skep::bench {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint64_t kTimeoutNs = uint64_t{StreamConnection::kTimeoutMs} * 1'000'000;
// The kernel may wake a sleeper this much later, so that it can batch wake-ups.
constexpr unsigned long kTimerSlackNs = 1;

struct InFlight {
  uint64_t meant_ns;
  OpKind kind;
};

// The state of one connection: commands to send, commands under way, replies that have come.
class Lane {
 public:
  Lane(StreamConnection connection, uint32_t in_flight_max)
      : connection_(std::move(connection)),
        in_flight_max_(in_flight_max),
        ring_(std::bit_ceil(in_flight_max)) {}

  bool HasRoom() const { return end_ - begin_ < in_flight_max_; }
  bool empty() const { return begin_ == end_; }
  bool has_unsent() const { return sent_ < out_.size(); }
  int descriptor() const { return connection_.descriptor(); }
  // Returns when the command was to be sent that waits longest for its reply. The lane must not be
  // empty().
  uint64_t oldest_ns() const { return At(begin_).meant_ns; }

  // Appends a command; HasRoom() must be true.
  void Append(uint64_t meant_ns, const YcsbOp& op, std::string_view value) {
    if (op.kind == OpKind::kRead) {
      AppendCommand(out_, {"GET", op.key});
    } else {
      AppendCommand(out_, {"SET", op.key, value});
    }
    At(end_++) = {.meant_ns = meant_ns, .kind = op.kind};
  }

  // Sends as much as is possible without waiting.
  Status Send() {
    const Result<size_t> sent = connection_.Send(std::string_view(out_).substr(sent_));
    if (!sent) return sent.error();
    sent_ += *sent;
    if (!has_unsent()) {
      out_.clear();
      sent_ = 0;
    }
    return {};
  }

  // Hands each reply that has come to take(in_flight, bytes). The descriptor must be readable.
  template <typename Take>
  Status Receive(Take take) {
    if (Status status = connection_.Receive(in_); !status.ok()) return status;
    size_t at = 0;
    for (auto event = RespReplyParser::Event::kReply; at < in_.size();) {
      const std::string_view rest = std::string_view(in_).substr(at);
      event = parser_.Skip(rest);
      if (event == RespReplyParser::Event::kNeedMore) break;
      if (event == RespReplyParser::Event::kError || empty()) {
        return Status(Code::kCorrupt, "the server's reply is not RESP, or nobody asked for it");
      }
      take(At(begin_++), rest.substr(0, parser_.consumed()));
      at += parser_.consumed();
    }
    in_.erase(0, at);
    return {};
  }

 private:
  InFlight& At(uint64_t index) { return ring_[index & (ring_.size() - 1)]; }
  const InFlight& At(uint64_t index) const { return ring_[index & (ring_.size() - 1)]; }

  StreamConnection connection_;
  RespReplyParser parser_;
  std::string out_;
  size_t sent_ = 0;  // how much of out_ is sent
  std::string in_;   // begins with a reply's first byte
  uint32_t in_flight_max_;
  std::vector<InFlight> ring_;  // [begin_, end_): in the order of their replies
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

void CountWrong(std::string_view reply, Tally& tally) {
  if (reply.starts_with("$-1")) return tally.CountError("a key without a deadline is absent");
  tally.CountError(reply.substr(0, reply.find('\r')));
}

}  // namespace

class ExpiryClient::Impl {
 public:
  Impl(const Pace& pace, const OpStream& stream, const ValuePool& values)
      : pace_(pace),
        stream_(stream),
        values_(values),
        good_value_(fmt::format("${}\r\n", values.value_bytes())) {}

  void Add(StreamConnection connection) {
    lanes_.emplace_back(std::move(connection), is_open() ? kInFlightMax : pace_.depth);
    polled_.push_back({.fd = lanes_.back().descriptor(), .events = POLLIN, .revents = 0});
  }

  Status Run(const ExpiryTimeline& timeline, ExpiryMeasured& measured) {
    prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
    timeline_ = &timeline;
    measured_ = &measured;
    // The whole intended time is measured, even if the thread began late.
    begin_ns_ = std::min(NowNs(), timeline.before_begins_ns());
    issued_ = 0;
    for (;;) {
      const uint64_t now_ns = NowNs();
      const bool over = now_ns >= timeline.end_ns();
      if (over && std::ranges::all_of(lanes_, &Lane::empty)) return {};
      if (!over) is_open() ? IssueDue(now_ns) : IssueToDepth(now_ns);
      if (Status status = Exchange(over ? UINT64_MAX : NextNs()); !status.ok()) return status;
    }
  }

 private:
  bool is_open() const { return pace_.rate != 0; }
  static uint64_t NowNs() { return SystemClock().MonotonicNs(); }

  // Returns when the next command is meant to be sent; a closed loop sends none by the clock.
  uint64_t NextNs() const {
    if (!is_open()) return UINT64_MAX;
    if (!lanes_[issued_ % lanes_.size()].HasRoom()) return UINT64_MAX;
    const auto since = static_cast<unsigned __int128>(issued_) * kNsPerSecond / pace_.rate;
    return begin_ns_ + static_cast<uint64_t>(since);
  }

  void Issue(Lane& lane, uint64_t meant_ns) {
    lane.Append(meant_ns, stream_.at(issued_ % stream_.size()), values_.at(issued_));
    ++issued_;
  }

  void IssueToDepth(uint64_t now_ns) {
    for (Lane& lane : lanes_) {
      while (lane.HasRoom()) Issue(lane, now_ns);
    }
  }

  void IssueDue(uint64_t now_ns) {
    for (uint64_t meant_ns = NextNs(); meant_ns <= now_ns; meant_ns = NextNs()) {
      if (timeline_->PartOf(meant_ns)) measured_->late_ns.Record(now_ns - meant_ns);
      Issue(lanes_[issued_ % lanes_.size()], meant_ns);
    }
  }

  // Sends pending commands; waits for replies, or until `wake_ns`.
  Status Exchange(uint64_t wake_ns) {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      if (lanes_[i].has_unsent()) {
        if (Status status = lanes_[i].Send(); !status.ok()) return status;
      }
      polled_[i].events = static_cast<short>(lanes_[i].has_unsent() ? POLLIN | POLLOUT : POLLIN);
    }
    if (Status status = Poll(wake_ns); !status.ok()) return status;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      if ((polled_[i].revents & ~POLLOUT) == 0) continue;
      if (Status status = Receive(lanes_[i]); !status.ok()) return status;
    }
    return {};
  }

  Status Poll(uint64_t wake_ns) {
    const uint64_t now_ns = NowNs();
    for (const Lane& lane : lanes_) {
      if (!lane.empty() && lane.oldest_ns() + kTimeoutNs < now_ns) {
        return Status(Code::kIo, "waiting for the server", ETIMEDOUT);
      }
    }
    const uint64_t wait_ns = std::min(wake_ns > now_ns ? wake_ns - now_ns : 0, kTimeoutNs);
    const timespec timeout = {.tv_sec = static_cast<time_t>(wait_ns / kNsPerSecond),
                              .tv_nsec = static_cast<long>(wait_ns % kNsPerSecond)};
    if (ppoll(polled_.data(), polled_.size(), &timeout, nullptr) >= 0) return {};
    for (pollfd& polled : polled_) polled.revents = 0;
    if (errno == EINTR) return {};
    return Status(Code::kIo, "poll", static_cast<uint64_t>(errno));
  }

  // All replies received together have the same time: reading the clock later would count our own
  // work.
  Status Receive(Lane& lane) {
    const uint64_t now_ns = NowNs();
    return lane.Receive([&](const InFlight& command, std::string_view reply) {
      const std::string_view good =
          command.kind == OpKind::kRead ? std::string_view(good_value_) : "+";
      if (!reply.starts_with(good)) CountWrong(reply, measured_->tally);
      const auto part = timeline_->PartOf(command.meant_ns);
      if (!part) return;
      measured_->latency_ns[static_cast<size_t>(*part)].Record(now_ns - command.meant_ns);
    });
  }

  const Pace pace_;
  const OpStream& stream_;
  const ValuePool& values_;
  const std::string good_value_;  // beginning of a right reply to a GET
  std::vector<Lane> lanes_;
  std::vector<pollfd> polled_;  // one for each lane
  const ExpiryTimeline* timeline_ = nullptr;
  ExpiryMeasured* measured_ = nullptr;
  uint64_t begin_ns_ = 0;
  uint64_t issued_ = 0;
};

Result<ExpiryClient> ExpiryClient::Connect(const std::string& host, uint16_t port, const Pace& pace,
                                           const OpStream& stream, const ValuePool& values) {
  auto impl = std::make_unique<Impl>(pace, stream, values);
  for (uint32_t i = 0; i < pace.connections; ++i) {
    auto connection = StreamConnection::Connect(AddressOf(host, port));
    if (!connection) return Fail(connection.error());
    impl->Add(std::move(*connection));
  }
  return ExpiryClient(std::move(impl));
}

ExpiryClient::ExpiryClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExpiryClient::ExpiryClient(ExpiryClient&&) noexcept = default;
ExpiryClient::~ExpiryClient() = default;

Status ExpiryClient::Run(const ExpiryTimeline& timeline, ExpiryMeasured& measured) {
  return impl_->Run(timeline, measured);
}

}  // namespace skep::bench
