#include "server/key_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "engine/string_functions.h"
#include "server/command.h"
#include "types/sorted_set.h"
#include "types/text.h"
#include "types/value_type.h"

namespace skep {
namespace {

// When a function that was executed is told.
enum class When : uint8_t {
  kAlways,
  kChanged,   // it has changed the value
  kCounted,   // its integer is above 0
  kReturned,  // it has changed the value and returned something
  kPresent,   // the key was there
};

struct FunctionEvent {
  std::string_view function;
  std::string_view event;
  When when;
};

constexpr FunctionEvent kFunctionEvents[] = {
    {"add-decimal", "incrby", When::kAlways},
    {"add-float", "incrbyfloat", When::kAlways},
    {"append", "append", When::kAlways},
    {"bit-field", "setbit", When::kChanged},
    {"hash-add", "hincrby", When::kAlways},
    {"hash-add-float", "hincrbyfloat", When::kAlways},
    {"hash-delete", "hdel", When::kCounted},
    {"hash-expire", "hexpire", When::kChanged},
    {"hash-get-until", "hexpire", When::kChanged},
    {"hash-persist", "hpersist", When::kChanged},
    {"hash-set", "hset", When::kAlways},
    {"hash-set-new", "hset", When::kCounted},
    {"hash-set-until", "hset", When::kChanged},
    {"hash-take", "hdel", When::kChanged},
    {"hll-add", "pfadd", When::kChanged},
    {"list-insert", "linsert", When::kCounted},
    {"list-pop-left", "lpop", When::kReturned},
    {"list-pop-right", "rpop", When::kReturned},
    {"list-push-left", "lpush", When::kChanged},
    {"list-push-right", "rpush", When::kChanged},
    {"list-pushx-left", "lpush", When::kChanged},
    {"list-pushx-right", "rpush", When::kChanged},
    {"list-remove", "lrem", When::kCounted},
    {"list-set", "lset", When::kAlways},
    {"list-trim", "ltrim", When::kPresent},
    {"set-add", "sadd", When::kCounted},
    {"set-bit", "setbit", When::kChanged},
    {"set-pop", "spop", When::kReturned},
    {"set-range", "setrange", When::kAlways},
    {"set-remove", "srem", When::kCounted},
    {"set-take", "srem", When::kCounted},
    {"zset-pop-highest", "zpopmax", When::kCounted},
    {"zset-pop-lowest", "zpopmin", When::kCounted},
    {"zset-remove", "zrem", When::kCounted},
};
static_assert(std::ranges::is_sorted(kFunctionEvents, {}, &FunctionEvent::function));

// Commands whose stores are told as one event of the whole command.
struct StoreEvent {
  std::string_view command;
  std::string_view event;
  EventClass event_class;
};

constexpr StoreEvent kStoreEvents[] = {
    {"copy", "copy_to", kGenericEvents},
    {"georadius", "georadiusstore", kSortedSetEvents},
    {"georadiusbymember", "georadiusstore", kSortedSetEvents},
    {"geosearchstore", "geosearchstore", kSortedSetEvents},
    {"pfmerge", "pfadd", kStringEvents},
    {"restore", "restore", kGenericEvents},
    {"restore-asking", "restore", kGenericEvents},
    {"sdiffstore", "sdiffstore", kSetEvents},
    {"sinterstore", "sinterstore", kSetEvents},
    {"sort", "sortstore", kListEvents},
    {"sunionstore", "sunionstore", kSetEvents},
    {"zdiffstore", "zdiffstore", kSortedSetEvents},
    {"zinterstore", "zinterstore", kSortedSetEvents},
    {"zrangestore", "zrangestore", kSortedSetEvents},
    {"zunionstore", "zunionstore", kSortedSetEvents},
};
static_assert(std::ranges::is_sorted(kStoreEvents, {}, &StoreEvent::command));

// The row with this name, or null.
template <typename Row, size_t kRows>
const Row* Find(const Row (&rows)[kRows], std::string_view Row::* name, std::string_view wanted) {
  const Row* const at = std::ranges::lower_bound(rows, wanted, {}, name);
  return at != std::end(rows) && at->*name == wanted ? at : nullptr;
}

EventClass ClassOf(uint8_t type) {
  switch (types::KindOf(type)) {
    case types::kHash:
      return kHashEvents;
    case types::kSet:
      return kSetEvents;
    case types::kList:
      return kListEvents;
    case types::kSortedSet:
      return kSortedSetEvents;
    default:
      return kStringEvents;
  }
}

std::string_view NameOfCut(std::string_view operand) {
  types::RangeRequest range;
  if (operand.size() < sizeof(range)) return {};
  std::memcpy(&range, operand.data(), sizeof(range));
  switch (range.by) {
    case types::RangeRequest::By::kScore:
      return "zremrangebyscore";
    case types::RangeRequest::By::kMember:
      return "zremrangebylex";
    default:
      return "zremrangebyrank";
  }
}

bool AddsOne(std::string_view operand) {
  return !operand.empty() && (static_cast<uint8_t>(operand[0]) & types::kAddOne) != 0;
}

}  // namespace

// ---- What a batch has done ----

class KeyEvents::Telling {
 public:
  Telling(KeyEvents& events, uint32_t keyspace, const Batch& batch,
          std::span<const PlannedCommand> commands, ReleaseGate& gate, Version ticket)
      : events_(events),
        keyspace_(keyspace),
        batch_(batch),
        commands_(commands),
        gate_(gate),
        ticket_(ticket),
        effects_(batch.size(), Effect::Kind::kDeadline) {
    for (const Effect& effect : batch.effects()) effects_[effect.slot] = effect.kind;
  }

