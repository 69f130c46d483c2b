// coordinator_client.h: a session for tests: sends requests and waits for what becomes of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/coordinator.h"
#include "tests/coordinator/coordinator_world.h"

namespace skep {

// Thread safety: one owner.
class CoordinatorClient {
 public:
  // A session that a busy machine does not lose.
  static constexpr uint32_t kPatientMs = 60'000;

  // Waits until it is connected.
  explicit CoordinatorClient(CoordinatorWorld& world, uint32_t timeout_ms = kPatientMs);

  CoordinatorSession& session() { return *session_; }
  // Ends the session.
  void Close() { session_.reset(); }
  uint64_t wakes() const { return wakes_.load(); }

  // Make a request and return its token.
  uint64_t SendCreate(std::string_view path, std::string_view bytes,
                      CoordinatorNode node = CoordinatorNode::kPersistent);
  uint64_t SendGet(std::string_view path, CoordinatorWatch watch = CoordinatorWatch::kNone);
  uint64_t SendSet(std::string_view path, std::string_view bytes, int32_t version);
  uint64_t SendDelete(std::string_view path, int32_t version);
  uint64_t SendChildren(std::string_view path, CoordinatorWatch watch = CoordinatorWatch::kNone);
  uint64_t SendConfirm();

  // The same, and wait for the answer.
  CoordinatorEvent Create(std::string_view path, std::string_view bytes,
                          CoordinatorNode node = CoordinatorNode::kPersistent) {
    return Await(SendCreate(path, bytes, node));
  }
  CoordinatorEvent Get(std::string_view path, CoordinatorWatch watch = CoordinatorWatch::kNone) {
    return Await(SendGet(path, watch));
  }
  CoordinatorEvent Set(std::string_view path, std::string_view bytes, int32_t version) {
    return Await(SendSet(path, bytes, version));
  }
  CoordinatorEvent Delete(std::string_view path, int32_t version) {
    return Await(SendDelete(path, version));
  }
  CoordinatorEvent Children(std::string_view path,
                            CoordinatorWatch watch = CoordinatorWatch::kNone) {
    return Await(SendChildren(path, watch));
  }
  CoordinatorEvent Confirm() { return Await(SendConfirm()); }
  // A read that sees what was done before: Confirm and Get.
  CoordinatorEvent GetNew(std::string_view path, CoordinatorWatch watch = CoordinatorWatch::kNone);
  CoordinatorEvent ChildrenNew(std::string_view path,
                               CoordinatorWatch watch = CoordinatorWatch::kNone);

  // Waits for an event of this kind and, of answers and changes, this token, and takes it.
  CoordinatorEvent Await(CoordinatorEvent::Kind kind, uint64_t token = 0);
  CoordinatorEvent Await(uint64_t token) { return Await(CoordinatorEvent::Kind::kAnswer, token); }
  void AwaitChanged(uint64_t token) { Await(CoordinatorEvent::Kind::kChanged, token); }
  // Whether such an event has come and was not taken.
  bool Has(CoordinatorEvent::Kind kind, uint64_t token = 0);
  // The session's state now.
  CoordinatorSession::State State();
  // What has come and was not taken, in its order.
  const std::vector<CoordinatorEvent>& Waiting();

 private:
  void Take();
  std::vector<CoordinatorEvent>::iterator Find(CoordinatorEvent::Kind kind, uint64_t token);

  CoordinatorWorld& world_;
  std::atomic<uint64_t> wakes_{0};
  std::unique_ptr<CoordinatorSession> session_;
  uint64_t last_token_ = 0;
  std::vector<CoordinatorEvent> waiting_;
};

}  // namespace skep
