// Stores, points, ranges, snapshots and watches of skep.h. Batches: c_api_batch.cc.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "skep.h"
#include "store/c_handles.h"
#include "store/c_options.h"

using namespace skep;
using namespace skep::c_api;

namespace skep::c_api {
namespace {

static_assert(SKEP_INVALID_ARGUMENT == static_cast<int>(Code::kInvalidArgument));
static_assert(SKEP_NOT_SUPPORTED == static_cast<int>(Code::kNotSupported));
static_assert(SKEP_TOO_LARGE == static_cast<int>(Code::kTooLarge));
static_assert(SKEP_OUT_OF_MEMORY == static_cast<int>(Code::kOutOfMemory));
static_assert(SKEP_SNAPSHOT_TOO_OLD == static_cast<int>(Code::kSnapshotTooOld));
static_assert(SKEP_UNAVAILABLE == static_cast<int>(Code::kUnavailable));
static_assert(SKEP_ABORTED == static_cast<int>(Code::kAborted));
static_assert(SKEP_IO == static_cast<int>(Code::kIo));
static_assert(SKEP_CORRUPT == static_cast<int>(Code::kCorrupt));
static_assert(SKEP_MOVED == static_cast<int>(Code::kMoved));
static_assert(SKEP_WRONG_TYPE == static_cast<int>(Code::kWrongType));

// Has no destructor, so that a thread may end after the library is gone.
struct LastError {
  char text[1024];
  uint64_t detail;
};
thread_local LastError last_error;

}  // namespace

skep_code Refuse(Status status, std::string_view text) noexcept {
  const size_t bytes = std::min(text.size(), sizeof last_error.text - 1);
  std::memcpy(last_error.text, text.data(), bytes);
  last_error.text[bytes] = '\0';
  last_error.detail = status.detail();
  return static_cast<skep_code>(status.code());
}

Result<Range> RangeOf(const skep_range* range, Scratch& scratch) {
  if (range == nullptr) return Range::All();
  if ((range->flags & ~SKEP_RANGE_PREFIX) != 0) return Fail(kNoSuchFlag);
  const bool is_prefix = (range->flags & SKEP_RANGE_PREFIX) != 0;
  if (!AreSound({{range->lo, range->lo_bytes}})) return Fail(kNullBytes);
  const std::string_view lo = Bytes(range->lo, range->lo_bytes);
  if (is_prefix) return PrefixRange(lo, scratch);
  if (range->hi == nullptr) return Range::From(lo);
  return Range::Between(lo, Bytes(range->hi, range->hi_bytes));
}

Result<ScanOptions> ScanOptionsOf(uint32_t flags, uint32_t limit) {
  if ((flags & ~(SKEP_SCAN_REVERSE | SKEP_SCAN_KEYS_ONLY | SKEP_SCAN_SEEK_FLOOR)) != 0) {
    return Fail(kNoSuchFlag);
  }
  return ScanOptions{.limit = limit,
                     .reverse = (flags & SKEP_SCAN_REVERSE) != 0,
                     .keys_only = (flags & SKEP_SCAN_KEYS_ONLY) != 0,
                     .seek_floor = (flags & SKEP_SCAN_SEEK_FLOOR) != 0};
}

}  // namespace skep::c_api

// ---- Errors ----

const char* skep_error_text(void) { return last_error.text; }
uint64_t skep_error_detail(void) { return last_error.detail; }

// ---- Stores ----

const char* skep_version(void) { return SKEP_VERSION; }

const char* const* skep_engine_names(void) {
  struct Table {
    Table() noexcept : names(EngineNames()) {
      for (const std::string& name : names) pointers.push_back(name.c_str());
      pointers.push_back(nullptr);
    }
    std::vector<std::string> names;
    std::vector<const char*> pointers;
  };
  static const Table table;
  return table.pointers.data();
}

namespace {

// Makes a store. If that fails, the text of the error is `problem`, which says more than the
// status.
template <class Make>
skep_code MakeStore(skep_store** out, Make make) noexcept {
  if (out == nullptr) return Refuse(kNoPlace, kNoPlace.what());
  *out = nullptr;
  std::string problem;
  const skep_code code = Guarded([&]() -> Status {
    auto store = make(&problem);
    if (!store) return store.error();
    *out = std::make_unique<skep_store>(std::move(*store)).release();
    return {};
  });
  if (code != SKEP_OK && !problem.empty()) {
    return Refuse(Status(static_cast<Code>(code), "", last_error.detail), problem);
  }
  return code;
}

}  // namespace

