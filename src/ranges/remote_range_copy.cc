#include "ranges/remote_range_copy.h"

#include <atomic>
#include <new>
#include <thread>
#include <utility>

#include "base/network_address.h"
#include "base/network_socket.h"
#include "client/remote.h"
#include "client/remote_engine.h"

namespace skep::ranges {
namespace {

Result<std::unique_ptr<client::Remote>> Connect(const std::string& server,
                                                const std::string& password) {
  const auto addresses = LookUp(server);
  if (!addresses) return Fail(addresses.error());
  Result<std::unique_ptr<client::Remote>> remote = Fail(Code::kUnavailable, "no address");
  for (const Address& address : *addresses) {
    remote = client::Remote::Connect(
        {.address = address, .password = password, .timeout_ms = kCopyTimeoutMs}, SocketNetwork(),
        SystemClock());
    if (remote) break;
  }
  return remote;
}

// The first request that was refused; kOk: none was.
Status FirstError(const Batch& batch) {
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    if (batch.outcome(slot).verdict == Verdict::kRefused) return batch.outcome(slot).status;
  }
  return {};
}

class RemoteRangeCopy final : public RangeCopy {
 public:
  RemoteRangeCopy(RangeToCopy range, Engine& to, RangeCopyOptions options)
      : range_(std::move(range)),
        to_(to),
        options_(std::move(options)),
        thread_([this] { Run(); }) {}
  ~RemoteRangeCopy() override {
    stops_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

  std::optional<Status> Poll() override {
    if (!is_done_.load(std::memory_order_acquire)) return std::nullopt;
    return status_;
  }

 private:
  void Run() {
    try {
      status_ = Copy();
    } catch (const std::bad_alloc&) {
      status_ = {Code::kOutOfMemory, "there is no memory for a copy of the range"};
    }
    is_done_.store(true, std::memory_order_release);
  }

  Status Copy() {
    const auto remote = Connect(range_.from, options_.password);
    if (!remote) return remote.error();
    client::RemoteEngine from(**remote, 0);
    std::string next = range_.lower;
    while (!stops_.load(std::memory_order_relaxed)) {
      bool more = false;
      if (const Status status = CopyPiece(from, &next, &more); !status.ok()) return status;
      if (more) continue;
      to_.Release();
      to_.AwaitRelease(to_.Latest());
      return {};
    }
    return {Code::kAborted, "the copy was ended"};
  }

  // Pairs from *next on. Nobody writes the range at the server, but keys may expire in between.
  Status CopyPiece(Engine& from, std::string* next, bool* more) {
    Batch scan;
    scan.set_scan_bytes_max(kCopyBytesMax);
    scan.Scan(range_.upper ? Range::Between(*next, *range_.upper) : Range::From(*next),
              {.limit = kCopyPairsMax});
    from.Execute(scan);
    if (const Status status = FirstError(scan); !status.ok()) return status;
    Batch deadlines;
    for (const Item& item : scan.items(0)) {
      deadlines.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = item.key});
    }
    if (!deadlines.empty()) from.Execute(deadlines);
    if (const Status status = FirstError(deadlines); !status.ok()) return status;
    Batch puts;
    const StoreNow now = options_.now();
    puts.set_now_ms(now.ms);
    uint32_t slot = 0;
    for (const Item& item : scan.items(0)) {
      const Outcome& told = deadlines.outcome(slot++);
      if (told.verdict != Verdict::kDone) continue;
      puts.Add({.op = Op::kPut,
                .key = item.key,
                .value = item.value,
                .deadline_ms = now.FromWall(told.deadline_ms)});
    }
    if (!puts.empty()) to_.Execute(puts);
    *more = scan.outcome(0).more;
    if (*more) *next = std::string(scan.outcome(0).value);
    return FirstError(puts);
  }

  const RangeToCopy range_;
  Engine& to_;
  const RangeCopyOptions options_;
  std::atomic<bool> stops_{false}, is_done_{false};
  Status status_;  // written before is_done_
  std::thread thread_;
};

}  // namespace

std::unique_ptr<RangeCopy> CopyRemoteRange(const RangeToCopy& range, Engine& to,
                                           RangeCopyOptions options) {
  return std::make_unique<RemoteRangeCopy>(range, to, std::move(options));
}

}  // namespace skep::ranges
