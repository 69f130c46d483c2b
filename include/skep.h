// skep.h: Skep for C, and for every language that can call C. C99, and C++.
//
//   skep_store* store;
//   if (skep_open(NULL, &store) != SKEP_OK) return complain(skep_error_text());
//   skep_put(store, 0, "user:7", 6, "Ada", 3);
//   skep_close(store);
//
// These are the calls of the C++ library (skep/store.h, skep/batch.h), which say more about each.
// A store is in this process (skep_open) or a server's (skep_connect): the same calls, each
// linearizable (skep_get_many: the get of each key).
//
// Bytes. Keys and values are a pointer and a number of bytes; any byte is legal, and a null pointer
//   with 0 bytes is the empty string; with more it is refused. The library keeps no pointer to a
//   call's arguments once the call has returned.
// Handles. Made by a function with a last parameter `out`, or one called ..._new; ended by
//   ..._free (a store by skep_close), which take null too. If making fails, *out is null. Every
//   handle made from a store must be freed before the store is closed.
// Keyspaces. A store has some, numbered from 0; each call says which.
// Errors. Normal outcomes (a key is absent) are no errors: calls report them through their results.
//   A call that fails returns a code, and skep_error_text() has more. Every call may return, beside
//   the codes it lists:
//     SKEP_INVALID_ARGUMENT  no such keyspace; a null handle; an unknown flag; a null pointer with
//                            a number of bytes; a null pointer for a result, unless the call says
//                            that it may be null
//     SKEP_NOT_SUPPORTED     the engine of that keyspace cannot do it
//     SKEP_TOO_LARGE         a key or value over its limit (64 KiB, 64 MiB)
//     SKEP_OUT_OF_MEMORY     the store's limit is reached, or the process's
//     SKEP_IO                the log cannot be written
//     SKEP_UNAVAILABLE       from a server's store: no answer in time; a write may have been done
// Threads. Any number of threads may use a store at any time. Every other handle has one user at a
//   time.
// Times are milliseconds since 1970 on the system's clock (with a server's store: the server's).
// Growth. Functions, options, codes, flags and statistics are added, and members at the ends of the
// structs that only the library makes (skep_outcome). Before 1.0 a minor version may change more;
// the shared library's name then changes with it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct skep_store skep_store;
typedef struct skep_batch skep_batch;
typedef struct skep_scanner skep_scanner;
typedef struct skep_snapshot skep_snapshot;
typedef struct skep_watch skep_watch;
typedef struct skep_scratch skep_scratch;
typedef struct skep_function skep_function;  // lives as long as the process; not freed

// ---- Errors ----

// A code says what the caller can do next. An unknown code is an error that stays.
typedef enum skep_code {
  SKEP_OK = 0,
  SKEP_INVALID_ARGUMENT = 1,  // the request is wrong; sending it again will fail again
  SKEP_NOT_SUPPORTED = 2,     // this engine or build cannot do that; another one may
  SKEP_TOO_LARGE = 3,         // a key, value or batch exceeds a limit; detail: the limit in bytes
  SKEP_OUT_OF_MEMORY = 4,     // the memory limit is reached; deletes still work; detail: the limit
  SKEP_SNAPSHOT_TOO_OLD = 5,  // the snapshot reached its age limit or was revoked; take a new one
  SKEP_UNAVAILABLE = 6,       // the peer, file or device is gone for now; retry with pauses
  SKEP_ABORTED = 7,           // nothing of this atomic batch was applied; another slot says why
  SKEP_IO = 8,                // the operating system refused; detail: the errno
  SKEP_CORRUPT = 9,           // stored bytes fail their check; detail: the offset
  SKEP_MOVED = 10,            // the keys are another server's by the map of ranges; nothing was
                              // done; detail: the version of the map by which this server goes
  SKEP_WRONG_TYPE = 11        // the value at the key is not plain bytes; detail: its type
} skep_code;

