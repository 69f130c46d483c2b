// batch.h: the unit of work. A single operation is a batch of one.
//
// A Batch is filled with requests, executed once, and read by slot. The bytes a request names are
// views: they must stay valid until the batch has been executed. The bytes an outcome names stay
// valid until the batch is cleared, executed again or destroyed. A batch that is executed again
// does all its requests again, and its outcomes begin anew. Clear() keeps the memory of usual
// batches, so a batch that is reused does not allocate for each operation.
//
//   Batch batch;
//   const uint32_t a = batch.Get("apple");
//   const uint32_t b = batch.Put("pear", "3");
//   if (Status s = store.Execute(batch); !s.ok()) ...
//   if (batch.outcome(a).verdict == Verdict::kDone) use(batch.outcome(a).value);
//
// Unordered (the default): independent operations. Each takes effect at one instant between the
//   call and its return. Operations on one key keep their order; nothing else is ordered. In
//   particular a scan or count may see any, all or none of the batch's own writes, but what it
//   sees is one state of the whole keyspace. An operation that fails leaves the others alone.
// Atomic: all or nothing, at one instant. Operations act in slot order and see the earlier ones.
//   Conditions (Require...) are judged against the state before the batch. If one does not hold,
//   or any operation is refused, nothing is applied: its slot says why, the others say kAborted.
//   A long condition list costs one judgement each; the first that fails is the one that is named.
// Atomic, in parts: the requests before the first BeginPart() are as above, and if they fail no
//   part is applied. Each part is all or nothing by itself, judged against the state the parts
//   before have left; a part that fails leaves the others alone. The whole batch still happens at
//   one instant, as in Redis's EXEC.
//
// Deadlines. A key may have one, in milliseconds since 1970. From that millisecond on the key is
//   gone for every reader. A batch has one "now" (set_now_ms), a snapshot has that of its opening;
//   a key that has been seen as gone stays gone, whatever a later batch's now says.
//
// Types. A value has a type, a number beside its bytes: kPlainType for bytes that mean nothing to
//   the store, other numbers for encodings that functions (function.h) read and write.
//   - kPut, kInsert and kUpdate store the value with request.type; a kApply stores it with the type
//     of its function. The value before may have any type.
//   - An operation that returns, compares or changes the bytes of a value asks that the value it
//     finds has request.type, a kApply that it has the type of its function; else it is kRefused
//     with kWrongType. Those are kGet without kNoValue, kApply, kReturnPrevious, the conditions of
//     `when` about the value, kRequireValue and kRequireDigest.
//   - All others do not ask: kGet with kNoValue, deletes, deadlines, moves, ranges, and conditions
//     of presence. Moves and deadlines leave a value its type.
//   - outcome.type is the type of the value that a point has found, also if it was refused.
//   - The items of scans, walks and samples have an empty value if it is not of kPlainType, but see
//     kAnyType. Effects tell the types of a scan's items.
//
// Thread safety: none; a batch belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "skep/function.h"
#include "skep/items.h"
#include "skep/pinned_value.h"
#include "skep/scan.h"
#include "skep/scratch.h"
#include "skep/status.h"

namespace skep {

// A position in the order of writes of one keyspace. 0 is before every write.
using Version = uint64_t;

// 128 bits of XXH3 over a value. Not keyed: it tells values apart, it does not resist forgery.
struct Digest {
  uint64_t low;
  uint64_t high;
  friend bool operator==(const Digest&, const Digest&) = default;
};
Digest DigestOf(std::string_view value);

// The place where an earlier operation found its key. A stale hint costs time, never correctness.
struct Hint {
  uint64_t bits = 0;  // 48-bit logical node id, 16-bit generation; 0 is no hint
  uint64_t lid() const { return bits & ((uint64_t{1} << 48) - 1); }
  uint16_t generation() const { return static_cast<uint16_t>(bits >> 48); }
};

// A part of a value: from the byte `first` to the byte `last`, both included. Numbers below 0 count
// from the end, -1 is the last byte; a part that begins or ends outside the value is cut.
struct ByteRange {
  int64_t first;
  int64_t last;

