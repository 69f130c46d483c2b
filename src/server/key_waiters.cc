#include "server/key_waiters.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "types/value_type.h"

namespace skep {
namespace {

constexpr size_t kNodeBytes = 160;  // of a key in the table, about

// The key that a request has written, or may have; nothing if it has none.
std::optional<std::string_view> WrittenKey(const Request& request) {
  if (request.op == Op::kMove) return request.other;
  const bool stores = request.op == Op::kPut || request.op == Op::kInsert ||
                      request.op == Op::kUpdate || request.op == Op::kApply;
  return stores ? std::optional(request.key) : std::nullopt;
}

// Whether the first of the keys that are present has a value of another kind.
bool HasWrongType(KeyWaiter& waiter, const KeyWaiters::Execute& execute) {
  Batch look;
  for (const std::string_view key : waiter.keys()) {
    look.Add({.op = Op::kGet, .flags = Request::kNoValue, .key = key, .other = {}});
  }
  execute(waiter.engine, look);
  for (uint32_t slot = 0; slot < look.size(); ++slot) {
    const Outcome& out = look.outcome(slot);
    if (out.present) return types::KindOf(out.type) != waiter.kind;
  }
  return false;
}

}  // namespace

KeyWaiter::KeyWaiter(Engine& its_engine, const Command& its_command,
                     std::span<const std::string_view> args, std::span<const std::string_view> keys)
    : engine(its_engine), command(its_command), words_(args.begin(), args.end()) {
  bytes_ = sizeof(KeyWaiter) + kNodeBytes;
  for (const std::string& word : words_) bytes_ += sizeof(word) + word.capacity();
  args_.assign(words_.begin(), words_.end());
  std::unordered_set<std::string_view> seen;
  const auto first = static_cast<size_t>(keys.data() - args.data());
  for (size_t i = first; i < first + keys.size(); ++i) {
    if (!seen.insert(args_[i]).second) continue;
    keys_.push_back(args_[i]);
    bytes_ += 2 * kNodeBytes + args_[i].size();
  }
}

void WaiterInbox::Put(std::shared_ptr<KeyWaiter> waiter) {
  {
    const MutexLock lock(mutex_);
    ended_.push_back(std::move(waiter));
  }
  poller_->Wake();
}

std::vector<std::shared_ptr<KeyWaiter>> WaiterInbox::Take() {
  const MutexLock lock(mutex_);
  return std::exchange(ended_, {});
}

size_t KeyWaiters::CellOf(std::string_view key) {
  return std::hash<std::string_view>()(key) % kCells;
}

bool KeyWaiters::Begin(const std::shared_ptr<KeyWaiter>& waiter, const Execute& execute) {
  const MutexLock lock(mutex_);
  Enter(waiter);
  if (!HasEarlier(*waiter)) {
    if (Try(*waiter, waiter->keys(), execute) == Tried::kOtherType) {
      waiter->state = KeyWaiter::State::kOtherType;
    }
  } else if (HasWrongType(*waiter, execute)) {
    waiter->state = KeyWaiter::State::kOtherType;
  } else {
    for (const std::string_view key : waiter->keys()) ready_.emplace_back(&waiter->engine, key);
  }
  if (waiter->state != KeyWaiter::State::kNew) Remove(*waiter);
  ServeSome(execute);
  if (waiter->state != KeyWaiter::State::kNew) return true;
  waiter->state = KeyWaiter::State::kWaiting;
  return false;
}

bool KeyWaiters::Leave(KeyWaiter& waiter, KeyWaiter::State state) {
  const MutexLock lock(mutex_);
  if (waiter.state != KeyWaiter::State::kWaiting) return false;
  waiter.state = state;
  Remove(waiter);
  return true;
}

bool KeyWaiters::Unblock(uint64_t client, KeyWaiter::State state) {
  const MutexLock lock(mutex_);
  const auto at = by_client_.find(client);
  if (at == by_client_.end()) return false;
  const std::shared_ptr<KeyWaiter> waiter = at->second;
  waiter->state = state;
  Remove(*waiter);
  std::exchange(waiter->inbox, nullptr)->Put(waiter);
  return true;
}

bool KeyWaiters::MayAwait(const Batch& batch, uint32_t from_slot) const {
  if (size() == 0) return false;
  for (const Request& request : batch.requests().subspan(from_slot)) {
    const auto key = WrittenKey(request);
    if (key && cells_[CellOf(*key)].load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

void KeyWaiters::Serve(Engine& engine, const Batch& batch, const Execute& execute) {
  if (!MayAwait(batch, 0)) return;
  const MutexLock lock(mutex_);
  NoteWritten(engine, batch, {});
  ServeSome(execute);
}

void KeyWaiters::ServeMore(const Execute& execute) {
  if (!has_left()) return;
  const MutexLock lock(mutex_);
  ServeSome(execute);
}

// Counts it in the cells of its keys first, see (1).
void KeyWaiters::Enter(const std::shared_ptr<KeyWaiter>& waiter) {
  waiter->number = ++last_number_;
  count_.fetch_add(1, std::memory_order_relaxed);
  for (const std::string_view key : waiter->keys()) {
    cells_[CellOf(key)].fetch_add(1, std::memory_order_relaxed);
    queues_[Key(&waiter->engine, key)].emplace(waiter->number, waiter);
  }
  by_client_.emplace(waiter->client->id, waiter);
}

// The caller holds a reference to the waiter.
void KeyWaiters::Remove(KeyWaiter& waiter) {
  for (const std::string_view key : waiter.keys()) {
    const auto queue = queues_.find(KeyView{&waiter.engine, key});
    queue->second.erase(waiter.number);
    if (queue->second.empty()) queues_.erase(queue);
    cells_[CellOf(key)].fetch_sub(1, std::memory_order_relaxed);
  }
  count_.fetch_sub(1, std::memory_order_relaxed);
  by_client_.erase(waiter.client->id);
}

bool KeyWaiters::HasEarlier(const KeyWaiter& waiter) const {
  return std::ranges::any_of(waiter.keys(), [&](std::string_view key) {
    return queues_.find(KeyView{&waiter.engine, key})->second.begin()->first != waiter.number;
  });
}

// Makes the keys ready that the batch has changed and somebody waits for, in the order of its
// slots, but for those in `popped`. A pop that has found nothing makes no key ready.
void KeyWaiters::NoteWritten(Engine& engine, const Batch& batch,
                             std::span<const std::string_view> popped) {
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const auto key = WrittenKey(batch.requests()[slot]);
    if (!key || batch.outcome(slot).verdict != Verdict::kDone) continue;
    if (batch.outcome(slot).version == 0) continue;
    if (std::ranges::find(popped, *key) != popped.end()) continue;
    if (queues_.contains(KeyView{&engine, *key})) ready_.emplace_back(&engine, *key);
  }
}

void KeyWaiters::ServeSome(const Execute& execute) {
  // Serving a key adds to the back, which keeps the front where it is.
  for (size_t pops_left = kPopsMax; !ready_.empty(); ready_.pop_front()) {
    if (!ServeKey(ready_.front(), execute, &pops_left)) break;
  }
  has_left_.store(!ready_.empty(), std::memory_order_relaxed);
}

// Returns false if there were too few pops left for those who wait for the key.
bool KeyWaiters::ServeKey(const Key& key, const Execute& execute, size_t* pops_left) {
  std::optional<uint8_t> wrong_kind;  // the key has a value, and it is not of this kind
  uint64_t number = 0;
  while (true) {
    const auto queue = queues_.find(key);
    if (queue == queues_.end()) return true;
    const auto at = queue->second.upper_bound(number);
    if (at == queue->second.end()) return true;
    const std::shared_ptr<KeyWaiter> waiter = at->second;
    number = waiter->number;
    if (waiter->kind == wrong_kind || waiter->client->ends.load(std::memory_order_relaxed)) {
      continue;
    }
    if (*pops_left == 0) return false;
    --*pops_left;
    const auto its_key = std::ranges::find(waiter->keys(), std::string_view(key.second));
    const bool is_entered = waiter->state == KeyWaiter::State::kWaiting;
    switch (Try(*waiter, {its_key, 1}, execute)) {
      case Tried::kNothing:
        return true;
      case Tried::kOtherType:
        if (wrong_kind) return true;
        wrong_kind = waiter->kind;
        break;
      case Tried::kEnded:
        Remove(*waiter);
        if (is_entered) std::exchange(waiter->inbox, nullptr)->Put(waiter);
        break;
    }
  }
}

// Pops for the waiter from the first of the keys that has an element. If there was one, or the pop
// was refused for another reason than the type of what it pops from, the waiter has ended.
KeyWaiters::Tried KeyWaiters::Try(KeyWaiter& waiter, std::span<const std::string_view> keys,
                                  const Execute& execute) {
  auto batch = std::make_unique<Batch>(Batch::Kind::kAtomic);
  waiter.add_pop(waiter.args(), keys, *batch);
  const Version ticket = execute(waiter.engine, *batch);
  const auto last = static_cast<uint32_t>(keys.size()) - 1;
  if (batch->applied() && batch->outcome(last).value.empty()) return Tried::kNothing;
  for (uint32_t slot = 0; slot <= last; ++slot) {
    const Outcome& out = batch->outcome(slot);
    if (out.verdict == Verdict::kRefused && out.status.code() == Code::kWrongType) {
      return Tried::kOtherType;
    }
  }
  waiter.state = KeyWaiter::State::kPopped;
  waiter.popped = std::move(batch);
  waiter.popped_keys = keys;
  waiter.ticket = ticket;
  NoteWritten(waiter.engine, *waiter.popped, keys);
  return Tried::kEnded;
}

}  // namespace skep
