#include "pool/lookup.h"

#include <algorithm>
#include <bit>

#include "pool/fields.h"

namespace skep::pool {
namespace {

void ReadBucket(const BucketAddress& at, BucketImage* image, Round& round) {
  round.ReadIndex(at.is_overflow ? kOverflowRegion : kBucketRegion, at.number * sizeof(Bucket),
                  sizeof(Bucket), image);
}

// How many of the slots, the first ones and one at least, have items that fit into a round. One
// whose length its slot does not tell counts as this many units.
size_t CountOfRound(std::span<const Slot> slots) {
  constexpr uint32_t kUnitsOfLong = 1024;
  uint64_t units = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    units += slots[i].units() == Slot::kUnitsMax ? kUnitsOfLong : slots[i].units();
    if (i > 0 && units * kUnitBytes > ItemFinder::kRoundBytes) return i;
  }
  return slots.size();
}

}  // namespace

void ItemFinder::NextBlock(size_t bytes) {
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    const size_t size = std::max(bytes, kBlockBytes);
    blocks_.push_back({.bytes = std::make_unique_for_overwrite<std::byte[]>(size), .size = size});
  }
}

void ItemFinder::PlanItem(ItemRead& item, Round& round) {
  if (!item.is_to_read) return;
  FramePlace place;
  const ClientSession::Where where = session_.Locate(item.slot.chunk(), item.slot.gen(), &place);
  if (where != ClientSession::Where::kHere) {
    item.is_to_read = false;
    item.is_lost = where == ClientSession::Where::kLost;
    item.bytes = nullptr;
    return;
  }
  if (item.units == 0) {
    item.units = item.slot.units() == Slot::kUnitsMax ? 1 : item.slot.units();
  }
  item.bytes = Allocate(size_t{item.units} * kUnitBytes);
  round.ReadMemory(place, item.slot.offset(), item.units * kUnitBytes, item.bytes);
}

bool ItemFinder::IsToReadWhole(ItemRead& item) {
  item.is_to_read = false;
  if (item.slot.units() != Slot::kUnitsMax || item.units != 1) return false;
  const uint32_t units = UnitsToldBy(item.span());
  // An item that cannot be: it does not check.
  if (units < Slot::kUnitsMax || item.slot.unit() + units > kChunkUnits) return false;
  item.units = units;
  item.is_to_read = true;
  return true;
}

void ItemFinder::FreeAll() {
  while (blocks_.size() > kBlocksKept) blocks_.pop_back();
  block_ = 0;
  used_ = 0;
}

void ItemFinder::Find(std::span<Lookup> lookups) {
  FreeAll();
  waiting_.clear();
  if (!session_.Join()) return;
  MakeTasks(lookups);
  now_ns_ = session_.now_ns();
  for (bool is_first = true; !waiting_.empty() && now_ns_ < session_.deadline_ns();
       is_first = false) {
    round_.Clear();
    const bool has_lease = session_.TakeLease(&now_ns_);
    if (FollowTable() || is_first) {
      for (Task* const task : waiting_) Begin(*task);
    }
    if (has_lease) PlanAll();
    if (round_.empty()) {
      AskForSlots();
      now_ns_ = session_.now_ns();
    } else {
      RunRound();
    }
    std::erase_if(waiting_, [](const Task* task) { return task->stage == Task::Stage::kDone; });
  }
}

// All places of the cache are asked for in one go (prefetch.h) before the first one is looked at.
void ItemFinder::MakeTasks(std::span<Lookup> lookups) {
  if (tasks_.size() < lookups.size()) tasks_.resize(lookups.size());
  for (size_t i = 0; i < lookups.size(); ++i) {
    Task& task = tasks_[i];
    task.lookup = &lookups[i];
    task.index = SipHash(session_.keys().index, lookups[i].key);
    task.torn = 0;
    waiting_.push_back(&task);
  }
  for (const Task* const task : waiting_) cache_.Prefetch(task->index);
}

// The reads begin after `now_ns_`.
void ItemFinder::PlanAll() {
  planned_ns_ = now_ns_;
  planned_ = 0;
  while (planned_ < waiting_.size() && round_.bytes() < kRoundBytes) Plan(*waiting_[planned_++]);
}

void ItemFinder::RunRound() {
  const bool is_read = session_.Run(round_);
  if (!is_read) session_.RefreshMap();
  now_ns_ = session_.now_ns();
  for (Task* const task : std::span(waiting_).first(planned_)) {
    is_read ? Proceed(*task) : TryAgain(*task, nullptr);
  }
}

bool ItemFinder::FollowTable() {
  const bool is_other = table_ != session_.table();
  if (is_other) {
    table_ = session_.table();
    buckets_ = 1;
    cache_.Clear();
  }
  buckets_ = std::max(buckets_, session_.buckets());
  return is_other;
}