// The error of this thread's last call that returned another code than SKEP_OK: a line for a
// person, and the number that the code speaks of (0: none). Calls that succeed leave both as they
// are. The text is valid until the next failure on this thread.
const char* skep_error_text(void);
uint64_t skep_error_detail(void);

// ---- Stores ----

// The version of the library, "0.1.0".
const char* skep_version(void);
// The engines that the option `engine` accepts. The list ends with a null pointer.
const char* const* skep_engine_names(void);

// Options are strings "name=value", in any order; the list ends with a null pointer. If `options`
// is null, there are none. Numbers are decimal, flags yes or no. Names and defaults are those of
// skep/options.h:
//   engine, keyspaces, memory_bytes_max, snapshot_age_ms_max, directory, log_segment_bytes,
//   recovery_threads,
//   log_sync                   no, everysec or always
//   keyspace                   NUMBER=ENGINE, for one keyspace instead of `engine`; may be repeated
//   btree.node_bytes, btree.log_bytes, btree.multi_version,
//   btree.layout               heads or paper
//   hash.inline_bytes_max, hash.fill_slots
//
// Opens a store in this process.
//   SKEP_INVALID_ARGUMENT     no such option or engine, a value it does not take, or one that the
//                             directory contradicts
//   SKEP_UNAVAILABLE          another store, of this process or another, has the directory
//   SKEP_CORRUPT, SKEP_IO     a file of the directory is damaged, or cannot be read or written
skep_code skep_open(const char* const* options, skep_store** out);
// Opens a store that is a server's; `address` is "127.0.0.1:6379", "[::1]:6379" or
// "unix:/run/skep.sock". The options, written as above, are those of skep/client.h:
//   password, connections, timeout_ms, remembers_writes, datagrams, fat_root, one_sided,
//   wants_versions, syncs_writes
// Or "pool://HOST:PORT,HOST:PORT/NAME": a pool of memory, by its name and the servers of ZooKeeper;
// its options are fabric and timeout_ms.
//   SKEP_UNAVAILABLE       there is no server, or it does not speak Skep's packed protocol; the
//                          pool's servers, or ZooKeeper, do not answer in time
//   SKEP_INVALID_ARGUMENT  the address, the password, or an option
//   SKEP_NOT_SUPPORTED     the server speaks other versions of the protocol only; the client of
//                          ZooKeeper cannot be loaded
skep_code skep_connect(const char* address, const char* const* options, skep_store** out);
// Closes the store. Its directory is then complete and synced. No other call may be running, and
// none may follow.
void skep_close(skep_store* store);

// ---- Points: one descent of an index, or one round trip, each ----

// Gets a copy of the value. *value: a buffer to be freed with skep_free, or null if the key is
// absent.
skep_code skep_get(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                   void** value, size_t* value_bytes);
void skep_free(void* buffer);

typedef struct skep_bytes {
  const void* at;
  size_t bytes;
} skep_bytes;
// The memory of what skep_get_many gets, kept from call to call. Null: the process has no memory.
skep_scratch* skep_scratch_new(void);
void skep_scratch_free(skep_scratch* scratch);
// Gets the values of `count` keys in less time than a batch: the value of keys[i] is values[i],
// whose `at` is null if the key is absent, and not null for an empty value. Its bytes are valid
// until the next call with this scratch, or its end. `values` may not be `keys`. Each key is read
// at an instant of its own between the call and its return. If the call fails, no value counts: all
// are null; a batch tells of each key.
//   SKEP_TOO_LARGE   also: the values together take more than 1 GiB
//   SKEP_WRONG_TYPE  the value of a key is not plain bytes
skep_code skep_get_many(skep_store* store, uint32_t keyspace, const skep_bytes* keys, size_t count,
                        skep_bytes* values, skep_scratch* scratch);