  void Run() {
    for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
      const bool is_transfer = IsTransfer(slot);
      // Redis tells of an element that was moved where it went first.
      if (is_transfer) TellSlot(slot + 1);
      TellSlot(slot);
      if (is_transfer) ++slot;
    }
  }

 private:
  const Request& request(uint32_t slot) const { return batch_.requests()[slot]; }

  // A call that is left to run beside the worker tells its event there.
  bool IsDone(uint32_t slot) const {
    return batch_.outcome(slot).verdict == Verdict::kDone && !batch_.IsTooLong(slot);
  }
  bool IsErased(uint32_t slot) const { return effects_[slot] == Effect::Kind::kErase; }
  // Engines without versions tell by effects only.
  bool HasChanged(uint32_t slot) const {
    return batch_.outcome(slot).version != 0 || effects_[slot] == Effect::Kind::kStore ||
           IsErased(slot);
  }

  // Whether the slot and the next one move an element from one list to another.
  bool IsTransfer(uint32_t slot) const {
    if (slot + 1 >= batch_.size()) return false;
    const Request& pop = request(slot);
    const Request& push = request(slot + 1);
    return pop.op == Op::kApply && push.op == Op::kApply && pop.function != nullptr &&
           pop.function->type == types::kList && push.has(Request::kOperandOfSlot) &&
           push.limit == slot && push.has(Request::kUnlessNone) && HasChanged(slot + 1);
  }

  // The command of the slot, or null.
  const Command* CommandOf(uint32_t slot) const {
    const auto behind = std::ranges::upper_bound(commands_, slot, {}, &PlannedCommand::first_slot);
    return behind == commands_.begin() ? nullptr : std::prev(behind)->command;
  }
  // Whether a later request of the slot's command stores its key.
  bool IsStoredLater(uint32_t slot) const {
    const auto next = std::ranges::upper_bound(commands_, slot, {}, &PlannedCommand::first_slot);
    const auto end =
        next == commands_.end() ? static_cast<uint32_t>(batch_.size()) : next->first_slot;
    for (uint32_t i = slot + 1; i < end; ++i) {
      if (request(i).key == request(slot).key && HasChanged(i)) return true;
    }
    return false;
  }

  void TellSlot(uint32_t slot) {
    const Request& r = request(slot);
    if (!IsWrite(r.op)) return TellMiss(slot);
    if (r.op == Op::kApply && (r.function == nullptr || r.function->reads_only)) {
      return TellMiss(slot);
    }
    if (!IsDone(slot)) return;
    const Command* const command = CommandOf(slot);
    const StoreEvent* const whole =
        command != nullptr ? Find(kStoreEvents, &StoreEvent::command, command->name) : nullptr;
    switch (r.op) {
      case Op::kPut:
      case Op::kInsert:
      case Op::kUpdate:
        return TellStore(slot, whole);
      case Op::kDelete:
        if (whole == nullptr || !IsStoredLater(slot)) Tell(kGenericEvents, "del", r.key);
        return;
      case Op::kExpire:
        return TellExpire(r);
      case Op::kMove:
        if (r.key == r.other) return;
        Tell(kNewEvents, "new", r.other);
        Tell(kGenericEvents, "rename_from", r.key);
        return Tell(kGenericEvents, "rename_to", r.other);
      case Op::kApply:
        return TellApply(slot, whole);
      default:
        return;
    }
  }