// Without a lease there is no hint, and a guess would be wrong.
void ItemFinder::Remember(std::string_view key, Slot slot) {
  FollowTable();
  const uint64_t index = SipHash(session_.keys().index, key);
  const auto known = cache_.Find(index);
  if (!known && buckets_ == 1) return;
  cache_.Put(index, WrittenSlot(slot, known ? &*known : nullptr, index, buckets_));
}

void ItemFinder::Begin(Task& task) {
  const auto cached = cache_.Find(task.index);
  ++(cached ? session_.statistics().cache_hits : session_.statistics().cache_misses);
  if (!cached) {
    task.reader = ChainReader(task.index, buckets_);
    task.stage = Task::Stage::kBucket;
  } else {
    task.cached = *cached;
    task.items[0] = {.slot = cached->slot, .is_to_read = true};
    task.stage = Task::Stage::kCached;
  }
}

// A task that is planned again only because the round before left something to read keeps the rest.
void ItemFinder::Plan(Task& task) {
  switch (task.stage) {
    case Task::Stage::kCached:
      task.begin_ns = planned_ns_;
      ReadBucket(task.cached.at, &task.image, round_);
      PlanItem(task.items[0], round_);
      break;
    case Task::Stage::kBucket:
      task.at = task.reader.next();
      if (!task.at.is_overflow) task.begin_ns = planned_ns_;
      ReadBucket(task.at, &task.image, round_);
      break;
    case Task::Stage::kItems:
      for (uint32_t i = 0; i < task.item_count; ++i) {
        PlanItem(task.items[i], round_);
      }
      break;
    case Task::Stage::kAsk:
    case Task::Stage::kDone:
      break;
  }
}

void ItemFinder::Proceed(Task& task) {
  switch (task.stage) {
    case Task::Stage::kCached:
      return TakeCached(task);
    case Task::Stage::kBucket:
      return TakeBucket(task);
    case Task::Stage::kItems:
      return TakeItems(task);
    case Task::Stage::kAsk:
    case Task::Stage::kDone:
      return;
  }
}

void ItemFinder::TakeCached(Task& task) {
  ItemRead& read = task.items[0];
  const bool holds = Holds(task.cached, task.index, task.image);
  if (holds && read.is_to_read && IsToReadWhole(read)) return;
  const auto item =
      holds && read.bytes != nullptr ? ReadItem(PlaceOf(read.slot), read.span()) : std::nullopt;
  if (item && item->key == task.lookup->key) {
    Found(task, read.slot, *item);
    return;
  }
  cache_.Drop(task.index);
  TryAgain(task, nullptr);
}

void ItemFinder::TakeBucket(Task& task) {
  const ChainReader::Step step = task.reader.Take(task.image);
  if (step == ChainReader::Step::kElsewhere) {
    ++session_.statistics().retries_redirected;
    return;
  }
  buckets_ = std::max(buckets_, task.reader.buckets());
  task.has_next = step == ChainReader::Step::kMore;
  task.item_count = 0;
  for (uint32_t left = CandidatesIn(task.image, task.index); left != 0; left &= left - 1) {
    const Slot slot(task.image.slots[std::countr_zero(left)]);
    task.items[task.item_count++] = {.slot = slot, .is_to_read = true};
  }
  task.stage = Task::Stage::kItems;
  if (task.item_count == 0) TakeItems(task);
}

void ItemFinder::TakeItems(Task& task) {
  bool is_whole = true;
  for (uint32_t i = 0; i < task.item_count; ++i) {
    if (task.items[i].is_to_read && IsToReadWhole(task.items[i])) is_whole = false;
  }
  if (!is_whole) return;
  bool is_torn = false;
  bool is_lost = false;
  for (uint32_t i = 0; i < task.item_count; ++i) {
    const ItemRead& read = task.items[i];
    is_lost |= read.is_lost;
    const auto item =
        read.bytes == nullptr ? std::nullopt : ReadItem(PlaceOf(read.slot), read.span());
    if (item && item->key == task.lookup->key) {
      if (!Found(task, read.slot, *item)) return;
      return cache_.Put(task.index,
                        {.slot = read.slot, .at = task.at, .chain = task.reader.chain()});
    }
    if (!item) {
      is_torn = true;
      session_.DoubtPlace(read.slot.chunk());
    }
  }
  if (is_torn) {
    TryAgain(task, &session_.statistics().retries_torn);
    if (++task.torn > kTornMax || is_lost) task.stage = Task::Stage::kAsk;
  } else if (task.has_next) {
    task.stage = Task::Stage::kBucket;
  } else if (Counts(task)) {
    task.lookup->result = Lookup::Result::kAbsent;
    task.stage = Task::Stage::kDone;
  }
}

