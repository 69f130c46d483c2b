#include "pool/registration.h"

namespace skep::pool {

// Parents that are there already stay as they are.
void Registration::Want() {
  if (stage_ != Stage::kWanted) return;
  stage_ = Stage::kAsked;
  for (size_t slash = path_.find('/', 1); slash != std::string::npos;
       slash = path_.find('/', slash + 1)) {
    session_.Create(parent_token(), path_.substr(0, slash), "", CoordinatorNode::kPersistent);
  }
  session_.Create(own_token(), path_, address_, CoordinatorNode::kEphemeral);
}

void Registration::Handle(const CoordinatorEvent& event) {
  if (event.kind != CoordinatorEvent::Kind::kAnswer || event.token != own_token()) return;
  const bool is_good = event.outcome == CoordinatorOutcome::kDone;
  if (stage_ == Stage::kAskedForOwner) {
    stage_ = is_good && event.owner == session_.id() ? Stage::kDone : Stage::kWanted;
  } else if (event.outcome == CoordinatorOutcome::kExists) {
    stage_ = Stage::kAskedForOwner;
    session_.Get(own_token(), path_, CoordinatorWatch::kNone);
  } else {
    stage_ = is_good ? Stage::kDone : Stage::kWanted;
  }
}

}  // namespace skep::pool