  // Where the part begins in a value of so many bytes, and where it ends: begin <= end.
  struct Bounds {
    size_t begin, end;
  };
  Bounds Of(size_t value_bytes) const;
};

enum class Op : uint8_t {
  kGet,
  kPut,     // store, absent or not
  kInsert,  // store only if absent
  kUpdate,  // store only if present
  kDelete,
  kExpire,     // change the deadline of a key that is present; its value stays
  kMove,       // give value and deadline of `key` to the key `other`; atomic batches only
  kApply,      // run `function` on the value; function.h. The deadline stays
  kSample,     // one key and value, uniformly at random; `random` decides
  kDeleteAll,  // every key of the keyspace; engines without order can do it too
  kWalk,       // keys in an order of the engine's own, from `cursor` on; unordered batches only
  kScan,
  kCount,  // without a limit, and of all keys, engines without order can do it too
  kDeleteRange,
  kExpireRange,    // kExpire for every key of the range, one key after the other
  kRequireAbsent,  // conditions, in atomic batches only
  kRequirePresent,
  kRequireValue,      // equals `other`
  kRequireDigest,     // equals `digest`
  kRequireUnchanged,  // nobody has written or deleted `key` since `watch`, nor has it expired
  kRequireEmpty,      // the range has no key
};

constexpr bool IsCondition(Op op) { return op >= Op::kRequireAbsent; }
constexpr bool IsRange(Op op) {
  return (op >= Op::kScan && op <= Op::kExpireRange) || op == Op::kRequireEmpty;
}
constexpr bool IsWrite(Op op) {
  return (op >= Op::kPut && op <= Op::kApply) || op == Op::kDeleteRange || op == Op::kDeleteAll ||
         op == Op::kExpireRange;
}

// The type of a value that is plain bytes.
inline constexpr uint8_t kPlainType = 0;

// Deadlines a request may carry. 0: none.
inline constexpr uint64_t kKeepDeadline = UINT64_MAX;              // the key keeps the one it has
inline constexpr uint64_t kDeadlineMax = (uint64_t{1} << 56) - 1;  // larger: kInvalidArgument

// The outcome of one request in a word.
enum class Verdict : uint8_t {
  kDone,       // done: found, stored, deleted, scanned, condition holds
  kAbsent,     // the key is absent: nothing read, updated or deleted; kRequirePresent fails
  kExists,     // the key is present: nothing inserted; kRequireAbsent fails
  kMismatch,   // what `when` asks for does not hold: nothing stored; kRequireValue, kRequireDigest,
               // kRequireUnchanged, kRequireEmpty fail
  kAborted,    // an atomic batch was not applied because of another slot
  kRefused,    // `status` says why; nothing was changed by this request
  kPostponed,  // Batch::set_work_bytes_max was reached before this request: nothing was done
};

struct Request {
  enum Flag : uint8_t {
    kReturnPrevious = 1,   // kPut, kInsert, kUpdate, kDelete, kExpire, kRequireAbsent:
                           // outcome.value is the value before
    kWantHint = 2,         // outcome.hint is wanted
    kReverse = 4,          // kScan: from the largest key down
    kByteRange = 4,        // kGet: outcome.value is the part `bytes` of the value
    kKeysOnly = 8,         // kScan, kWalk: items carry no values
    kMayPin = 8,           // kGet, and what returns the value before: a long value may be pinned
                           // instead of being copied; outcome.pinned tells
    kSeekFloor = 16,       // kScan: start at the largest key <= key; not with kReverse
    kNoUpperBound = 32,    // ranges: there is no upper bound, `other` is ignored
    kNoValue = 64,         // kGet: outcome.integer is the length of the value, which is not copied
    kKeepExisting = 128,   // kMove: refuses to replace `other` if it is present
    kAnyType = 128,        // kScan: items of every type have their values
    kIfOfType = 128,       // kGet: a value of another type is not copied, and is no error
    kOperandOfSlot = 128,  // kApply, in atomic batches only: the operand is `value` and behind it
                           // outcome.value of the earlier slot `limit`
    kUnlessNone = 64,      // kApply with kOperandOfSlot: if that outcome.value is empty, nothing is
                           // done, and the value's type is not asked for
  };
  // Further conditions of an operation, which is done only if all that are given hold.
  enum When : uint8_t {
    // kPut, kUpdate, kDelete. An absent key equals nothing; kPut with kDiffers stores it.
    kEquals = 1,         // the value is `other`
    kDiffers = 2,        // the value is not `other`
    kDigestEquals = 4,   // the value's digest is `digest`
    kDigestDiffers = 8,  // the value's digest is not `digest`
    // kExpire, kExpireRange. A key without a deadline counts as having the latest.
    kHasNoDeadline = 16,
    kHasDeadline = 32,
    kLater = 64,     // the new deadline is later than the one the key has
    kEarlier = 128,  // the new deadline is earlier than the one the key has
  };

