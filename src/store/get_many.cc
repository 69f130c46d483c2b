// Store::GetMany (skep/store.h).
#include <algorithm>
#include <new>

#include "keyspace/keyspaces.h"
#include "skep/store.h"
#include "store/single_call.h"

namespace skep {
namespace {

// Gets the keys that are not answered yet by batches, none of which has more than so many.
constexpr uint32_t kRestOfBatch = 4096;
Status GetRestByBatches(Store& store, std::span<const std::string_view> keys,
                        std::span<GetAnswer> answers, Scratch& values, uint32_t keyspace) {
  const Status too_many_bytes{Code::kTooLarge, "the values take more bytes than a call may return",
                              kAnswerBytesMax};
  Status status;
  for (size_t next = 0; next < keys.size();) {
    SingleCall call;
    Batch& batch = call.batch();
    const size_t first = next;
    for (; next < keys.size() && batch.size() < kRestOfBatch; ++next) {
      if (answers[next].verdict == Verdict::kPostponed) batch.Get(keys[next]);
    }
    if (batch.empty()) break;
    if (Status s = store.Execute(batch, keyspace); !s.ok()) return s;
    uint32_t slot = 0;
    for (GetAnswer& answer : answers.subspan(first, next - first)) {
      if (answer.verdict != Verdict::kPostponed) continue;
      const Outcome& outcome = batch.outcome(slot++);
      answer.verdict = outcome.verdict;
      Status refusal = outcome.status;
      if (outcome.verdict == Verdict::kDone) {
        if (outcome.value.size() <= kAnswerBytesMax - std::min(kAnswerBytesMax, values.used())) {
          answer = AnswerOf(values.Copy(outcome.value));
          continue;
        }
        answer.verdict = Verdict::kRefused;
        refusal = too_many_bytes;
      }
      if (answer.verdict == Verdict::kRefused && status.ok()) status = refusal;
    }
  }
  return status;
}

}  // namespace

Status Store::GetMany(std::span<const std::string_view> keys, std::span<GetAnswer> answers,
                      Scratch& values, uint32_t keyspace) {
  if (keyspace >= keyspaces_->count()) return kNoSuchKeyspace;
  if (keys.size() != answers.size()) {
    return {Code::kInvalidArgument, "there are not as many answers as keys"};
  }
  std::ranges::fill(answers, GetAnswer{});
  try {
    if (PlainGets* const gets = keyspaces_->plain_gets(keyspace)) {
      Engine& engine = keyspaces_->at(keyspace);
      const Version ticket = gets->GetManyPlain(keys, answers, values);
      if (!engine.gate().IsReleased(ticket)) engine.AwaitRelease(ticket);
    }
    return GetRestByBatches(*this, keys, answers, values, keyspace);
  } catch (const std::bad_alloc&) {
    // Nobody has waited for the release of what was read.
    std::ranges::fill(answers, GetAnswer{});
    throw;
  }
}

}  // namespace skep
