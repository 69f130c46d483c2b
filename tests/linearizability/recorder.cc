#include "tests/linearizability/recorder.h"

#include <mutex>

namespace skep::linearizability {

void MakeNumbersOwn(Operation& operation) {
  operation.snapshot += operation.client * Workload::kSnapshotsMax;
  for (Step& step : operation.steps) step.watch += operation.client * Workload::kWatchesMax;
}

Operation TickOf(const Operation& operation) {
  return {.client = operation.client,
          .call = operation.call,
          .returned = operation.returned,
          .steps = {{.action = Action::kTick, .deadline = operation.now}}};
}

namespace {

// Holds `quiet`, alone or shared as the operation asks for; nothing if it is null.
class Turn {
 public:
  Turn(const Operation& operation, std::shared_mutex* quiet) {
    if (quiet == nullptr) return;
    const bool ticks = operation.now != 0 || (!operation.steps.empty() &&
                                              operation.steps.front().action == Action::kTick);
    if (ticks) {
      alone_ = std::unique_lock(*quiet);
    } else {
      shared_ = std::shared_lock(*quiet);
    }
  }

 private:
  std::unique_lock<std::shared_mutex> alone_;
  std::shared_lock<std::shared_mutex> shared_;
};

}  // namespace

History RunClient(KvClient& client, Workload& workload, uint32_t operations,
                  std::atomic<uint64_t>& clock, std::shared_mutex* quiet) {
  using Kind = Operation::Kind;
  History history;
  history.reserve(operations);
  for (uint32_t i = 0; i < operations; ++i) {
    Operation operation = workload.Next();
    const Turn turn(operation, quiet);
    // seq_cst: one total order of all calls and returns, which agrees with real time.
    operation.call = clock.fetch_add(1);
    const KvClient::Reply reply = client.Perform(operation);
    operation.returned = reply == KvClient::Reply::kAnswered ? clock.fetch_add(1) : kNever;
    const bool is_read = operation.kind == Kind::kReadSnapshot;
    const bool is_open = operation.kind == Kind::kOpenSnapshot;
    if (reply != KvClient::Reply::kAnswered && (is_open || is_read)) {
      workload.Forget(operation.snapshot);
    }
    MakeNumbersOwn(operation);
    // The tick is recorded also when the operation is refused: the store may have learnt the time.
    if (operation.now != 0) history.push_back(TickOf(operation));
    if (reply != KvClient::Reply::kRefused) history.push_back(std::move(operation));
    if (reply == KvClient::Reply::kLost) break;
  }
  return history;
}

}  // namespace skep::linearizability
