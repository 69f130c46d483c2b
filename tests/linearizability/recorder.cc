#include "tests/linearizability/recorder.h"

namespace skep::linearizability {

History RunClient(KvClient& client, Workload& workload, uint32_t operations,
                  std::atomic<uint64_t>& clock) {
  using Kind = Operation::Kind;
  History history;
  history.reserve(operations);
  for (uint32_t i = 0; i < operations; ++i) {
    Operation operation = workload.Next();
    // seq_cst: one total order of all calls and returns, which real time agrees with.
    operation.call = clock.fetch_add(1);
    const KvClient::Reply reply = client.Perform(operation);
    operation.returned = reply == KvClient::Reply::kAnswered ? clock.fetch_add(1) : kNever;
    const bool is_read = operation.kind == Kind::kReadSnapshot;
    const bool is_open = operation.kind == Kind::kOpenSnapshot;
    if (reply != KvClient::Reply::kAnswered && (is_open || is_read)) {
      workload.Forget(operation.snapshot);
    }
    operation.snapshot += operation.client * Workload::kSnapshotsMax;
    if (reply != KvClient::Reply::kRefused) history.push_back(std::move(operation));
    if (reply == KvClient::Reply::kLost) break;
  }
  return history;
}

}  // namespace skep::linearizability
