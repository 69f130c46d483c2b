#include "tests/simulation/pool_client.h"

#include <string_view>

#include "tests/linearizability/batch_steps.h"

namespace skep::simulation {

using linearizability::Action;
using linearizability::Operation;

bool PoolClient::Supports(const Operation& operation) const {
  if (operation.kind != Operation::Kind::kExecute || operation.steps.size() != 1) return false;
  switch (operation.steps.front().action) {
    case Action::kGet:
    case Action::kPut:
    case Action::kInsert:
    case Action::kUpdate:
    case Action::kDelete:
    case Action::kCompareAndSet:
    case Action::kCompareAndDelete:
    case Action::kPutIfDiffers:
    case Action::kAddDecimal:
    case Action::kScan:
    case Action::kCount:
      return true;
    default:
      return false;
  }
}

// A write that was refused was not done, if the refusal does not say that this is not known.
PoolClient::Reply PoolClient::Perform(Operation& operation) {
  batch_.Clear();
  linearizability::AddStep(operation.steps.front(), batch_);
  engine_.Execute(batch_);
  const Outcome& outcome = batch_.outcome(0);
  if (outcome.verdict != Verdict::kRefused) {
    linearizability::ReadAnswer(batch_, 0, operation.steps.front());
    return Reply::kAnswered;
  }
  if (outcome.status.code() == Code::kInvalidArgument) {
    operation.applied = false;
    operation.culprit = 0;
    return Reply::kAnswered;
  }
  return std::string_view(outcome.status.what()).contains("not known") ? Reply::kLost
                                                                       : Reply::kRefused;
}

}  // namespace skep::simulation