  Op op = Op::kGet;
  uint8_t flags = 0;
  uint8_t when = 0;             // bits of When
  uint8_t type = kPlainType;    // of the value to store, or that is asked for
  uint32_t limit = kNoLimit;    // kScan, kWalk: items; kCount: keys visited; kDeleteRange,
                                // kExpireRange: keys changed; kNoLimit: as many as there are
  std::string_view key = {};    // ranges: the inclusive lower bound
  std::string_view value = {};  // the value to store; kApply: the operand
  union {
    std::string_view other = {};  // kEquals, kDiffers, kRequireValue: a value; kMove: a key;
                                  // ranges: the exclusive upper bound
    Digest digest;                // kDigestEquals, kDigestDiffers, kRequireDigest
    const Function* function;     // kApply
    uint64_t random;              // kSample
    ByteRange bytes;              // kGet with kByteRange
    uint64_t cursor;              // kWalk
    uint64_t watch;               // kRequireUnchanged
  };
  Hint hint = {};
  // kPut, kInsert, kUpdate: the deadline the key gets, or kKeepDeadline. kExpire, kExpireRange: the
  // key's new one; 0 takes it away. A deadline that is not after now makes the key gone at once.
  // kApply: the time that the function sees, where it is not that of the batch; else 0.
  uint64_t deadline_ms = 0;

  bool has(Flag flag) const { return (flags & flag) != 0; }
  bool needs(When what) const { return (when & what) != 0; }
};
static_assert(sizeof(Request) == 72);

struct Outcome {
  Verdict verdict = Verdict::kRefused;
  bool present = false;         // points: the key was there before the operation
  uint8_t type = kPlainType;    // points: the type of the value before the operation
  bool more = false;            // ranges: stopped by a limit and there may be more; `value` is the
                                // bound to go on from: the lower one, with kReverse the upper one.
                                // kApply: see Batch::set_portion_bytes_max
  uint32_t item_count = 0;      // kScan, kWalk, kSample: how many; Batch::items(slot) has them
  uint32_t first_span = 0;      // the items begin there in the item spans of the batch (items.h)
  uint32_t pinned = 0;          // not 0: `value` is empty, and Batch::pinned(slot) has the bytes
  int64_t integer = 0;          // kCount, kDelete..., kExpireRange: keys; kApply: the function's
                                // number; kWalk: the cursor to go on from, 0 at the end
  std::string_view value = {};  // kGet: the value. kReturnPrevious: the one before. kApply: what
                                // the function returned. A comparison that failed: the value seen.
                                // kRequireEmpty that fails: the range's first key. See `more`
  Status status = {};           // kRefused: why
  uint64_t deadline_ms = 0;     // points: the deadline the key had before the operation; 0: none
  // Writes: their own version, 0 if nothing was changed. kGet: a version at which the key had this
  // value, not below the write that stored it and not above the ticket; an engine may keep one
  // version for many keys. kRequireUnchanged that fails: the version of the write that changed the
  // key, 0 if it expired.
  Version version = 0;
  Hint hint = {};  // of an engine that gives hints: if kWantHint, or if the request's was stale
};

// An effect says what a request has made of a key, or found, where neither the request nor its
// outcome does. For logs and snapshots.
struct Effect {
  enum class Kind : uint8_t {
    kNothing,  // the first three are effects of a kApply
    kStore,
    kErase,
    kDeadline,  // for a key of a kExpireRange, or an item of a kScan that has a deadline or is not
                // of kPlainType, in their order
  };
  Kind kind = Kind::kNothing;
  uint8_t type = kPlainType;  // of an item of a kScan
  uint32_t slot = 0;
  std::string_view value = {};  // kStore
  std::string_view key = {};    // kDeadline
  uint64_t deadline_ms = 0;     // kDeadline; 0: none
  Version version = 0;          // of a kExpireRange; 0: the outcome's version counts
};

// The bytes that the values which the points of a batch return, and build on the way, may take
// together, unless Batch::set_answer_bytes_max says less. Without this bound a few small requests
// could take any amount of memory.
inline constexpr size_t kAnswerBytesMax = size_t{1} << 30;

class Engine;

// The handle an engine gives for a pinned version. Callers use Snapshot (store.h).
struct SnapshotRef {
  Version version = 0;
  uint64_t id = 0;      // 0: none
  uint64_t now_ms = 0;  // decides which deadlines have passed for the snapshot
};

// It has 63 methods: one for each operation, setting and result of a batch, so that callers need
// neither the fields of a request nor a second object.
class Batch {
 public:
  enum class Kind : uint8_t { kUnordered, kAtomic };

