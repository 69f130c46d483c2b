#include "tests/coordinator/coordinator_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace skep {

CoordinatorClient::CoordinatorClient(CoordinatorWorld& world, uint32_t timeout_ms)
    : world_(world), session_(world.Open({.timeout_ms = timeout_ms, .wake = [this] {
                                            ++wakes_;
                                            world_.Wake();
                                          }})) {
  Await(CoordinatorEvent::Kind::kConnected);
}

uint64_t CoordinatorClient::SendCreate(std::string_view path, std::string_view bytes,
                                       CoordinatorNode node) {
  session_->Create(++last_token_, path, bytes, node);
  return last_token_;
}

uint64_t CoordinatorClient::SendGet(std::string_view path, CoordinatorWatch watch) {
  session_->Get(++last_token_, path, watch);
  return last_token_;
}

uint64_t CoordinatorClient::SendSet(std::string_view path, std::string_view bytes,
                                    int32_t version) {
  session_->Set(++last_token_, path, bytes, version);
  return last_token_;
}

uint64_t CoordinatorClient::SendDelete(std::string_view path, int32_t version) {
  session_->Delete(++last_token_, path, version);
  return last_token_;
}

uint64_t CoordinatorClient::SendChildren(std::string_view path, CoordinatorWatch watch) {
  session_->Children(++last_token_, path, watch);
  return last_token_;
}

uint64_t CoordinatorClient::SendConfirm() {
  session_->Confirm(++last_token_);
  return last_token_;
}

CoordinatorEvent CoordinatorClient::GetNew(std::string_view path, CoordinatorWatch watch) {
  const uint64_t confirm = SendConfirm();
  const uint64_t get = SendGet(path, watch);
  EXPECT_EQ(Await(confirm).outcome, CoordinatorOutcome::kDone);
  return Await(get);
}

CoordinatorEvent CoordinatorClient::ChildrenNew(std::string_view path, CoordinatorWatch watch) {
  const uint64_t confirm = SendConfirm();
  const uint64_t children = SendChildren(path, watch);
  EXPECT_EQ(Await(confirm).outcome, CoordinatorOutcome::kDone);
  return Await(children);
}

void CoordinatorClient::Take() {
  std::ranges::move(session_->TakeEvents(), std::back_inserter(waiting_));
}

std::vector<CoordinatorEvent>::iterator CoordinatorClient::Find(CoordinatorEvent::Kind kind,
                                                                uint64_t token) {
  return std::ranges::find_if(waiting_, [&](const CoordinatorEvent& event) {
    return event.kind == kind && event.token == token;
  });
}

CoordinatorEvent CoordinatorClient::Await(CoordinatorEvent::Kind kind, uint64_t token) {
  Take();
  auto found = Find(kind, token);
  while (found == waiting_.end()) {
    if (!world_.PassTime()) {
      ADD_FAILURE() << "an event of kind " << static_cast<int>(kind) << " did not come";
      return {.outcome = CoordinatorOutcome::kUnknown};
    }
    Take();
    found = Find(kind, token);
  }
  // The session wakes its owner when the event can be taken, so it may be taken before the wake.
  while (wakes() == 0 && world_.PassTime()) {
  }
  EXPECT_GT(wakes(), 0U);
  CoordinatorEvent event = std::move(*found);
  waiting_.erase(found);
  return event;
}

bool CoordinatorClient::Has(CoordinatorEvent::Kind kind, uint64_t token) {
  Take();
  return Find(kind, token) != waiting_.end();
}

CoordinatorSession::State CoordinatorClient::State() {
  Take();
  return session_->state();
}

const std::vector<CoordinatorEvent>& CoordinatorClient::Waiting() {
  Take();
  return waiting_;
}

}  // namespace skep