  void TellStore(uint32_t slot, const StoreEvent* whole) {
    const Request& r = request(slot);
    // As in Redis, where COPY and RESTORE delete what they replace.
    const bool is_deleted = whole != nullptr && whole->event_class == kGenericEvents;
    is_deleted ? Tell(kNewEvents, "new", r.key) : TellIfNew(slot);
    if (whole != nullptr) return Tell(whole->event_class, whole->event, r.key);
    Tell(kStringEvents, "set", r.key);
    if (r.deadline_ms == 0 || r.deadline_ms == kKeepDeadline) return;
    Tell(kGenericEvents, "expire", r.key);
    if (r.deadline_ms <= batch_.now_ms()) Tell(kExpiredEvents, "expired", r.key);
  }

  void TellExpire(const Request& r) {
    if (r.deadline_ms == 0) return Tell(kGenericEvents, "persist", r.key);
    Tell(kGenericEvents, r.deadline_ms <= batch_.now_ms() ? "del" : "expire", r.key);
  }

  void TellApply(uint32_t slot, const StoreEvent* whole) {
    const Request& r = request(slot);
    const Outcome& out = batch_.outcome(slot);
    const EventClass its_class = ClassOf(r.function->type);
    const std::string_view function = r.function->name;
    if (whole != nullptr) {
      if (!HasChanged(slot)) return;
      TellIfNew(slot);
      return Tell(whole->event_class, whole->event, r.key);
    }
    if (function == "list-rotate") return TellRotate(r, out);
    const FunctionEvent* const known = Find(kFunctionEvents, &FunctionEvent::function, function);
    std::string_view event = known != nullptr ? known->event : function;
    When when = known != nullptr ? known->when : When::kChanged;
    if (function == "zset-add") event = AddsOne(r.value) ? "zincr" : "zadd";
    if (function == "zset-cut") event = NameOfCut(r.value);
    if (r.function->kind == FunctionKind::kUpdate) event = "vupdate";
    if (r.has(Request::kOperandOfSlot)) when = When::kChanged;
    if (!IsTold(slot, when)) return;
    if (!IsErased(slot)) TellIfNew(slot);
    // Redis does not tell of a string that has grown for fields which have all overflowed.
    if (function == "bit-field" && !HasWrittenBitField(r.value, out.value)) return;
    Tell(its_class, event, r.key);
    if (IsErased(slot)) Tell(kGenericEvents, "del", r.key);
  }

  bool IsTold(uint32_t slot, When when) const {
    const Outcome& out = batch_.outcome(slot);
    switch (when) {
      case When::kAlways:
        return true;
      case When::kChanged:
        return HasChanged(slot);
      case When::kCounted:
        return HasChanged(slot) && out.integer > 0;
      case When::kReturned:
        return HasChanged(slot) && !out.value.empty();
      case When::kPresent:
        return out.present;
    }
    return false;
  }

  // An element that goes from an end of a list to an end of the same one. The operand has the ends,
  // the first one is that from which it is taken.
  void TellRotate(const Request& r, const Outcome& out) {
    if (out.value.empty()) return;
    std::string_view operand = r.value;
    std::string_view from;
    std::string_view to;
    if (!types::TakeText(operand, &from) || !types::TakeText(operand, &to)) return;
    Tell(kListEvents, to == "left" ? "lpush" : "rpush", r.key);
    Tell(kListEvents, from == "left" ? "lpop" : "rpop", r.key);
  }

  // Whether a command that takes several types asks for the key as another type than before.
  static bool LooksAgain(const Request& before, const Request& r) {
    return r.op == Op::kGet && before.op == Op::kGet && r.has(Request::kIfOfType) &&
           before.has(Request::kIfOfType) && r.key == before.key && r.type != before.type;
  }

  // Tells that a command that only reads has not found a key.
  void TellMiss(uint32_t slot) {
    const Request& r = request(slot);
    const Outcome& out = batch_.outcome(slot);
    const bool looks = r.op == Op::kGet || r.op == Op::kApply;
    if (!looks || out.present || (out.verdict != Verdict::kAbsent && !IsDone(slot))) return;
    const Command* const command = CommandOf(slot);
    if (command == nullptr || !command->has(Command::kReadOnly)) return;
    if (slot > 0 && LooksAgain(request(slot - 1), r)) return;
    Tell(kMissEvents, "keymiss", r.key);
  }

  void TellIfNew(uint32_t slot) {
    if (!batch_.outcome(slot).present) Tell(kNewEvents, "new", request(slot).key);
  }

  void Tell(EventClass event_class, std::string_view event, std::string_view key) {
    events_.Publish(keyspace_, event_class, event, key, &gate_, ticket_);
  }

  KeyEvents& events_;
  const uint32_t keyspace_;
  const Batch& batch_;
  const std::span<const PlannedCommand> commands_;
  ReleaseGate& gate_;
  const Version ticket_;
  std::vector<Effect::Kind> effects_;  // by slot; kDeadline: none
};

