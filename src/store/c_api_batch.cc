// Batches and functions of skep.h.
#include <algorithm>
#include <utility>

#include "skep.h"
#include "store/c_handles.h"

using namespace skep;
using namespace skep::c_api;

namespace {

static_assert(SKEP_DONE == static_cast<int>(Verdict::kDone));
static_assert(SKEP_ABSENT == static_cast<int>(Verdict::kAbsent));
static_assert(SKEP_EXISTS == static_cast<int>(Verdict::kExists));
static_assert(SKEP_MISMATCH == static_cast<int>(Verdict::kMismatch));
static_assert(SKEP_NOT_APPLIED == static_cast<int>(Verdict::kAborted));
static_assert(SKEP_REFUSED == static_cast<int>(Verdict::kRefused));
static_assert(SKEP_UPDATE == static_cast<int>(FunctionKind::kUpdate));
static_assert(SKEP_REDUCE == static_cast<int>(FunctionKind::kReduce));
static_assert(SKEP_FILTER == static_cast<int>(FunctionKind::kFilter));
static_assert(SKEP_I64 == static_cast<int>(Element::kI64));
static_assert(SKEP_F64 == static_cast<int>(Element::kF64));
static_assert(SKEP_RETURN_OLD == static_cast<int>(UpdateOptions::Returns::kOld));
static_assert(SKEP_RETURN_NEW == static_cast<int>(UpdateOptions::Returns::kNew));
static_assert(SKEP_RETURN_PREVIOUS == Request::kReturnPrevious);
static_assert(SKEP_NO_VALUE == Request::kNoValue);
static_assert(SKEP_KEEP_DEADLINE == kKeepDeadline);
static_assert(SKEP_NO_LIMIT == kNoLimit);

constexpr Status kUnderWay(Code::kInvalidArgument, "the batch is under way");

uint32_t RefuseRequest(skep_batch& batch, Status why) {
  if (batch.refusal.ok()) batch.refusal = why;
  return SKEP_NO_SLOT;
}

// Adds a request by `add`, which takes the C++ batch and returns the slot or an error.
template <class Add>
uint32_t Fill(skep_batch* batch, std::initializer_list<Given> given, Add add) noexcept {
  if (batch == nullptr) return SKEP_NO_SLOT;
  if (batch->under_way) return RefuseRequest(*batch, kUnderWay);
  if (!AreSound(given)) return RefuseRequest(*batch, kNullBytes);
  try {
    const Result<uint32_t> slot = add(batch->batch);
    return slot ? *slot : RefuseRequest(*batch, slot.error());
  } catch (const std::bad_alloc&) {
    return RefuseRequest(*batch, kNoMemory);
  }
}

template <class Add>
uint32_t Fill(skep_batch* batch, Add add) noexcept {
  return Fill(batch, {}, add);
}

std::string_view Copied(Batch& batch, const void* at, size_t bytes) {
  return batch.scratch().Copy(Bytes(at, bytes));
}

// Adds a point whose bytes are copied.
uint32_t FillPoint(skep_batch* batch, Op op, const void* key, size_t key_bytes, const void* value,
                   size_t value_bytes, uint32_t flags, uint32_t flags_allowed,
                   uint64_t deadline_ms = 0) noexcept {
  return Fill(batch, {{key, key_bytes}, {value, value_bytes}}, [&](Batch& b) -> Result<uint32_t> {
    if ((flags & ~flags_allowed) != 0) return Fail(kNoSuchFlag);
    const std::string_view copied_key = Copied(b, key, key_bytes);
    return b.Add({.op = op,
                  .flags = static_cast<uint8_t>(flags),
                  .key = copied_key,
                  .value = Copied(b, value, value_bytes),
                  .other = {},
                  .deadline_ms = deadline_ms});
  });
}

// Calls add(batch, range) with bounds that are copied.
template <class Add>
uint32_t FillRange(skep_batch* batch, const skep_range* range, Add add) noexcept {
  return Fill(batch, [&](Batch& b) -> Result<uint32_t> {
    auto bounds = RangeOf(range, b.scratch());
    if (!bounds) return Fail(bounds.error());
    bounds->lo = b.scratch().Copy(bounds->lo);
    bounds->hi = b.scratch().Copy(bounds->hi);
    return add(b, *bounds);
  });
}

}  // namespace