skep_code skep_open(const char* const* options, skep_store** out) {
  return MakeStore(out, [&](std::string* problem) -> Result<std::unique_ptr<Store>> {
    const auto parsed = ParseOpenOptions(options, problem);
    if (!parsed) return Fail(parsed.error());
    return Store::Open(*parsed, problem);
  });
}

skep_code skep_connect(const char* address, const char* const* options, skep_store** out) {
  return MakeStore(out, [&](std::string* problem) -> Result<std::unique_ptr<Store>> {
    auto parsed = ParseConnectOptions(options, problem);
    if (!parsed) return Fail(parsed.error());
    if (address == nullptr) return Fail(Code::kInvalidArgument, "no address");
    parsed->address = address;
    return Store::Connect(*parsed);
  });
}

void skep_close(skep_store* store) { delete store; }

// ---- Points ----

namespace {

// Runs a body that returns whether the operation was done.
template <class Body>
skep_code CallForBool(skep_store* store, int* done, std::initializer_list<Given> given,
                      Body body) noexcept {
  return Call(store, given, [&](Store& s) {
    return IfThere(body(s), [&](bool was_done) {
      if (done != nullptr) *done = was_done ? 1 : 0;
    });
  });
}

Result<Outcome> ExecuteOne(Store& store, Batch& batch, uint32_t keyspace) {
  if (Status s = store.Execute(batch, keyspace); !s.ok()) return Fail(s);
  const Outcome& out = batch.outcome(0);
  if (out.verdict == Verdict::kRefused) return Fail(out.status);
  return out;
}

}  // namespace

skep_code skep_get(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                   void** value, size_t* value_bytes) {
  if (value == nullptr || value_bytes == nullptr) return Refuse(kNoPlace, kNoPlace.what());
  *value = nullptr;
  *value_bytes = 0;
  return Call(store, {{key, key_bytes}}, [&](Store& s) -> Status {
    const auto found = s.Get(Bytes(key, key_bytes), keyspace);
    if (!found) return found.error();
    if (!found->has_value()) return {};
    const std::string& bytes = **found;
    *value = std::malloc(std::max<size_t>(1, bytes.size()));
    if (*value == nullptr) return kNoMemory;
    *value_bytes = bytes.copy(static_cast<char*>(*value), bytes.size());
    return {};
  });
}

void skep_free(void* buffer) { std::free(buffer); }

skep_scratch* skep_scratch_new(void) { return new (std::nothrow) skep_scratch; }
void skep_scratch_free(skep_scratch* scratch) { delete scratch; }

skep_code skep_get_many(skep_store* store, uint32_t keyspace, const skep_bytes* keys, size_t count,
                        skep_bytes* values, skep_scratch* scratch) {
  if (values == nullptr && count > 0) return Refuse(kNoPlace, kNoPlace.what());
  std::fill_n(values, count, skep_bytes{});
  return Call(store, [&](Store& s) -> Status {
    if (scratch == nullptr) return kNullHandle;
    if (keys == nullptr && count > 0) return kNullBytes;
    scratch->values.Clear();
    scratch->keys.clear();
    for (size_t i = 0; i < count; ++i) {
      if (!Given{keys[i].at, keys[i].bytes}.is_sound()) return kNullBytes;
      scratch->keys.push_back(Bytes(keys[i].at, keys[i].bytes));
    }
    scratch->answers.resize(count);
    const Status status = s.GetMany(scratch->keys, scratch->answers, scratch->values, keyspace);
    if (!status.ok()) return status;
    for (size_t i = 0; i < count; ++i) {
      const GetAnswer& answer = scratch->answers[i];
      if (answer.verdict != Verdict::kDone) continue;
      values[i] = {answer.bytes > 0 ? answer.data : "", answer.bytes};
    }
    return {};
  });
}