skep_code skep_put(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                   const void* value, size_t value_bytes);
// The key is gone from millisecond `deadline_ms` on; at once if that has passed. 0: never.
skep_code skep_put_until(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                         const void* value, size_t value_bytes, uint64_t deadline_ms);
// *done, unless `done` is null: 1 if the operation was done, else 0. Insert is done if the key was
// absent, update and delete if it was present, compare and set if its value was `expected`.
skep_code skep_insert(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                      const void* value, size_t value_bytes, int* done);
skep_code skep_update(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                      const void* value, size_t value_bytes, int* done);
skep_code skep_delete(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                      int* done);
skep_code skep_compare_and_set(skep_store* store, uint32_t keyspace, const void* key,
                               size_t key_bytes, const void* expected, size_t expected_bytes,
                               const void* value, size_t value_bytes, int* done);
// Gives a key another deadline; 0 takes it away. *done: the key is present.
skep_code skep_expire(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                      uint64_t deadline_ms, int* done);
// *present: 1 or 0. *deadline_ms: 0 if the key has none.
skep_code skep_deadline(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                        int* present, uint64_t* deadline_ms);

// ---- Ranges, of engines with an order ----

// The keys from `lo` on and below `hi`, in the order of unsigned bytes. A struct of zeroes is all
// keys, and so is a null pointer to a range.
typedef struct skep_range {
  const void* lo;
  size_t lo_bytes;
  const void* hi;  // null: no upper bound, whatever hi_bytes is
  size_t hi_bytes;
  uint32_t flags;  // SKEP_RANGE_...
} skep_range;
#define SKEP_RANGE_PREFIX 1u  // all keys that begin with `lo`; `hi` is ignored

#define SKEP_NO_LIMIT UINT32_MAX

// Flags of scans. SKEP_SCAN_SEEK_FLOOR: begins at the largest key that is not above `lo`; not with
// SKEP_SCAN_REVERSE, which goes from the largest key of the range down.
#define SKEP_SCAN_REVERSE 1u
#define SKEP_SCAN_KEYS_ONLY 2u
#define SKEP_SCAN_SEEK_FLOOR 4u

typedef struct skep_item {
  const void* key;
  size_t key_bytes;
  const void* value;
  size_t value_bytes;
} skep_item;

// A pass over at most `limit` items of a range at one version: that of the snapshot `at`, which
// must be of the same keyspace and outlive the scanner, or, if `at` is null, that of the first call
// of skep_scanner_next. Takes no time and little memory, however long the range is.
skep_code skep_scan(skep_store* store, uint32_t keyspace, const skep_range* range, uint32_t flags,
                    uint32_t limit, const skep_snapshot* at, skep_scanner** out);
// The next 1 to `capacity` items, as many as are at hand: *count, which is 0 at the end. The bytes
// of the items are valid until the next call.
//   SKEP_SNAPSHOT_TOO_OLD  the pass took longer than the option snapshot_age_ms_max
skep_code skep_scanner_next(skep_scanner* scanner, skep_item* items, size_t capacity,
                            size_t* count);
void skep_scanner_free(skep_scanner* scanner);

// How many keys the range has, at one version (`at` as above). Takes time with their number.
skep_code skep_count(skep_store* store, uint32_t keyspace, const skep_range* range,
                     const skep_snapshot* at, uint64_t* count);
// Deletes the first `limit` keys of the range at one instant. *deleted, unless `deleted` is null:
// the number of keys deleted.
skep_code skep_delete_range(skep_store* store, uint32_t keyspace, const skep_range* range,
                            uint32_t limit, uint64_t* deleted);

// ---- Snapshots and watches ----

// Pins the present state. As long as the snapshot lives, the store keeps old values of what
// changes.
skep_code skep_take_snapshot(skep_store* store, uint32_t keyspace, skep_snapshot** out);
// The snapshot sees every write up to and including this version of its keyspace, and no later one.
uint64_t skep_snapshot_version(const skep_snapshot* snapshot);
void skep_snapshot_free(skep_snapshot* snapshot);

// Watches a key: skep_batch_require_unchanged holds until somebody writes or deletes it, or it
// expires. Watch first, then read, then execute the batch that depends on what was read. Costs all
// writers of the keyspace a little as long as it lives.
skep_code skep_watch_key(skep_store* store, uint32_t keyspace, const void* key, size_t key_bytes,
                         skep_watch** out);
