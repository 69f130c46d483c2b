#include "durable/feed.h"

#include <algorithm>
#include <vector>

#include "engine/batch_writer.h"

namespace skep::durable {

bool LackedRoomForAnswers(const Batch& batch, uint32_t slot) {
  static_assert(kAnswerBytesMax > EngineTraits().value_bytes_max, "it is told by its detail");
  const Outcome& outcome = batch.outcome(slot);
  return outcome.verdict == Verdict::kRefused && outcome.status.code() == Code::kTooLarge &&
         outcome.status.detail() == batch.answer_bytes_max();
}

Status Feed::Added(size_t bytes) {
  bytes_ += bytes;
  return batch_.size() < operations_max_ && bytes_ < kRequestBytesMax ? Status() : Finish();
}

Status Feed::Finish() {
  if (batch_.empty()) return {};
  const Status status = ExecuteAll(batch_);
  batch_.Clear();
  bytes_ = 0;
  return status;
}

// Executes the batch, and then in further batches the requests that it has left.
Status Feed::ExecuteAll(Batch& batch) {
  engine_.Execute(batch);
  const size_t made = batch.answer_bytes();
  // As many operations as would have made kAnswerBytesWanted, but not many more than in this batch.
  const uint64_t fit = made == 0 ? kOperationsMax : batch.size() * kAnswerBytesWanted / made;
  operations_max_ = static_cast<uint32_t>(
      std::clamp<uint64_t>(std::min<uint64_t>(fit, 2 * operations_max_), 1, kOperationsMax));
  std::vector<Request> left;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Outcome& out = batch.outcome(slot);
    if (out.verdict != Verdict::kRefused) continue;
    if (!LackedRoomForAnswers(batch, slot)) return out.status;
    left.push_back(batch.requests()[slot]);
  }
  return ExecuteLeft(left);
}

Status Feed::ExecuteLeft(std::span<const Request> requests) {
  while (!requests.empty()) {
    const size_t count = std::min<size_t>(operations_max_, requests.size());
    Batch piece(batch_.kind());
    for (const Request& request : requests.first(count)) piece.Add(request);
    if (const Status s = ExecuteAll(piece); !s.ok()) return s;
    requests = requests.subspan(count);
  }
  return {};
}

}  // namespace skep::durable