bool ItemFinder::Counts(Task& task) {
  if (now_ns_ - task.begin_ns <= session_.times().read_ns_max && session_.HadLease(now_ns_)) {
    return true;
  }
  TryAgain(task, &session_.statistics().retries_late);
  return false;
}

bool ItemFinder::Found(Task& task, Slot slot, const ItemView& item) {
  if (!Counts(task)) return false;
  task.lookup->result = Lookup::Result::kFound;
  task.lookup->slot = slot;
  task.lookup->value = item.value;
  task.stage = Task::Stage::kDone;
  return true;
}

void ItemFinder::TryAgain(Task& task, uint64_t* reason) {
  if (task.stage == Task::Stage::kDone) return;
  if (reason != nullptr) ++*reason;
  Begin(task);
}

static_assert(ItemFinder::kAsksMax <= kFindsMax);

bool ItemFinder::CallForSlots(std::span<Task* const> asked, std::vector<Slot>* slots) {
  std::string request(1, static_cast<char>(MessageKind::kFind));
  AppendVarint(request, session_.epoch());
  AppendVarint(request, asked.size());
  for (const Task* task : asked) AppendBytes(request, task->lookup->key);
  session_.statistics().finds += asked.size();
  ReplyCode code;
  auto fields = session_.Call(ClientSession::To::kHashServer, request, &code);
  slots->resize(asked.size());
  for (Slot& slot : *slots) {
    if (!fields || !TakeSlot(*fields, &slot)) return false;
  }
  return true;
}

// By a call: what the tasks left wait for. Those whose items do not fit into a round ask once more.
void ItemFinder::AskForSlots() {
  auto asked = std::span(waiting_).first(std::min(waiting_.size(), kAsksMax));
  const uint64_t begin_ns = session_.now_ns();
  std::vector<Slot> slots;
  if (!CallForSlots(asked, &slots)) return session_.RefreshMap();
  slots.resize(CountOfRound(slots));
  asked = asked.first(slots.size());
  std::vector<std::optional<ItemView>> items;
  std::vector<bool> lost;
  if (!ReadMoreItems(slots, &items, &lost, nullptr)) return session_.RefreshMap();
  now_ns_ = session_.now_ns();
  const bool is_late = now_ns_ - begin_ns > session_.times().read_ns_max;
  bool is_any_done = false;
  for (size_t i = 0; i < asked.size(); ++i) {
    Task& task = *asked[i];
    const bool is_found = items[i] && items[i]->key == task.lookup->key;
    const bool is_lost = lost[i] && !session_.removes_lost();
    if (is_late || (slots[i] && !is_found && !is_lost)) {
      Begin(task);
      continue;
    }
    is_any_done = true;
    task.lookup->result = is_lost    ? Lookup::Result::kLost
                          : slots[i] ? Lookup::Result::kFound
                                     : Lookup::Result::kAbsent;
    task.lookup->slot = slots[i];
    if (is_found) task.lookup->value = items[i]->value;
    task.stage = Task::Stage::kDone;
  }
  // Something else has to happen first: a connection, or a memory server that comes back.
  if (!is_any_done) session_.RefreshMap();
}

bool ItemFinder::ReadItems(std::span<const Slot> slots, std::vector<std::optional<ItemView>>* items,
                           std::vector<bool>* lost, uint64_t* applied_word) {
  FreeAll();
  return ReadMoreItems(slots, items, lost, applied_word);
}

bool ItemFinder::ReadMoreItems(std::span<const Slot> slots,
                               std::vector<std::optional<ItemView>>* items, std::vector<bool>* lost,
                               uint64_t* applied_word) {
  items->assign(slots.size(), std::nullopt);
  lost->assign(slots.size(), false);
  std::vector<ItemRead> reads(slots.size());
  for (size_t i = 0; i < slots.size(); ++i)
    reads[i] = {.slot = slots[i], .is_to_read = static_cast<bool>(slots[i])};
  for (bool is_first = true;; is_first = false) {
    Round round;
    for (size_t i = 0; i < slots.size(); ++i) {
      PlanItem(reads[i], round);
      (*lost)[i] = reads[i].is_lost;
    }
    if (is_first && applied_word != nullptr) {
      round.ReadIndex(kHeaderRegion, 0, sizeof(*applied_word), applied_word);
    }
    if (round.empty()) return true;
    if (!session_.Run(round)) return false;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!reads[i].is_to_read || IsToReadWhole(reads[i])) continue;
      (*items)[i] = ReadItem(PlaceOf(slots[i]), reads[i].span());
      if (!(*items)[i]) session_.DoubtPlace(slots[i].chunk());
    }
  }
}

}  // namespace skep::pool
