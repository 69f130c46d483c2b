#include "collections/sweeper.h"

#include <string>
#include <string_view>
#include <vector>

#include "collections/names.h"

namespace skep::collections {

Sweeper::Step Sweeper::Run(Access& access) {
  Step step;
  if (!mutex_.try_lock()) return step;
  const MutexLock lock(mutex_, std::adopt_lock);
  if (next_id_ == 0) {
    round_ = wanted_.load(std::memory_order_relaxed);
    if (round_ == done_) return step;
    next_id_ = 1;
    has_left_ = false;
  }
  for (; step.looks < kSweepIds; ++step.looks) {
    const auto id = NextId(access);
    if (!id) {
      next_id_ = 0;
      done_ = round_;
      step.more = !has_left_ && wanted_.load(std::memory_order_relaxed) != done_;
      return step;
    }
    next_id_ = *id;
    if (!IsLeft(access, *id)) {
      ++next_id_;
      continue;
    }
    Batch batch;
    const std::string lo = KeysOf(*id);
    const std::string hi = KeysOf(*id + 1);
    batch.DeleteRange(Range::Between(lo, hi), kSweepItems);
    const Outcome& out = access.Execute(batch).outcome(0);
    step.deleted = out.integer;
    step.id = *id;
    step.version = out.version;
    step.more = out.verdict != Verdict::kRefused;
    if (step.more && !out.more) ++next_id_;
    return step;
  }
  step.more = true;
  return step;
}

// The smallest id from next_id_ on that has an item.
std::optional<uint64_t> Sweeper::NextId(Access& access) {
  Batch batch;
  const std::string lo = KeysOf(next_id_);
  const uint32_t slot = batch.Scan(Range::From(lo), {.limit = 1, .keys_only = true});
  access.Execute(batch);
  if (batch.outcome(slot).verdict == Verdict::kRefused || batch.items(slot).empty()) {
    return std::nullopt;
  }
  return IdOf(batch.items(slot).front().key);
}

bool Sweeper::IsLeft(Access& access, uint64_t id) {
  const std::vector<std::string> names = ReadNames(access, id);
  const std::vector<std::string_view> keys(names.begin(), names.end());
  const KeyLocks::Held held(locks_, keys, Wait::kMustNot);
  if (!held) {
    has_left_ = true;
    Want();
    return false;
  }
  // Another name may have come before the locks were held: then the id is looked at in a later
  // round, which the rename's end asks for.
  return ReadNames(access, id) == names && access.status().ok() && !HasRecord(access, names, id) &&
         access.status().ok();
}

}  // namespace skep::collections