const skep_function* skep_find_function(skep_function_kind kind, const char* name,
                                        skep_element element) {
  if (name == nullptr || kind < SKEP_PLAIN || kind > SKEP_FILTER) return nullptr;
  if (kind != SKEP_PLAIN && (element < SKEP_I8 || element > SKEP_F64)) return nullptr;
  const bool is_plain = kind == SKEP_PLAIN;
  try {
    const Function* const found =
        FindFunction(static_cast<FunctionKind>(kind), name,
                     is_plain ? Element{} : static_cast<Element>(element));
    return reinterpret_cast<const skep_function*>(found);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// ---- The batch as a whole ----

skep_batch* skep_batch_new(uint32_t flags) {
  if ((flags & ~SKEP_ATOMIC) != 0) return nullptr;
  const bool atomic = (flags & SKEP_ATOMIC) != 0;
  return new (std::nothrow) skep_batch(atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
}

void skep_batch_free(skep_batch* batch) { delete batch; }

void skep_batch_clear(skep_batch* batch) {
  if (batch == nullptr) return;
  batch->under_way.reset();
  batch->batch.Clear();
  batch->executed = false;
  batch->outcomes.clear();
  batch->refusal = {};
}

void skep_batch_read_at(skep_batch* batch, const skep_snapshot* snapshot) {
  Fill(batch, [&](Batch& b) -> Result<uint32_t> {
    if (snapshot == nullptr) return Fail(kNullHandle);
    b.set_snapshot(snapshot->snapshot.ref());
    return 0;
  });
}

void skep_batch_set_scan_bytes_max(skep_batch* batch, size_t bytes) {
  Fill(batch, [&](Batch& b) -> Result<uint32_t> {
    b.set_scan_bytes_max(bytes);
    return 0;
  });
}

void skep_batch_begin_part(skep_batch* batch) {
  Fill(batch, [&](Batch& b) -> Result<uint32_t> {
    b.BeginPart();
    return 0;
  });
}

// ---- Points ----

uint32_t skep_batch_get(skep_batch* batch, const void* key, size_t key_bytes, uint32_t flags) {
  return FillPoint(batch, Op::kGet, key, key_bytes, nullptr, 0, flags, SKEP_NO_VALUE);
}

uint32_t skep_batch_put(skep_batch* batch, const void* key, size_t key_bytes, const void* value,
                        size_t value_bytes, uint32_t flags) {
  return FillPoint(batch, Op::kPut, key, key_bytes, value, value_bytes, flags,
                   SKEP_RETURN_PREVIOUS);
}

uint32_t skep_batch_put_until(skep_batch* batch, const void* key, size_t key_bytes,
                              const void* value, size_t value_bytes, uint64_t deadline_ms,
                              uint32_t flags) {
  return FillPoint(batch, Op::kPut, key, key_bytes, value, value_bytes, flags, SKEP_RETURN_PREVIOUS,
                   deadline_ms);
}

uint32_t skep_batch_insert(skep_batch* batch, const void* key, size_t key_bytes, const void* value,
                           size_t value_bytes, uint32_t flags) {
  return FillPoint(batch, Op::kInsert, key, key_bytes, value, value_bytes, flags,
                   SKEP_RETURN_PREVIOUS);
}

uint32_t skep_batch_update(skep_batch* batch, const void* key, size_t key_bytes, const void* value,
                           size_t value_bytes, uint32_t flags) {
  return FillPoint(batch, Op::kUpdate, key, key_bytes, value, value_bytes, flags,
                   SKEP_RETURN_PREVIOUS);
}

uint32_t skep_batch_delete(skep_batch* batch, const void* key, size_t key_bytes, uint32_t flags) {
  return FillPoint(batch, Op::kDelete, key, key_bytes, nullptr, 0, flags, SKEP_RETURN_PREVIOUS);
}

uint32_t skep_batch_compare_and_set(skep_batch* batch, const void* key, size_t key_bytes,
                                    const void* expected, size_t expected_bytes, const void* value,
                                    size_t value_bytes) {
  return Fill(batch, {{key, key_bytes}, {expected, expected_bytes}, {value, value_bytes}},
              [&](Batch& b) -> Result<uint32_t> {
                const std::string_view copied_key = Copied(b, key, key_bytes);
                const std::string_view copied_expected = Copied(b, expected, expected_bytes);
                return b.CompareAndSet(copied_key, copied_expected, Copied(b, value, value_bytes));
              });
}

uint32_t skep_batch_expire(skep_batch* batch, const void* key, size_t key_bytes,
                           uint64_t deadline_ms) {
  return FillPoint(batch, Op::kExpire, key, key_bytes, nullptr, 0, 0, 0, deadline_ms);
}

uint32_t skep_batch_move(skep_batch* batch, const void* key, size_t key_bytes, const void* to,
                         size_t to_bytes) {
  return Fill(batch, {{key, key_bytes}, {to, to_bytes}}, [&](Batch& b) -> Result<uint32_t> {
    const std::string_view copied_key = Copied(b, key, key_bytes);
    return b.Move(copied_key, Copied(b, to, to_bytes));
  });
}

uint32_t skep_batch_apply(skep_batch* batch, const void* key, size_t key_bytes,
                          const skep_function* function, const void* operand,
                          size_t operand_bytes) {
  return Fill(batch, {{key, key_bytes}, {operand, operand_bytes}},
              [&](Batch& b) -> Result<uint32_t> {
                const std::string_view copied_key = Copied(b, key, key_bytes);
                return b.Apply(copied_key, reinterpret_cast<const Function*>(function),
                               Copied(b, operand, operand_bytes));
              });
}

uint32_t skep_batch_update_elements(skep_batch* batch, const void* key, size_t key_bytes,
                                    const skep_function* update, const void* operands,
                                    size_t operands_bytes, int is_vector, uint32_t create,
                                    skep_returns returns) {
  return Fill(batch, {{key, key_bytes}, {operands, operands_bytes}},
              [&](Batch& b) -> Result<uint32_t> {
                if (returns < SKEP_RETURN_NOTHING || returns > SKEP_RETURN_NEW)
                  return Fail(kNoSuchFlag);
                const UpdateOptions options{.returns = static_cast<UpdateOptions::Returns>(returns),
                                            .is_vector = is_vector != 0,
                                            .create = create};
                // The operands are copied behind the options.
                return b.UpdateElements(Copied(b, key, key_bytes),
                                        reinterpret_cast<const Function*>(update),
                                        Bytes(operands, operands_bytes), options);
              });
}

// ---- Ranges ----

uint32_t skep_batch_scan(skep_batch* batch, const skep_range* range, uint32_t flags,
                         uint32_t limit) {
  return FillRange(batch, range, [&](Batch& b, const Range& bounds) -> Result<uint32_t> {
    const auto options = ScanOptionsOf(flags, limit);
    if (!options) return Fail(options.error());
    return b.Scan(bounds, *options);
  });
}

uint32_t skep_batch_walk(skep_batch* batch, uint64_t cursor, uint32_t flags, uint32_t limit) {
  return Fill(batch, [&](Batch& b) -> Result<uint32_t> {
    if ((flags & ~SKEP_SCAN_KEYS_ONLY) != 0) return Fail(kNoSuchFlag);
    return b.Walk(cursor, {.limit = limit, .keys_only = flags != 0});
  });
}

uint32_t skep_batch_count(skep_batch* batch, const skep_range* range, uint32_t visits_max) {
  return FillRange(batch, range,
                   [&](Batch& b, const Range& bounds) { return b.Count(bounds, visits_max); });
}

uint32_t skep_batch_delete_range(skep_batch* batch, const skep_range* range, uint32_t limit) {
  return FillRange(batch, range,
                   [&](Batch& b, const Range& bounds) { return b.DeleteRange(bounds, limit); });
}

uint32_t skep_batch_delete_all(skep_batch* batch) {
  return Fill(batch, [](Batch& b) -> Result<uint32_t> { return b.DeleteAll(); });
}

// ---- Conditions ----

uint32_t skep_batch_require_absent(skep_batch* batch, const void* key, size_t key_bytes) {
  return FillPoint(batch, Op::kRequireAbsent, key, key_bytes, nullptr, 0, 0, 0);
}

uint32_t skep_batch_require_present(skep_batch* batch, const void* key, size_t key_bytes) {
  return FillPoint(batch, Op::kRequirePresent, key, key_bytes, nullptr, 0, 0, 0);
}

uint32_t skep_batch_require_value(skep_batch* batch, const void* key, size_t key_bytes,
                                  const void* value, size_t value_bytes) {
  return Fill(batch, {{key, key_bytes}, {value, value_bytes}}, [&](Batch& b) -> Result<uint32_t> {
    const std::string_view copied_key = Copied(b, key, key_bytes);
    return b.RequireValue(copied_key, Copied(b, value, value_bytes));
  });
}

uint32_t skep_batch_require_unchanged(skep_batch* batch, const void* key, size_t key_bytes,
                                      const skep_watch* watch) {
  return Fill(batch, {{key, key_bytes}}, [&](Batch& b) -> Result<uint32_t> {
    if (watch == nullptr) return Fail(kNullHandle);
    return b.RequireUnchanged(Copied(b, key, key_bytes), watch->watch.id());
  });
}

uint32_t skep_batch_require_empty(skep_batch* batch, const skep_range* range) {
  return FillRange(batch, range,
                   [](Batch& b, const Range& bounds) { return b.RequireEmpty(bounds); });
}

// ---- Execution ----

namespace {

// Checks a batch that is to be executed, and makes room for its outcomes.
Status Prepare(skep_batch* batch) {
  if (batch == nullptr) return kNullHandle;
  if (batch->under_way) return kUnderWay;
  batch->executed = false;
  batch->outcomes.clear();
  if (!batch->refusal.ok()) return batch->refusal;
  batch->outcomes.reserve(batch->batch.size());
  return {};
}

void BecomeReadable(skep_batch& batch) {
  batch.outcomes.resize(batch.batch.size());
  batch.executed = true;
}

const char* TextOf(std::string_view bytes) { return bytes.data() == nullptr ? "" : bytes.data(); }

skep_outcome OutcomeOf(const Outcome& out) {
  return {.verdict = static_cast<skep_verdict>(out.verdict),
          .code = static_cast<skep_code>(out.status.code()),
          .text = out.status.what(),
          .detail = out.status.detail(),
          .present = out.present ? 1 : 0,
          .more = out.more ? 1 : 0,
          .item_count = out.item_count,
          .integer = out.integer,
          .value = TextOf(out.value),
          .value_bytes = out.value.size(),
          .deadline_ms = out.deadline_ms,
          .version = out.version};
}

}  // namespace

skep_code skep_execute(skep_store* store, uint32_t keyspace, skep_batch* batch) {
  return Call(store, [&](Store& s) -> Status {
    if (Status refused = Prepare(batch); !refused.ok()) return refused;
    if (Status refused = s.Execute(batch->batch, keyspace); !refused.ok()) return refused;
    BecomeReadable(*batch);
    return {};
  });
}

skep_code skep_begin(skep_store* store, uint32_t keyspace, skep_batch* batch) {
  return Call(store, [&](Store& s) -> Status {
    if (Status refused = Prepare(batch); !refused.ok()) return refused;
    batch->under_way = s.Begin(batch->batch, keyspace);
    return {};
  });
}

skep_code skep_wait(skep_batch* batch) {
  return Guarded([&]() -> Status {
    if (batch == nullptr) return kNullHandle;
    if (!batch->under_way) return {Code::kInvalidArgument, "the batch is not under way"};
    const Status refused = batch->under_way->Wait();
    batch->under_way.reset();
    if (refused.ok()) BecomeReadable(*batch);
    return refused;
  });
}

const skep_outcome* skep_batch_outcome(skep_batch* batch, uint32_t slot) {
  if (batch == nullptr || slot >= batch->outcomes.size()) return nullptr;
  skep_outcome& outcome = batch->outcomes[slot];
  outcome = OutcomeOf(batch->batch.outcome(slot));
  return &outcome;
}

int skep_batch_applied(const skep_batch* batch) {
  return batch != nullptr && batch->executed && batch->batch.applied() ? 1 : 0;
}

size_t skep_batch_items(const skep_batch* batch, uint32_t slot, size_t begin, skep_item* items,
                        size_t capacity) {
  if (batch == nullptr || items == nullptr || slot >= batch->outcomes.size()) return 0;
  size_t count = 0;
  for (const Item& item : batch->batch.items(slot).Without(begin)) {
    if (count == capacity) break;
    items[count++] = ItemOf(item.key, item.value);
  }
  return count;
}