  explicit Batch(Kind kind = Kind::kUnordered) : kind_(kind) {}

  // Filling. Each call returns the slot of its request.
  uint32_t Add(const Request& request) {
    requests_.push_back(request);
    return static_cast<uint32_t>(requests_.size() - 1);
  }
  uint32_t Get(std::string_view key) { return AddPoint(Op::kGet, key); }
  // Returns a part of a value, at the cost of that part.
  uint32_t GetRange(std::string_view key, ByteRange bytes) {
    const uint32_t slot = AddPoint(Op::kGet, key, {}, Request::kByteRange);
    requests_.back().bytes = bytes;
    return slot;
  }
  uint32_t Put(std::string_view key, std::string_view value, uint8_t flags = 0) {
    return AddPoint(Op::kPut, key, value, flags);
  }
  uint32_t Insert(std::string_view key, std::string_view value, uint8_t flags = 0) {
    return AddPoint(Op::kInsert, key, value, flags);
  }
  uint32_t Update(std::string_view key, std::string_view value, uint8_t flags = 0) {
    return AddPoint(Op::kUpdate, key, value, flags);
  }
  uint32_t Delete(std::string_view key, uint8_t flags = 0) {
    return AddPoint(Op::kDelete, key, {}, flags);
  }
  // kUpdate on the condition that the value is `expected`, or has the digest `expected`.
  uint32_t CompareAndSet(std::string_view key, std::string_view expected, std::string_view value);
  uint32_t CompareDigestAndSet(std::string_view key, Digest expected, std::string_view value);
  uint32_t Apply(std::string_view key, const Function* function, std::string_view operand);
  // Apply, for functions of elements (function.h). It is an error, kRefused with kInvalidArgument,
  // if sizes do not fit or the key is absent (but see UpdateOptions::create).
  //   UpdateElements  `operands`: the elements the function takes, one set for all or one for each
  //                   (options); at most 8 bytes less than the largest value.
  //                   outcome.integer: how many elements; outcome.value: what options.returns says
  //   ReduceElements  `first_state`: 8 bytes, or none. outcome.value: the state, 8 bytes, or none
  //                   if there is no element to begin with; outcome.integer: the state, if it is an
  //                   integer
  //   FilterElements  `operand`: an element. outcome.value: the elements that are wanted;
  //                   outcome.integer: how many
  uint32_t UpdateElements(std::string_view key, const Function* update, std::string_view operands,
                          const UpdateOptions& options = {});
  uint32_t ReduceElements(std::string_view key, const Function* reduce,
                          std::string_view first_state = {}) {
    return Apply(key, reduce, first_state);
  }
  uint32_t FilterElements(std::string_view key, const Function* filter, std::string_view operand) {
    return Apply(key, filter, operand);
  }
  // A scan may return fewer items than asked for when scan_bytes_max or scan_visits_max is met;
  // `more` says so.
  uint32_t Scan(const Range& range, const ScanOptions& options = {});
  // A step of a walk over all keys, for engines that have no order (EngineTraits::walks; others:
  // kNotSupported). `cursor`: 0 to begin, then outcome.integer of the step before, until that is 0.
  // A cursor has at most 56 bits, and the store keeps nothing for it. A key that is present from
  // the first step to the last comes exactly once, with a value it had in between; a key that is
  // present for a part of the walk comes once or not at all; no key comes twice, however much is
  // written, grows and shrinks meanwhile. Each step sees some keys at one instant, and the next
  // step others at another.
  //   A step stops at options.limit items (at least 1), at scan_bytes_max or at scan_visits_max, as
  //   a scan does; it may come back without an item before the end. It may exceed its limits by
  //   keys whose hashes agree in 47 bits.
  //   kInvalidArgument  in an atomic batch; a cursor that no walk gives
  // Cost: a hash of every key that is passed; other threads wait for a few dozen keys at most.
  uint32_t Walk(uint64_t cursor, const WalkOptions& options = {});
  // Counts the keys of a range, of which it visits at most `visits_max`; `more` says if there are
  // more.
  uint32_t Count(const Range& range, uint32_t visits_max = kNoLimit);
  uint32_t DeleteRange(const Range& range, uint32_t limit = kNoLimit);
  uint32_t DeleteAll();
  // `when` is as in Request. Persist() takes the deadline away, if there is one.
  uint32_t Expire(std::string_view key, uint64_t deadline_ms, uint8_t when = 0);
  uint32_t Persist(std::string_view key) { return Expire(key, 0, Request::kHasDeadline); }
  // Gives the keys of the range their deadline one after the other: all expire at one instant, but
  // a reader of deadlines may meanwhile see some changed and others not. `limit` as in DeleteRange.
  uint32_t ExpireRange(const Range& range, uint64_t deadline_ms, uint32_t limit = kNoLimit);
  uint32_t Move(std::string_view from, std::string_view to, uint8_t flags = 0);
  // `random` chooses the key; equal numbers on equal states choose the same one. A snapshot cannot
  // be sampled.
  uint32_t Sample(uint64_t random);
  uint32_t RequireAbsent(std::string_view key) { return AddPoint(Op::kRequireAbsent, key); }
  uint32_t RequirePresent(std::string_view key) { return AddPoint(Op::kRequirePresent, key); }
  uint32_t RequireValue(std::string_view key, std::string_view value);
  uint32_t RequireDigest(std::string_view key, Digest digest);
  // `watch` is what Engine::Watch returned for this key, or the id() of a store's Watch.
  uint32_t RequireUnchanged(std::string_view key, uint64_t watch);
  uint32_t RequireEmpty(const Range& range);
  // The requests added from here on are a part of their own. Atomic batches only.
  void BeginPart() { part_begins_.push_back(static_cast<uint32_t>(requests_.size())); }