skep_code skep_put(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                   const void* value, size_t value_bytes) {
  return Call(store, {{key, key_bytes}, {value, value_bytes}}, [&](Store& s) {
    return s.Put(Bytes(key, key_bytes), Bytes(value, value_bytes), keyspace);
  });
}

skep_code skep_put_until(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                         const void* value, size_t value_bytes, uint64_t deadline_ms) {
  return Call(store, {{key, key_bytes}, {value, value_bytes}}, [&](Store& s) {
    Batch batch;
    batch.Add({.op = Op::kPut,
               .key = Bytes(key, key_bytes),
               .value = Bytes(value, value_bytes),
               .other = {},
               .deadline_ms = deadline_ms});
    return IfThere(ExecuteOne(s, batch, keyspace), [](const Outcome&) {});
  });
}

skep_code skep_insert(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                      const void* value, size_t value_bytes, int* done) {
  return CallForBool(store, done, {{key, key_bytes}, {value, value_bytes}}, [&](Store& s) {
    return s.Insert(Bytes(key, key_bytes), Bytes(value, value_bytes), keyspace);
  });
}

skep_code skep_update(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                      const void* value, size_t value_bytes, int* done) {
  return CallForBool(store, done, {{key, key_bytes}, {value, value_bytes}}, [&](Store& s) {
    return s.Update(Bytes(key, key_bytes), Bytes(value, value_bytes), keyspace);
  });
}

skep_code skep_delete(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                      int* done) {
  return CallForBool(store, done, {{key, key_bytes}},
                     [&](Store& s) { return s.Delete(Bytes(key, key_bytes), keyspace); });
}

skep_code skep_compare_and_set(skep_store* store, uint32_t keyspace, const void* key,
                               size_t key_bytes, const void* expected, size_t expected_bytes,
                               const void* value, size_t value_bytes, int* done) {
  return CallForBool(
      store, done, {{key, key_bytes}, {expected, expected_bytes}, {value, value_bytes}},
      [&](Store& s) {
        return s.CompareAndSet(Bytes(key, key_bytes), Bytes(expected, expected_bytes),
                               Bytes(value, value_bytes), keyspace);
      });
}

skep_code skep_expire(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                      uint64_t deadline_ms, int* done) {
  return CallForBool(store, done, {{key, key_bytes}}, [&](Store& s) -> Result<bool> {
    Batch batch;
    batch.Expire(Bytes(key, key_bytes), deadline_ms);
    const auto out = ExecuteOne(s, batch, keyspace);
    if (!out) return Fail(out.error());
    return out->verdict == Verdict::kDone;
  });
}

skep_code skep_deadline(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                        int* present, uint64_t* deadline_ms) {
  if (present == nullptr || deadline_ms == nullptr) return Refuse(kNoPlace, kNoPlace.what());
  return Call(store, {{key, key_bytes}}, [&](Store& s) {
    Batch batch;
    batch.Add(
        {.op = Op::kGet, .flags = Request::kNoValue, .key = Bytes(key, key_bytes), .other = {}});
    return IfThere(ExecuteOne(s, batch, keyspace), [&](const Outcome& out) {
      *present = out.verdict == Verdict::kDone ? 1 : 0;
      *deadline_ms = *present != 0 ? out.deadline_ms : 0;
    });
  });
}

// ---- Ranges ----

skep_code skep_scan(skep_store* store, uint32_t keyspace, const skep_range* range, uint32_t flags,
                    uint32_t limit, const skep_snapshot* at, skep_scanner** out) {
  if (out == nullptr) return Refuse(kNoPlace, kNoPlace.what());
  *out = nullptr;
  return Call(store, [&](Store& s) -> Status {
    Scratch scratch;
    const auto bounds = RangeOf(range, scratch);
    const auto options = ScanOptionsOf(flags, limit);
    if (!bounds) return bounds.error();
    if (!options) return options.error();
    const Snapshot* const snapshot = at == nullptr ? nullptr : &at->snapshot;
    *out = new skep_scanner{s.Scan(*bounds, *options, keyspace, snapshot)};
    return {};
  });
}