void skep_watch_free(skep_watch* watch);

// ---- Upkeep ----

// Writes a snapshot of all keyspaces to the directory, and drops the log before it. Takes time with
// the number of keys; other calls go on.
//   SKEP_NOT_SUPPORTED     the store has no directory
//   SKEP_UNAVAILABLE       a snapshot is being written
//   SKEP_SNAPSHOT_TOO_OLD  there was no memory for what changed meanwhile
skep_code skep_save(skep_store* store);
// Does a bounded piece, well under a millisecond for each keyspace, of the work that can be done
// beside the calls: freeing keys that expired, and memory. Returns not 0 if there is more to do
// now. Nothing else frees them: a program whose keys expire must call this now and then, on any
// thread. On a server's store it does nothing, as the server does it.
int skep_maintain(skep_store* store);
// Calls visit(context, ...) for each number; the strings are valid during that call, which must not
// throw. keyspace -1 and engine "": a number of the whole store. Names: memory_bytes,
// memory_bytes_max (0: no limit); of each keyspace in use items, bytes, old_versions, snapshots,
// oldest_snapshot, released, and those that its engine tells (docs/commands.md, "What INFO tells of
// engines"). Takes a millisecond or so for each large keyspace.
typedef void (*skep_statistics_visitor)(void* context, int64_t keyspace, const char* engine,
                                        const char* name, uint64_t value);
skep_code skep_statistics(skep_store* store, skep_statistics_visitor visit, void* context);

// ---- Functions at the data: skep/function.h ----

typedef enum skep_function_kind {
  SKEP_PLAIN = 0,   // takes a whole value; the element does not matter
  SKEP_UPDATE = 1,  // changes a vector of elements: skep_batch_update_elements
  SKEP_REDUCE = 2,  // makes one number of a vector of elements
  SKEP_FILTER = 3   // returns the elements of a vector that are wanted
} skep_function_kind;

typedef enum skep_element {
  SKEP_I8 = 0,
  SKEP_I16 = 1,
  SKEP_I32 = 2,
  SKEP_I64 = 3,
  SKEP_U8 = 4,
  SKEP_U16 = 5,
  SKEP_U32 = 6,
  SKEP_U64 = 7,
  SKEP_F32 = 8,
  SKEP_F64 = 9
} skep_element;

// The function of that kind, name ("add", "sum", "lt"; plain: "add-decimal", "append"; a null byte
// ends it) and element; null if there is none, no such kind or element, or no memory to look it up.
// Takes a lock, so look up once.
const skep_function* skep_find_function(skep_function_kind kind, const char* name,
                                        skep_element element);

// ---- Batches: the unit of work ----
//
//   skep_batch* batch = skep_batch_new(0);
//   uint32_t a = skep_batch_get(batch, "apple", 5, 0);
//   uint32_t b = skep_batch_put(batch, "pear", 4, "3", 1, 0);
//   if (skep_execute(store, 0, batch) != SKEP_OK) ...
//   const skep_outcome* apple = skep_batch_outcome(batch, a);
//   if (apple->verdict == SKEP_DONE) use(apple->value, apple->value_bytes);
//
// Unordered (the default): independent operations; operations on one key keep their order. Atomic:
// all or nothing at one instant, if all conditions hold. skep/batch.h has the rules.
//
// Functions that fill a batch copy the bytes they are given, and return the slot of the request.
// SKEP_NO_SLOT: the request cannot be made, and the whole batch will be refused when it is
// executed, so that not every call need be checked. The batch must not be under way (skep_begin).

#define SKEP_NO_SLOT UINT32_MAX