// Only writes have effects that are told.
void KeyEvents::Prepare(Batch& batch) {
  if (std::ranges::any_of(batch.requests(), IsWrite, &Request::op)) batch.set_notes_effects(true);
}

void KeyEvents::Tell(uint32_t keyspace, const Batch& batch,
                     std::span<const PlannedCommand> commands, ReleaseGate& gate, Version ticket) {
  if (has_expired()) {
    const MutexLock lock(publishing_);
    PublishPiece();
  }
  Telling(*this, keyspace, batch, commands, gate, ticket).Run();
}

void KeyEvents::Publish(uint32_t keyspace, EventClass event_class, std::string_view event,
                        std::string_view key, ReleaseGate* gate, Version ticket) {
  const uint32_t classes = classes_.load(std::memory_order_relaxed);
  if ((classes & event_class) == 0) return;
  const auto publish = [&](std::string channel, std::string_view payload) {
    Message message{.channel = std::move(channel), .payload = std::string(payload), .gates = {}};
    if (gate != nullptr) message.gates.emplace_back(gate, ticket);
    subscriptions_.Publish(std::move(message), bytes_max_.load(std::memory_order_relaxed));
  };
  if ((classes & kKeyspaceChannels) != 0) {
    std::string channel = fmt::format("__keyspace@{}__:{}", keyspace, key);
    if (channel.size() <= kNameBytesMax) publish(std::move(channel), event);
  }
  if ((classes & kKeyeventChannels) != 0) {
    publish(fmt::format("__keyevent@{}__:{}", keyspace, event), key);
  }
}

// ---- Keys that have expired ----

class KeyEvents::Expiry final : public ExpiryObserver {
 public:
  Expiry(KeyEvents& events, uint32_t keyspace) : events_(events), keyspace_(keyspace) {}

  bool wants_expired() const noexcept override {
    return events_.wanted() &&
           (events_.classes_.load(std::memory_order_relaxed) & kExpiredEvents) != 0;
  }
  void HasExpired(std::string_view key) noexcept override { events_.Queue(keyspace_, key); }

 private:
  KeyEvents& events_;
  const uint32_t keyspace_;
};

KeyEvents::KeyEvents(Subscriptions& subscriptions, Clock& clock, uint32_t keyspaces)
    : subscriptions_(subscriptions), clock_(clock) {
  for (uint32_t i = 0; i < keyspaces; ++i) expiry_.push_back(std::make_unique<Expiry>(*this, i));
}

KeyEvents::~KeyEvents() = default;

void KeyEvents::Configure(uint32_t classes, uint64_t bytes_max) {
  const bool has_channels = (classes & (kKeyspaceChannels | kKeyeventChannels)) != 0;
  bytes_max_.store(bytes_max, std::memory_order_relaxed);
  classes_.store(has_channels ? classes : 0, std::memory_order_relaxed);
}

ExpiryObserver* KeyEvents::ExpiryOf(uint32_t keyspace) { return expiry_[keyspace].get(); }

// What there is no memory for is lost, as a message may be.
void KeyEvents::Queue(uint32_t keyspace, std::string_view key) noexcept {
  try {
    ExpiredKey expired{.keyspace = keyspace, .key = std::string(key)};
    const size_t bytes = QueuedBytesOf(key);
    const MutexLock lock(queue_mutex_);
    if (queue_.size() < kQueuedKeysMax && queue_bytes_ + bytes <= kQueuedBytesMax) {
      queue_.push_back(std::move(expired));
      queue_bytes_ += bytes;
      queued_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  } catch (const std::bad_alloc&) {
  }
  lost_.fetch_add(1, std::memory_order_relaxed);
}

std::optional<KeyEvents::ExpiredKey> KeyEvents::TakeExpired() {
  const MutexLock lock(queue_mutex_);
  if (queue_.empty()) return std::nullopt;
  ExpiredKey first = std::move(queue_.front());
  queue_.pop_front();
  queue_bytes_ -= QueuedBytesOf(first.key);
  return first;
}

void KeyEvents::PublishExpired() {
  if (!has_expired() || !publishing_.try_lock()) return;
  const MutexLock lock(publishing_, std::adopt_lock);
  PublishPiece();
}

void KeyEvents::PublishPiece() {
  const uint64_t begin_ns = clock_.MonotonicNs();
  for (size_t i = 0; i < kPublishedMax; ++i) {
    if (i > 0 && clock_.MonotonicNs() - begin_ns >= kPublishNs) return;
    const std::optional<ExpiredKey> expired = TakeExpired();
    if (!expired) return;
    try {
      Publish(expired->keyspace, kExpiredEvents, "expired", expired->key, nullptr, 0);
    } catch (const std::bad_alloc&) {
      lost_.fetch_add(1, std::memory_order_relaxed);
    }
    queued_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace skep