skep_code skep_scanner_next(skep_scanner* scanner, skep_item* items, size_t capacity,
                            size_t* count) {
  if (count == nullptr || (items == nullptr && capacity > 0)) {
    return Refuse(kNoPlace, kNoPlace.what());
  }
  *count = 0;
  return Guarded([&]() -> Status {
    if (scanner == nullptr) return kNullHandle;
    Scanner& scan = scanner->scanner;
    while (*count < capacity && (*count == 0 || scan.next_is_at_hand())) {
      if (!scan.Next()) return scan.status();
      items[(*count)++] = ItemOf(scan.key(), scan.value());
    }
    return {};
  });
}

void skep_scanner_free(skep_scanner* scanner) { delete scanner; }

skep_code skep_count(skep_store* store, uint32_t keyspace, const skep_range* range,
                     const skep_snapshot* at, uint64_t* count) {
  if (count == nullptr) return Refuse(kNoPlace, kNoPlace.what());
  return Call(store, [&](Store& s) -> Status {
    Scratch scratch;
    const auto bounds = RangeOf(range, scratch);
    if (!bounds) return bounds.error();
    const Snapshot* const snapshot = at == nullptr ? nullptr : &at->snapshot;
    return IfThere(s.Count(*bounds, keyspace, snapshot), [&](uint64_t keys) { *count = keys; });
  });
}

skep_code skep_delete_range(skep_store* store, uint32_t keyspace, const skep_range* range,
                            uint32_t limit, uint64_t* deleted) {
  return Call(store, [&](Store& s) -> Status {
    Scratch scratch;
    const auto bounds = RangeOf(range, scratch);
    if (!bounds) return bounds.error();
    return IfThere(s.DeleteRange(*bounds, limit, keyspace), [&](uint64_t keys) {
      if (deleted != nullptr) *deleted = keys;
    });
  });
}

// ---- Snapshots and watches ----

skep_code skep_take_snapshot(skep_store* store, uint32_t keyspace, skep_snapshot** out) {
  if (out == nullptr) return Refuse(kNoPlace, kNoPlace.what());
  *out = nullptr;
  return Call(store, [&](Store& s) {
    return IfThere(s.TakeSnapshot(keyspace),
                   [&](Snapshot& snapshot) { *out = new skep_snapshot{std::move(snapshot)}; });
  });
}

uint64_t skep_snapshot_version(const skep_snapshot* snapshot) {
  return snapshot == nullptr ? 0 : snapshot->snapshot.version();
}

void skep_snapshot_free(skep_snapshot* snapshot) { delete snapshot; }

skep_code skep_watch_key(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                         skep_watch** out) {
  if (out == nullptr) return Refuse(kNoPlace, kNoPlace.what());
  *out = nullptr;
  return Call(store, {{key, key_bytes}}, [&](Store& s) {
    return IfThere(s.WatchKey(Bytes(key, key_bytes), keyspace),
                   [&](Watch& watch) { *out = new skep_watch{std::move(watch)}; });
  });
}

void skep_watch_free(skep_watch* watch) { delete watch; }

// ---- Upkeep ----

skep_code skep_save(skep_store* store) {
  return Call(store, [](Store& s) { return s.SaveSnapshot(); });
}

int skep_maintain(skep_store* store) {
  bool more = false;
  Call(store, [&](Store& s) {
    more = s.Maintain();
    return Status();
  });
  return more ? 1 : 0;
}

skep_code skep_statistics(skep_store* store, skep_statistics_visitor visit, void* context) {
  if (visit == nullptr) return Refuse(kNoPlace, kNoPlace.what());
  return Call(store, [&](Store& s) {
    const StoreStatistics all = s.Statistics();
    visit(context, -1, "", "memory_bytes", all.memory_bytes);
    visit(context, -1, "", "memory_bytes_max", all.memory_bytes_max);
    for (const StoreStatistics::Keyspace& k : all.keyspaces) {
      const auto tell = [&](const char* name, uint64_t value) {
        visit(context, k.index, k.engine.c_str(), name, value);
      };
      tell("items", k.items);
      tell("bytes", k.bytes);
      tell("old_versions", k.old_versions);
      tell("snapshots", k.snapshots);
      tell("oldest_snapshot", k.oldest_snapshot);
      tell("released", k.released);
      for (const auto& [name, value] : k.details) tell(name.c_str(), value);
    }
    return Status();
  });
}