  // Takes back the requests from this slot on. Not allowed once the batch was executed.
  void DropFrom(uint32_t slot);

  // Settings of the whole batch. Clear() resets all but the kind.
  Kind kind() const { return kind_; }
  // Reads at the snapshot. Such a batch must only read (else every slot is kRefused).
  void set_snapshot(SnapshotRef snapshot) { snapshot_ = snapshot; }
  SnapshotRef snapshot() const { return snapshot_; }
  // The one "now" of the batch, in milliseconds of wall-clock time. The store sets it.
  void set_now_ms(uint64_t now_ms) { now_ms_ = now_ms; }
  uint64_t now_ms() const { return now_ms_; }
  // Each scan or walk stops once its keys and values exceed this many bytes (but returns at least
  // one item, if there is one).
  void set_scan_bytes_max(size_t bytes) { scan_bytes_max_ = bytes; }
  size_t scan_bytes_max() const { return scan_bytes_max_; }
  // Each scan stops once it has visited this many keys, those included that it leaves out because
  // they are deleted or younger than the snapshot: it may come back without an item, but with
  // `more`. A walk counts its buckets too.
  void set_scan_visits_max(uint32_t keys) { scan_visits_max_ = keys; }
  uint32_t scan_visits_max() const { return scan_visits_max_; }
  // A point, and a scan of an atomic batch, is refused with kTooLarge once the answers of this
  // execution take more than this many bytes.
  void set_answer_bytes_max(size_t bytes) { answer_bytes_max_ = bytes; }
  size_t answer_bytes_max() const { return answer_bytes_max_; }
  // Likewise once what it returns takes more than this many bytes, pinned values included.
  void set_returned_bytes_max(size_t bytes) { returned_bytes_max_ = bytes; }
  size_t returned_bytes_max() const { return returned_bytes_max_; }
  // No operation is begun once this execution has looked at more than this many bytes
  // (work_bytes()). In an unordered batch the requests after that are kPostponed, and with a
  // request every later one on its key: a caller that executes the postponed ones in another batch,
  // in their order, gets the same as without a limit. In an atomic batch they are refused with
  // kTooLarge. One operation is never divided: the largest value, 64 MiB, may come on top. The
  // client of a server (client.h) does not send this setting.
  void set_work_bytes_max(size_t bytes) { work_bytes_max_ = bytes; }
  size_t work_bytes_max() const { return work_bytes_max_; }
  // A read of a large collection, or of a range of it, whose answer would be longer than about this
  // many bytes is not made, nor a write that would copy more: its outcome is kDone, without an
  // answer, and has `more`. A scan of members stops there. An atomic batch that is not at a
  // snapshot is left out as a whole, each slot kPostponed and nothing applied, if one of its calls
  // would be left out, if all of them look at some such portions, or if it would wait for another
  // call's turn at a key. A server's client does not send this.
  void set_portion_bytes_max(size_t bytes) { portion_bytes_max_ = bytes; }
  size_t portion_bytes_max() const { return portion_bytes_max_; }
  // Whether the last execution has left this slot out for that.
  bool IsTooLong(uint32_t slot) const {
    return requests_[slot].op == Op::kApply && outcomes_[slot].more;
  }
  // Asks the engine to fill in effects().
  void set_notes_effects(bool notes) { notes_effects_ = notes; }

