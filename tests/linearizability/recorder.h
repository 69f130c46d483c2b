// recorder.h: runs several clients at once, and records the history of their answers.
#pragma once

#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "tests/linearizability/kv_client.h"
#include "tests/linearizability/workload.h"

namespace skep::linearizability {

// Changes numbers of snapshots and watches to ones that no other client has.
void MakeNumbersOwn(Operation& operation);

// Returns the tick by which the operation tells the time, Operation::now.
Operation TickOf(const Operation& operation);

// Returns one client's operations, with their times. A client that lost a reply stops there, as a
// client whose connection broke. An operation that tells the time is recorded twice: as a tick, and
// as itself. If `quiet` is not null, operations that tell the time hold it alone, all others share
// it.
History RunClient(KvClient& client, Workload& workload, uint32_t operations,
                  std::atomic<uint64_t>& clock, std::shared_mutex* quiet);

// Runs `threads` clients of `operations` each, all at once; make_client(i) returns a
// std::unique_ptr<KvClient> and is called in this thread. `seed` decides the operations (not how
// the threads meet).
template <typename MakeClient>
History RunHistory(uint32_t threads, uint32_t operations, uint64_t seed, const Mix& mix,
                   MakeClient make_client) {
  std::vector<std::unique_ptr<KvClient>> clients;
  for (uint32_t i = 0; i < threads; ++i) clients.push_back(make_client(i));
  std::vector<History> parts(threads);
  std::atomic<uint64_t> clock = 0;
  std::atomic<uint64_t> time = 0;
  std::shared_mutex quiet;
  std::barrier start(threads);
  {
    std::vector<std::jthread> running;
    for (uint32_t i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        Workload workload(i, seed * 31 + i, mix, time,
                          [&](const Operation& o) { return clients[i]->Supports(o); });
        start.arrive_and_wait();
        parts[i] =
            RunClient(*clients[i], workload, operations, clock, mix.quiet_ticks ? &quiet : nullptr);
      });
    }
  }
  History history;
  for (History& part : parts) {
    history.insert(history.end(), std::move_iterator(part.begin()), std::move_iterator(part.end()));
  }
  return history;
}

}  // namespace skep::linearizability