// Flags of skep_batch_new.
#define SKEP_ATOMIC 1u
// Null if there is no such flag, or no memory.
skep_batch* skep_batch_new(uint32_t flags);
void skep_batch_free(skep_batch* batch);
// Empties the batch, and keeps its memory for the next requests. If the batch is under way, nothing
// waits for it: its operations may be done or not.
void skep_batch_clear(skep_batch* batch);
// The batch reads at the snapshot, until it is cleared; it must then only read. The snapshot must
// live until the batch was executed.
void skep_batch_read_at(skep_batch* batch, const skep_snapshot* snapshot);
// Each scan and walk of the batch stops once its keys and values exceed `bytes`; the outcome's
// `more` says so.
void skep_batch_set_scan_bytes_max(skep_batch* batch, size_t bytes);
// The requests added from here on are a part of their own: all or nothing by itself, after the
// parts before. Atomic batches only.
void skep_batch_begin_part(skep_batch* batch);

// Flags of requests. SKEP_RETURN_PREVIOUS, for writes: the outcome's value is the one before.
// SKEP_NO_VALUE, for get: the outcome's integer is the length of the value, and the value is not
// copied.
#define SKEP_RETURN_PREVIOUS 1u
#define SKEP_NO_VALUE 64u
uint32_t skep_batch_get(skep_batch* batch, const void* key, size_t key_bytes, uint32_t flags);
uint32_t skep_batch_put(skep_batch* batch, const void* key, size_t key_bytes, const void* value,
                        size_t value_bytes, uint32_t flags);
// deadline_ms 0: no deadline; SKEP_KEEP_DEADLINE: the one the key has.
#define SKEP_KEEP_DEADLINE UINT64_MAX
uint32_t skep_batch_put_until(skep_batch* batch, const void* key, size_t key_bytes,
                              const void* value, size_t value_bytes, uint64_t deadline_ms,
                              uint32_t flags);
uint32_t skep_batch_insert(skep_batch* batch, const void* key, size_t key_bytes, const void* value,
                           size_t value_bytes, uint32_t flags);
uint32_t skep_batch_update(skep_batch* batch, const void* key, size_t key_bytes, const void* value,
                           size_t value_bytes, uint32_t flags);
uint32_t skep_batch_delete(skep_batch* batch, const void* key, size_t key_bytes, uint32_t flags);
uint32_t skep_batch_compare_and_set(skep_batch* batch, const void* key, size_t key_bytes,
                                    const void* expected, size_t expected_bytes, const void* value,
                                    size_t value_bytes);
// Gives the key another deadline; 0 takes it away.
uint32_t skep_batch_expire(skep_batch* batch, const void* key, size_t key_bytes,
                           uint64_t deadline_ms);
// Gives value and deadline to the key `to`; atomic batches only.
uint32_t skep_batch_move(skep_batch* batch, const void* key, size_t key_bytes, const void* to,
                         size_t to_bytes);

// Runs a plain, reduce or filter function on the value. The operand is what the function takes; for
// reduce it is the first state (8 bytes, or none). A null function is refused in its slot.
uint32_t skep_batch_apply(skep_batch* batch, const void* key, size_t key_bytes,
                          const skep_function* function, const void* operand, size_t operand_bytes);
typedef enum skep_returns {
  SKEP_RETURN_NOTHING = 0,
  SKEP_RETURN_OLD = 1,
  SKEP_RETURN_NEW = 2
} skep_returns;
// Updates a vector in place. The operands are one set for all elements or, if is_vector is not 0,
// one for each. An absent key first becomes `create` elements of 0; if `create` is 0, an absent key
// is an error. The outcome's integer: the number of elements; its value: the elements that
// `returns` asks for.
uint32_t skep_batch_update_elements(skep_batch* batch, const void* key, size_t key_bytes,
                                    const skep_function* update, const void* operands,
                                    size_t operands_bytes, int is_vector, uint32_t create,
                                    skep_returns returns);

// `flags`: SKEP_SCAN_...; skep_batch_items has the items.
uint32_t skep_batch_scan(skep_batch* batch, const skep_range* range, uint32_t flags,
                         uint32_t limit);