  // Reading. Outcomes exist once the batch was executed.
  size_t size() const { return requests_.size(); }
  bool empty() const { return requests_.empty(); }
  std::span<const Request> requests() const { return requests_; }
  const Outcome& outcome(uint32_t slot) const { return outcomes_[slot]; }
  // False if this atomic batch changed nothing because a condition or an operation failed; in a
  // batch of parts only the requests before the first part count.
  bool applied() const { return applied_; }
  // The first slots of the parts, ascending.
  std::span<const uint32_t> part_begins() const { return part_begins_; }
  // The items of a scan, walk or sample, in the order of the scan: with kReverse from the largest
  // key down.
  ItemRange items(uint32_t slot) const {
    const Outcome& outcome = outcomes_[slot];
    return {item_spans_.data() + outcome.first_span, outcome.item_count};
  }

  // The value of an outcome that has one pinned. It may be kept longer than the outcome.
  const std::shared_ptr<const PinnedValue>& pinned(uint32_t slot) const {
    return pins_[outcomes_[slot].pinned - 1].value;
  }

  // The effects of the last execution. If a kApply has several, the last one counts; a kApply that
  // is done and has none has updated elements in place.
  std::span<const Effect> effects() const { return effects_; }

  // Bytes of the answers of the last execution, and of values built on the way.
  size_t answer_bytes() const { return answers_.used(); }
  // Bytes of the values that the last execution has pinned.
  size_t pinned_bytes() const { return pinned_bytes_; }
  // answer_bytes(), and the bytes that the last execution stored, compared, or let functions look
  // at.
  size_t work_bytes() const { return answers_.used() + seen_bytes_; }

  // Bytes that live until Clear(), for keys that a caller has to build.
  Scratch& scratch() { return scratch_; }

  void Clear();

 private:
  friend class BatchWriter;  // engine/batch_writer.h: engines fill in outcomes with it

  uint32_t AddPoint(Op op, std::string_view key, std::string_view value = {}, uint8_t flags = 0) {
    Request& request = requests_.emplace_back();
    request.op = op;
    request.flags = flags;
    request.key = key;
    request.value = value;
    return static_cast<uint32_t>(requests_.size() - 1);
  }

  Kind kind_;
  SnapshotRef snapshot_;
  uint64_t now_ms_ = 0;
  size_t scan_bytes_max_ = SIZE_MAX;
  uint32_t scan_visits_max_ = kNoLimit;
  size_t answer_bytes_max_ = kAnswerBytesMax;
  size_t returned_bytes_max_ = kAnswerBytesMax;
  size_t work_bytes_max_ = SIZE_MAX;
  size_t portion_bytes_max_ = SIZE_MAX;
  size_t seen_bytes_ = 0;  // bytes that this execution looked at, beside its answers
  bool applied_ = true;
  bool notes_effects_ = false;
  std::vector<Request> requests_;
  std::vector<uint32_t> part_begins_;
  std::vector<Outcome> outcomes_;
  std::vector<ItemSpan> item_spans_;
  std::vector<Effect> effects_;
  struct Pin {
    uint32_t slot;
    std::shared_ptr<const PinnedValue> value;
  };
  std::vector<Pin> pins_;
  size_t pinned_bytes_ = 0;
  Scratch scratch_;  // memory of the requests
  Scratch answers_;  // memory of the outcomes; begins anew with each execution
};

}  // namespace skep