// A step of a walk over all keys in no order, for engines that have none. `cursor`: 0 to begin,
// then the outcome's integer, until that is 0. SKEP_SCAN_KEYS_ONLY is the only flag. Unordered
// batches only.
uint32_t skep_batch_walk(skep_batch* batch, uint64_t cursor, uint32_t flags, uint32_t limit);
// Counts the keys of the range, of which it visits at most `visits_max`; the outcome's `more` says
// if there are more.
uint32_t skep_batch_count(skep_batch* batch, const skep_range* range, uint32_t visits_max);
uint32_t skep_batch_delete_range(skep_batch* batch, const skep_range* range, uint32_t limit);
uint32_t skep_batch_delete_all(skep_batch* batch);

// Conditions; atomic batches only. They are judged on the state before the batch, or before their
// part.
uint32_t skep_batch_require_absent(skep_batch* batch, const void* key, size_t key_bytes);
uint32_t skep_batch_require_present(skep_batch* batch, const void* key, size_t key_bytes);
uint32_t skep_batch_require_value(skep_batch* batch, const void* key, size_t key_bytes,
                                  const void* value, size_t value_bytes);
// The watch must be of this key, and live until the batch was executed.
uint32_t skep_batch_require_unchanged(skep_batch* batch, const void* key, size_t key_bytes,
                                      const skep_watch* watch);
uint32_t skep_batch_require_empty(skep_batch* batch, const skep_range* range);

// Runs the batch, and returns when every write in it is visible to every reader. Slots report their
// own refusals. An atomic batch that was not applied is no error: skep_batch_applied tells.
skep_code skep_execute(skep_store* store, uint32_t keyspace, skep_batch* batch);
// Begins to run the batch. Many batches can be under way, and those of a server's store share round
// trips. Operations on one key take effect in the order of the calls. Until skep_wait the batch may
// only be waited for, cleared or freed.
skep_code skep_begin(skep_store* store, uint32_t keyspace, skep_batch* batch);
// Waits for a batch that skep_begin has begun, and returns what skep_execute would.
//   SKEP_INVALID_ARGUMENT  the batch is not under way
skep_code skep_wait(skep_batch* batch);

typedef enum skep_verdict {
  SKEP_DONE = 0,         // found, stored, deleted, scanned; the condition holds
  SKEP_ABSENT = 1,       // the key is absent
  SKEP_EXISTS = 2,       // the key is present
  SKEP_MISMATCH = 3,     // a comparison does not hold
  SKEP_NOT_APPLIED = 4,  // because of another slot of an atomic batch
  SKEP_REFUSED = 5       // `code` and `text` say why
} skep_verdict;

typedef struct skep_outcome {
  skep_verdict verdict;
  skep_code code;       // SKEP_OK but for SKEP_REFUSED
  const char* text;     // why it was refused, else ""
  uint64_t detail;      // the number that the code speaks of
  int present;          // points: the key was there before
  int more;             // ranges: stopped by a limit; `value` is the bound to go on from (the lower
                        // one; for a reverse scan the upper one)
  uint32_t item_count;  // scans and walks
  int64_t integer;      // keys counted or deleted; functions: their number; walks: the cursor
  const void* value;  // get: the value. SKEP_RETURN_PREVIOUS: the one before. Functions: what they
                      // returned. Mismatch: the value seen. Never null; 0 bytes if there is none
  size_t value_bytes;
  uint64_t deadline_ms;  // points: the deadline the key had before; 0: none
  uint64_t version;      // writes: their version; only from a server's store with wants_versions
} skep_outcome;

// The outcome of a request; null if the batch was not executed since, or has no such slot. The
// outcome, and the bytes it names, are valid until the batch is executed again, cleared or freed.
const skep_outcome* skep_batch_outcome(skep_batch* batch, uint32_t slot);
// 0 if the atomic batch has changed nothing because a condition or an operation failed; in a batch
// of parts only the requests before the first part count.
int skep_batch_applied(const skep_batch* batch);
// Copies at most `capacity` items of a scan or walk, from item number `begin` on, to `items`;
// returns how many. Their bytes live as long as the outcome's. Costs little more than the items.
size_t skep_batch_items(const skep_batch* batch, uint32_t slot, size_t begin, skep_item* items,
                        size_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif
