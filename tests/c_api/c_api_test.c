/* Goal: every function of include/skep.h does what it says, on a store in process and on a server's
 *   store, and every code occurs.
 * Method: each test has a keyspace to itself or empties it first. Compiled as C11 and as C++; with
 *   AddressSanitizer memory that is not freed fails the test.
 *
 * Usage: c_api_test FOLDER            in process; FOLDER is empty, and for stores with a directory
 *        c_api_test FOLDER ADDRESS    a server's, with keyspace 1=hash and the password "sesame" */
#include "c_api_test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "skep.h"

enum { HASH_KEYSPACE = 1, NO_KEYSPACE = 99, PATIENCE_S = 60 };

static int is(const void* at, size_t bytes, const char* expected) {
  return bytes == strlen(expected) && memcmp(at, expected, bytes) == 0;
}

static int value_is(skep_store* store, const void* key, size_t key_bytes, const char* expected) {
  void* value;
  size_t value_bytes;
  OK(skep_get(store, 0, key, key_bytes, &value, &value_bytes));
  const int same =
      expected == NULL ? value == NULL : value != NULL && is(value, value_bytes, expected);
  skep_free(value);
  return same;
}

static uint64_t now_ms(void) { return (uint64_t)time(NULL) * 1000; }

static skep_range prefix(const char* text) {
  skep_range range = {0, 0, 0, 0, 0};
  range.lo = text;
  range.lo_bytes = strlen(text);
  range.flags = SKEP_RANGE_PREFIX;
  return range;
}

static skep_range between(const char* lo, const char* hi) {
  skep_range range = {0, 0, 0, 0, 0};
  range.lo = lo;
  range.lo_bytes = strlen(lo);
  range.hi = hi;
  range.hi_bytes = strlen(hi);
  return range;
}

static void empty(skep_store* store) { OK(skep_delete_range(store, 0, NULL, SKEP_NO_LIMIT, NULL)); }

static const skep_outcome* outcome(skep_batch* batch, uint32_t slot) {
  const skep_outcome* out = skep_batch_outcome(batch, slot);
  CHECK(out != NULL);
  return out;
}

static skep_verdict verdict(skep_batch* batch, uint32_t slot) {
  return outcome(batch, slot)->verdict;
}

static void test_points(skep_store* store) {
  int done = -1;
  empty(store);
  OK(skep_put(store, 0, S("apple"), S("red")));
  CHECK(value_is(store, S("apple"), "red"));
  CHECK(value_is(store, S("pear"), NULL));
  OK(skep_put(store, 0, S("a\0b"), S("\0")));
  CHECK(value_is(store, S("a"), NULL));
  OK(skep_put(store, 0, S("empty"), NULL, 0));
  CHECK(value_is(store, S("empty"), ""));
  OK(skep_insert(store, 0, S("apple"), S("green"), &done));
  CHECK(done == 0);
  OK(skep_insert(store, 0, S("pear"), S("green"), &done));
  CHECK(done == 1);
  OK(skep_update(store, 0, S("plum"), S("blue"), &done));
  CHECK(done == 0);
  OK(skep_update(store, 0, S("pear"), S("ripe"), &done));
  CHECK(done == 1 && value_is(store, S("pear"), "ripe"));
  OK(skep_compare_and_set(store, 0, S("pear"), S("green"), S("brown"), &done));
  CHECK(done == 0);
  OK(skep_compare_and_set(store, 0, S("pear"), S("ripe"), S("brown"), &done));
  CHECK(done == 1 && value_is(store, S("pear"), "brown"));
  OK(skep_delete(store, 0, S("pear"), &done));
  CHECK(done == 1);
  OK(skep_delete(store, 0, S("pear"), &done));
  CHECK(done == 0);
  OK(skep_delete(store, 0, S("apple"), NULL));
  CHECK(value_is(store, S("apple"), NULL));
}

static void test_deadlines(skep_store* store) {
  const uint64_t later = now_ms() + 1000 * 1000;
  uint64_t deadline = 1;
  int present = -1;
  int done = -1;
  empty(store);
  OK(skep_put_until(store, 0, S("k"), S("v"), later));
  OK(skep_deadline(store, 0, S("k"), &present, &deadline));
  CHECK(present == 1 && deadline == later);
  OK(skep_expire(store, 0, S("k"), later + 1, &done));
  CHECK(done == 1);
  OK(skep_deadline(store, 0, S("k"), &present, &deadline));
  CHECK(deadline == later + 1);
  OK(skep_expire(store, 0, S("k"), 0, &done));
  OK(skep_deadline(store, 0, S("k"), &present, &deadline));
  CHECK(present == 1 && deadline == 0);
  OK(skep_expire(store, 0, S("absent"), later, &done));
  CHECK(done == 0);
  OK(skep_deadline(store, 0, S("absent"), &present, &deadline));
  CHECK(present == 0 && deadline == 0);
  OK(skep_put_until(store, 0, S("k"), S("v"), 1)); /* a deadline long ago */
  CHECK(value_is(store, S("k"), NULL));
  CHECK(skep_put_until(store, 0, S("k"), S("v"), UINT64_MAX - 1) == SKEP_INVALID_ARGUMENT);
  skep_maintain(store);
}

enum { MANY = 1000 }; /* several chunks of a scanner */

static void put_many(skep_store* store) {
  empty(store);
  for (int i = 0; i < MANY; ++i) {
    char key[16];
    snprintf(key, sizeof key, "key%04d", i);
    OK(skep_put(store, 0, key, strlen(key), key + 3, 4));
  }
}

/* Reads the whole range with arrays of this capacity; the keys are first, first + step, ... */
static int scan_is(skep_store* store, const skep_range* range, uint32_t flags, uint32_t limit,
                   const skep_snapshot* at, size_t capacity, int first, int step) {
  skep_item items[64];
  skep_scanner* scanner;
  size_t count;
  int total = 0;
  OK(skep_scan(store, 0, range, flags, limit, at, &scanner));
  do {
    OK(skep_scanner_next(scanner, items, capacity, &count));
    CHECK(count <= capacity);
    for (size_t i = 0; i < count; ++i, ++total) {
      char key[16];
      snprintf(key, sizeof key, "key%04d", first + step * total);
      CHECK(is(items[i].key, items[i].key_bytes, key));
      CHECK(is(items[i].value, items[i].value_bytes, (flags & SKEP_SCAN_KEYS_ONLY) ? "" : key + 3));
    }
  } while (count > 0);
  skep_scanner_free(scanner);
  return total;
}

static void test_ranges(skep_store* store) {
  const skep_range keys = prefix("key");
  const skep_range tens = prefix("key001");
  const skep_range some = between("key0100", "key0200");
  skep_range from = some;
  skep_range unknown = some;
  uint64_t count = 0;
  skep_scanner* scanner;
  skep_item item;
  size_t items;
  put_many(store);
  from.hi = NULL;
  CHECK(scan_is(store, NULL, 0, SKEP_NO_LIMIT, NULL, 1, 0, 1) == MANY);
  CHECK(scan_is(store, &keys, 0, SKEP_NO_LIMIT, NULL, 64, 0, 1) == MANY);
  CHECK(scan_is(store, &keys, SKEP_SCAN_REVERSE, SKEP_NO_LIMIT, NULL, 7, MANY - 1, -1) == MANY);
  CHECK(scan_is(store, &some, SKEP_SCAN_KEYS_ONLY, SKEP_NO_LIMIT, NULL, 64, 100, 1) == 100);
  CHECK(scan_is(store, &from, 0, 300, NULL, 64, 100, 1) == 300);
  CHECK(scan_is(store, &tens, 0, SKEP_NO_LIMIT, NULL, 64, 10, 1) == 10);
  CHECK(scan_is(store, &some, 0, 0, NULL, 64, 0, 0) == 0);
  from.lo = "key0100x";
  from.lo_bytes = 8;
  CHECK(scan_is(store, &from, SKEP_SCAN_SEEK_FLOOR, 2, NULL, 64, 100, 1) == 2);

  OK(skep_count(store, 0, &some, NULL, &count));
  CHECK(count == 100);
  OK(skep_delete_range(store, 0, &some, 30, &count));
  CHECK(count == 30);
  OK(skep_delete_range(store, 0, &some, SKEP_NO_LIMIT, &count));
  CHECK(count == 70);
  OK(skep_count(store, 0, NULL, NULL, &count));
  CHECK(count == MANY - 100);

  unknown.flags = 1u << 31;
  CHECK(skep_count(store, 0, &unknown, NULL, &count) == SKEP_INVALID_ARGUMENT);
  CHECK(skep_delete_range(store, 0, &unknown, 1, NULL) == SKEP_INVALID_ARGUMENT);
  CHECK(skep_scan(store, 0, &unknown, 0, 1, NULL, &scanner) == SKEP_INVALID_ARGUMENT);
  CHECK(scanner == NULL);
  CHECK(skep_scan(store, 0, &some, 1u << 31, 1, NULL, &scanner) == SKEP_INVALID_ARGUMENT);
  OK(skep_scan(store, NO_KEYSPACE, NULL, 0, 1, NULL, &scanner));
  CHECK(skep_scanner_next(scanner, &item, 1, &items) == SKEP_INVALID_ARGUMENT && items == 0);
  skep_scanner_free(scanner);
  OK(skep_scan(store, HASH_KEYSPACE, NULL, 0, 1, NULL, &scanner));
  CHECK(skep_scanner_next(scanner, &item, 1, &items) == SKEP_NOT_SUPPORTED);
  skep_scanner_free(scanner);
}

static void test_snapshots(skep_store* store) {
  skep_snapshot* snapshot;
  skep_snapshot* later;
  skep_batch* batch = skep_batch_new(0);
  uint64_t count = 0;
  uint32_t a;
  put_many(store);
  OK(skep_take_snapshot(store, 0, &snapshot));
  empty(store);
  OK(skep_take_snapshot(store, 0, &later));
  CHECK(skep_snapshot_version(later) > skep_snapshot_version(snapshot));
  CHECK(scan_is(store, NULL, 0, SKEP_NO_LIMIT, snapshot, 64, 0, 1) == MANY);
  OK(skep_count(store, 0, NULL, snapshot, &count));
  CHECK(count == MANY);
  OK(skep_count(store, 0, NULL, later, &count));
  CHECK(count == 0);
  CHECK(skep_count(store, 2, NULL, snapshot, &count) == SKEP_INVALID_ARGUMENT);

  skep_batch_read_at(batch, snapshot);
  a = skep_batch_get(batch, S("key0007"), 0);
  OK(skep_execute(store, 0, batch));
  CHECK(verdict(batch, a) == SKEP_DONE);
  CHECK(is(outcome(batch, a)->value, outcome(batch, a)->value_bytes, "0007"));
  skep_batch_clear(batch);
  a = skep_batch_get(batch, S("key0007"), 0);
  OK(skep_execute(store, 0, batch));
  CHECK(verdict(batch, a) == SKEP_ABSENT);
  skep_batch_free(batch);
  skep_snapshot_free(snapshot);
  skep_snapshot_free(later);
  CHECK(skep_take_snapshot(store, NO_KEYSPACE, &snapshot) == SKEP_INVALID_ARGUMENT);
  CHECK(snapshot == NULL && skep_snapshot_version(NULL) == 0);
}

static void test_watches(skep_store* store) {
  skep_batch* batch = skep_batch_new(SKEP_ATOMIC);
  empty(store);
  OK(skep_put(store, 0, S("k"), S("1")));
  for (int disturbed = 0; disturbed <= 1; ++disturbed) {
    skep_watch* watch;
    OK(skep_watch_key(store, 0, S("k"), &watch));
    if (disturbed) OK(skep_put(store, 0, S("k"), S("2")));
    skep_batch_clear(batch);
    const uint32_t condition = skep_batch_require_unchanged(batch, S("k"), watch);
    const uint32_t put = skep_batch_put(batch, S("k"), S("3"), 0);
    OK(skep_execute(store, 0, batch));
    CHECK(skep_batch_applied(batch) == !disturbed);
    CHECK(verdict(batch, condition) == (disturbed ? SKEP_MISMATCH : SKEP_DONE));
    CHECK(verdict(batch, put) == (disturbed ? SKEP_NOT_APPLIED : SKEP_DONE));
    skep_watch_free(watch);
  }
  CHECK(value_is(store, S("k"), "2"));
  skep_watch* none;
  CHECK(skep_watch_key(store, NO_KEYSPACE, S("k"), &none) == SKEP_INVALID_ARGUMENT && none == NULL);
  skep_batch_free(batch);
}

static void test_empty_batch(skep_store* store) {
  skep_batch* batch = skep_batch_new(SKEP_ATOMIC);
  CHECK(skep_batch_applied(batch) == 0);
  OK(skep_execute(store, 0, batch));
  CHECK(skep_batch_applied(batch) == 1 && skep_batch_outcome(batch, 0) == NULL);
  skep_batch_clear(batch);
  CHECK(skep_batch_applied(batch) == 0);
  skep_batch_free(batch);
}

static void test_batch(skep_store* store) {
  skep_batch* batch = skep_batch_new(0);
  char volatile_key[] = "pear"; /* changed after it was added, without effect */
  uint32_t put, get, insert, update, removed, cas, length, expire, keep, previous;
  empty(store);
  OK(skep_put(store, 0, S("old"), S("value")));
  CHECK(skep_batch_outcome(batch, 0) == NULL && skep_batch_applied(batch) == 0);
  put = skep_batch_put(batch, volatile_key, 4, S("green"), 0);
  get = skep_batch_get(batch, volatile_key, 4, 0);
  memset(volatile_key, 'x', 4);
  insert = skep_batch_insert(batch, S("old"), S("new"), SKEP_RETURN_PREVIOUS);
  update = skep_batch_update(batch, S("absent"), S("new"), 0);
  cas = skep_batch_compare_and_set(batch, S("old"), S("other"), S("new"));
  length = skep_batch_get(batch, S("old"), SKEP_NO_VALUE);
  removed = skep_batch_delete(batch, S("old"), SKEP_RETURN_PREVIOUS);
  previous =
      skep_batch_put_until(batch, S("timed"), S("1"), now_ms() + 1000 * 1000, SKEP_RETURN_PREVIOUS);
  keep = skep_batch_put_until(batch, S("timed"), S("2"), SKEP_KEEP_DEADLINE, 0);
  expire = skep_batch_expire(batch, S("timed"), 0);
  CHECK(skep_batch_outcome(batch, put) == NULL);
  OK(skep_execute(store, 0, batch));
  CHECK(verdict(batch, put) == SKEP_DONE && !outcome(batch, put)->present);
  CHECK(is(outcome(batch, get)->value, outcome(batch, get)->value_bytes, "green"));
  CHECK(verdict(batch, insert) == SKEP_EXISTS);
  CHECK(is(outcome(batch, insert)->value, outcome(batch, insert)->value_bytes, "value"));
  CHECK(verdict(batch, update) == SKEP_ABSENT);
  CHECK(outcome(batch, update)->value != NULL && outcome(batch, update)->value_bytes == 0);
  CHECK(verdict(batch, cas) == SKEP_MISMATCH);
  CHECK(is(outcome(batch, cas)->value, outcome(batch, cas)->value_bytes, "value"));
  CHECK(outcome(batch, length)->integer == 5);
  CHECK(verdict(batch, removed) == SKEP_DONE && outcome(batch, removed)->present);
  CHECK(is(outcome(batch, removed)->value, outcome(batch, removed)->value_bytes, "value"));
  CHECK(verdict(batch, previous) == SKEP_DONE && outcome(batch, previous)->deadline_ms == 0);
  CHECK(verdict(batch, keep) == SKEP_DONE && outcome(batch, keep)->deadline_ms != 0);
  CHECK(verdict(batch, expire) == SKEP_DONE && outcome(batch, expire)->deadline_ms != 0);
  CHECK(skep_batch_outcome(batch, expire + 1) == NULL);
  CHECK(skep_batch_applied(batch) == 1);

  /* One slot is refused; the others are done. */
  skep_batch_clear(batch);
  CHECK(skep_batch_outcome(batch, 0) == NULL);
  char* long_key = (char*)calloc(1, 65537);
  put = skep_batch_put(batch, long_key, 65537, S(""), 0);
  get = skep_batch_get(batch, S("pear"), 0);
  OK(skep_execute(store, 0, batch));
  CHECK(verdict(batch, put) == SKEP_REFUSED && outcome(batch, put)->code == SKEP_TOO_LARGE);
  CHECK(strlen(outcome(batch, put)->text) > 0 && outcome(batch, put)->detail == 65536);
  CHECK(verdict(batch, get) == SKEP_DONE && outcome(batch, get)->code == SKEP_OK);
  CHECK(skep_put(store, 0, long_key, 65537, S("")) == SKEP_TOO_LARGE);
  CHECK(skep_error_detail() == 65536);
  free(long_key);
  skep_batch_free(batch);
}

static void test_batch_ranges(skep_store* store) {
  const skep_range some = between("key0100", "key0200");
  const skep_range none = prefix("nothing");
  const skep_range first = prefix("key000");
  skep_batch* batch = skep_batch_new(0);
  skep_item items[8];
  size_t read = 0;
  uint32_t scan, reverse, small, count, bounded, removed, all;
  put_many(store);
  scan = skep_batch_scan(batch, &some, 0, SKEP_NO_LIMIT);
  reverse = skep_batch_scan(batch, &some, SKEP_SCAN_REVERSE | SKEP_SCAN_KEYS_ONLY, 3);
  count = skep_batch_count(batch, &first, SKEP_NO_LIMIT);
  bounded = skep_batch_count(batch, NULL, 5);
  OK(skep_execute(store, 0, batch));
  CHECK(outcome(batch, scan)->item_count == 100 && !outcome(batch, scan)->more);
  while (read < 100) {
    const size_t got = skep_batch_items(batch, scan, read, items, 8);
    CHECK(got == (100 - read < 8 ? 100 - read : 8));
    for (size_t i = 0; i < got; ++i, ++read) {
      char key[16];
      snprintf(key, sizeof key, "key%04d", 100 + (int)read);
      CHECK(is(items[i].key, items[i].key_bytes, key));
      CHECK(is(items[i].value, items[i].value_bytes, key + 3));
    }
  }
  CHECK(skep_batch_items(batch, scan, 100, items, 8) == 0);
  CHECK(skep_batch_items(batch, 99, 0, items, 8) == 0);
  CHECK(outcome(batch, reverse)->item_count == 3 && outcome(batch, reverse)->more);
  CHECK(skep_batch_items(batch, reverse, 0, items, 8) == 3);
  CHECK(is(items[2].key, items[2].key_bytes, "key0197") && items[2].value_bytes == 0);
  CHECK(outcome(batch, count)->integer == 10);
  CHECK(outcome(batch, bounded)->integer == 5 && outcome(batch, bounded)->more);
  CHECK(is(outcome(batch, bounded)->value, outcome(batch, bounded)->value_bytes, "key0005"));

  skep_batch_clear(batch);
  skep_batch_set_scan_bytes_max(batch, 1);
  small = skep_batch_scan(batch, NULL, 0, SKEP_NO_LIMIT);
  OK(skep_execute(store, 0, batch));
  CHECK(outcome(batch, small)->item_count == 1 && outcome(batch, small)->more);

  skep_batch_clear(batch);
  removed = skep_batch_delete_range(batch, &some, 40);
  OK(skep_execute(store, 0, batch));
  CHECK(outcome(batch, removed)->integer == 40);
  skep_batch_clear(batch);
  all = skep_batch_delete_all(batch);
  OK(skep_execute(store, 0, batch));
  CHECK(outcome(batch, all)->integer == MANY - 40);
  skep_batch_free(batch);

  batch = skep_batch_new(SKEP_ATOMIC);
  const uint32_t is_empty = skep_batch_require_empty(batch, &none);
  OK(skep_execute(store, 0, batch));
  CHECK(verdict(batch, is_empty) == SKEP_DONE);
  skep_batch_free(batch);
}

static void test_atomic(skep_store* store) {
  const skep_range all = prefix("");
  skep_batch* batch = skep_batch_new(SKEP_ATOMIC);
  uint32_t slots[5];
  empty(store);
  OK(skep_put(store, 0, S("a"), S("1")));
  skep_batch_require_present(batch, S("a"));
  skep_batch_require_absent(batch, S("b"));
  skep_batch_require_value(batch, S("a"), S("1"));
  slots[0] = skep_batch_move(batch, S("a"), S("b"));
  OK(skep_execute(store, 0, batch));
  CHECK(skep_batch_applied(batch) == 1 && verdict(batch, slots[0]) == SKEP_DONE);
  CHECK(value_is(store, S("a"), NULL) && value_is(store, S("b"), "1"));

  /* Parts: each is applied or not by itself. */
  skep_batch_clear(batch);
  skep_batch_begin_part(batch);
  slots[0] = skep_batch_require_present(batch, S("a"));
  slots[1] = skep_batch_put(batch, S("c"), S("1"), 0);
  skep_batch_begin_part(batch);
  slots[2] = skep_batch_require_absent(batch, S("b"));
  skep_batch_begin_part(batch);
  slots[3] = skep_batch_require_value(batch, S("b"), S("1"));
  slots[4] = skep_batch_put(batch, S("d"), S("1"), 0);
  OK(skep_execute(store, 0, batch));
  CHECK(skep_batch_applied(batch) == 1);
  CHECK(verdict(batch, slots[0]) == SKEP_ABSENT && verdict(batch, slots[1]) == SKEP_NOT_APPLIED);
  CHECK(verdict(batch, slots[2]) == SKEP_EXISTS);
  CHECK(verdict(batch, slots[3]) == SKEP_DONE && verdict(batch, slots[4]) == SKEP_DONE);
  CHECK(value_is(store, S("c"), NULL) && value_is(store, S("d"), "1"));

  skep_batch_clear(batch);
  slots[0] = skep_batch_require_empty(batch, &all);
  slots[1] = skep_batch_delete(batch, S("d"), 0);
  OK(skep_execute(store, 0, batch));
  CHECK(skep_batch_applied(batch) == 0 && verdict(batch, slots[0]) == SKEP_MISMATCH);
  CHECK(is(outcome(batch, slots[0])->value, outcome(batch, slots[0])->value_bytes, "b"));
  CHECK(verdict(batch, slots[1]) == SKEP_NOT_APPLIED && value_is(store, S("d"), "1"));
  skep_batch_free(batch);
}

static void test_functions(skep_store* store) {
  const skep_function* add_decimal = skep_find_function(SKEP_PLAIN, "add-decimal", SKEP_I8);
  const skep_function* add = skep_find_function(SKEP_UPDATE, "add", SKEP_U32);
  const skep_function* sum = skep_find_function(SKEP_REDUCE, "sum", SKEP_U32);
  const skep_function* more = skep_find_function(SKEP_FILTER, "gt", SKEP_U32);
  const uint32_t each[3] = {1, 2, 3};
  const uint32_t ten = 10;
  const uint32_t eleven = 11;
  uint32_t slots[7];
  uint32_t elements[3];
  skep_batch* batch = skep_batch_new(0);
  CHECK(add_decimal != NULL && add != NULL && sum != NULL && more != NULL);
  CHECK(skep_find_function(SKEP_UPDATE, "nothing", SKEP_F64) == NULL);
  CHECK(skep_find_function(SKEP_PLAIN, "nothing", SKEP_I8) == NULL);
  empty(store);
  slots[0] = skep_batch_apply(batch, S("n"), add_decimal, S("5"));
  slots[1] = skep_batch_apply(batch, S("n"), add_decimal, S("-7"));
  slots[2] =
      skep_batch_update_elements(batch, S("v"), add, each, sizeof each, 1, 3, SKEP_RETURN_NOTHING);
  slots[3] =
      skep_batch_update_elements(batch, S("v"), add, &ten, sizeof ten, 0, 0, SKEP_RETURN_NEW);
  slots[4] = skep_batch_apply(batch, S("v"), sum, NULL, 0);
  slots[5] = skep_batch_apply(batch, S("v"), more, &eleven, sizeof eleven);
  slots[6] = skep_batch_apply(batch, S("v"), NULL, NULL, 0);
  OK(skep_execute(store, 0, batch));
  CHECK(outcome(batch, slots[0])->integer == 5 && outcome(batch, slots[1])->integer == -2);
  CHECK(outcome(batch, slots[2])->integer == 3 && outcome(batch, slots[2])->value_bytes == 0);
  CHECK(outcome(batch, slots[3])->value_bytes == sizeof elements);
  memcpy(elements, outcome(batch, slots[3])->value, sizeof elements);
  CHECK(elements[0] == 11 && elements[1] == 12 && elements[2] == 13);
  CHECK(outcome(batch, slots[4])->integer == 36);
  CHECK(outcome(batch, slots[5])->integer == 2 && outcome(batch, slots[5])->value_bytes == 8);
  CHECK(verdict(batch, slots[6]) == SKEP_REFUSED);
  CHECK(outcome(batch, slots[6])->code == SKEP_INVALID_ARGUMENT);
  skep_batch_free(batch);
}

static void test_walk(skep_store* store) {
  skep_batch* batch = skep_batch_new(0);
  uint64_t cursor = 0;
  int seen = 0;
  const uint32_t all = skep_batch_delete_all(batch);
  for (int i = 0; i < MANY; ++i) skep_batch_put(batch, &i, sizeof i, &i, sizeof i, 0);
  OK(skep_execute(store, HASH_KEYSPACE, batch));
  CHECK(verdict(batch, all) == SKEP_DONE);
  do {
    skep_item items[32];
    skep_batch_clear(batch);
    const uint32_t step = skep_batch_walk(batch, cursor, 0, 32);
    OK(skep_execute(store, HASH_KEYSPACE, batch));
    CHECK(verdict(batch, step) == SKEP_DONE);
    const size_t count = skep_batch_items(batch, step, 0, items, 32);
    for (size_t i = 0; i < count; ++i)
      CHECK(memcmp(items[i].key, items[i].value, sizeof(int)) == 0);
    seen += (int)count;
    cursor = (uint64_t)outcome(batch, step)->integer;
  } while (cursor != 0);
  CHECK(seen == MANY);
  skep_batch_free(batch);
}

static void test_begin(skep_store* store) {
  enum { BATCHES = 20 };
  skep_batch* batches[BATCHES];
  empty(store);
  for (int i = 0; i < BATCHES; ++i) {
    batches[i] = skep_batch_new(0);
    skep_batch_put(batches[i], &i, sizeof i, &i, sizeof i, 0);
    skep_batch_get(batches[i], &i, sizeof i, 0);
    OK(skep_begin(store, 0, batches[i]));
    CHECK(skep_batch_outcome(batches[i], 0) == NULL);
    CHECK(skep_execute(store, 0, batches[i]) == SKEP_INVALID_ARGUMENT);
    CHECK(skep_begin(store, 0, batches[i]) == SKEP_INVALID_ARGUMENT);
  }
  for (int i = BATCHES - 1; i >= 2; --i) {
    OK(skep_wait(batches[i]));
    CHECK(memcmp(outcome(batches[i], 1)->value, &i, sizeof i) == 0);
    CHECK(skep_wait(batches[i]) == SKEP_INVALID_ARGUMENT);
  }
  /* A begun batch need not be waited for. */
  skep_batch_clear(batches[1]);
  for (int i = 0; i < BATCHES; ++i) skep_batch_free(batches[i]);

  skep_batch* nowhere = skep_batch_new(0);
  skep_batch_get(nowhere, S("k"), 0);
  OK(skep_begin(store, NO_KEYSPACE, nowhere));
  CHECK(skep_wait(nowhere) == SKEP_INVALID_ARGUMENT && skep_batch_outcome(nowhere, 0) == NULL);
  /* A batch may not be filled while it is under way, and is refused afterwards. */
  OK(skep_begin(store, 0, nowhere));
  CHECK(skep_batch_get(nowhere, S("k"), 0) == SKEP_NO_SLOT);
  OK(skep_wait(nowhere));
  CHECK(skep_execute(store, 0, nowhere) == SKEP_INVALID_ARGUMENT);
  skep_batch_free(nowhere);
}

/* An impossible request makes its batch be refused until it is cleared. */
static void test_refused_requests(skep_store* store) {
  const uint32_t unknown = 1u << 31;
  skep_range range = between("a", "b");
  skep_batch* batch = skep_batch_new(0);
  CHECK(skep_batch_new(unknown) == NULL);
  range.flags = unknown;
#define REFUSES(add)                                               \
  do {                                                             \
    CHECK((add) == SKEP_NO_SLOT);                                  \
    CHECK(skep_execute(store, 0, batch) == SKEP_INVALID_ARGUMENT); \
    CHECK(skep_batch_outcome(batch, 0) == NULL);                   \
    skep_batch_clear(batch);                                       \
    OK(skep_execute(store, 0, batch));                             \
  } while (0)
  REFUSES(skep_batch_get(batch, S("k"), unknown));
  REFUSES(skep_batch_put(batch, S("k"), S("v"), unknown));
  REFUSES(skep_batch_put_until(batch, S("k"), S("v"), 0, unknown));
  REFUSES(skep_batch_insert(batch, S("k"), S("v"), unknown));
  REFUSES(skep_batch_update(batch, S("k"), S("v"), unknown));
  REFUSES(skep_batch_delete(batch, S("k"), unknown));
  REFUSES(skep_batch_scan(batch, NULL, unknown, 1));
  REFUSES(skep_batch_scan(batch, &range, 0, 1));
  REFUSES(skep_batch_walk(batch, 0, SKEP_SCAN_REVERSE, 1));
  REFUSES(skep_batch_count(batch, &range, 1));
  REFUSES(skep_batch_delete_range(batch, &range, 1));
  REFUSES(skep_batch_require_empty(batch, &range));
  REFUSES(skep_batch_require_unchanged(batch, S("k"), NULL));
  REFUSES(skep_batch_update_elements(batch, S("k"), NULL, NULL, 0, 0, 0, (skep_returns)3));
#undef REFUSES
  skep_batch_read_at(batch, NULL);
  CHECK(skep_execute(store, 0, batch) == SKEP_INVALID_ARGUMENT);
  skep_batch_free(batch);
}

static void test_null_handles(skep_store* store) {
  void* value;
  size_t bytes;
  int done;
  uint64_t number;
  skep_item item;
  skep_scanner* scanner;
  skep_snapshot* snapshot;
  skep_watch* watch;
#define REFUSED(call) CHECK((call) == SKEP_INVALID_ARGUMENT)
  REFUSED(skep_get(NULL, 0, S("k"), &value, &bytes));
  REFUSED(skep_put(NULL, 0, S("k"), S("v")));
  REFUSED(skep_put_until(NULL, 0, S("k"), S("v"), 0));
  REFUSED(skep_insert(NULL, 0, S("k"), S("v"), &done));
  REFUSED(skep_update(NULL, 0, S("k"), S("v"), &done));
  REFUSED(skep_delete(NULL, 0, S("k"), &done));
  REFUSED(skep_compare_and_set(NULL, 0, S("k"), S("v"), S("w"), &done));
  REFUSED(skep_expire(NULL, 0, S("k"), 0, &done));
  REFUSED(skep_deadline(NULL, 0, S("k"), &done, &number));
  REFUSED(skep_scan(NULL, 0, NULL, 0, 1, NULL, &scanner));
  REFUSED(skep_scanner_next(NULL, &item, 1, &bytes));
  REFUSED(skep_count(NULL, 0, NULL, NULL, &number));
  REFUSED(skep_delete_range(NULL, 0, NULL, 1, &number));
  REFUSED(skep_take_snapshot(NULL, 0, &snapshot));
  REFUSED(skep_watch_key(NULL, 0, S("k"), &watch));
  REFUSED(skep_save(NULL));
  REFUSED(skep_statistics(NULL, NULL, NULL));
  REFUSED(skep_execute(store, 0, NULL));
  REFUSED(skep_begin(store, 0, NULL));
  REFUSED(skep_wait(NULL));
  /* The keyspace does not exist. */
  REFUSED(skep_get(store, NO_KEYSPACE, S("k"), &value, &bytes));
  REFUSED(skep_put(store, NO_KEYSPACE, S("k"), S("v")));
  REFUSED(skep_insert(store, NO_KEYSPACE, S("k"), S("v"), &done));
  REFUSED(skep_expire(store, NO_KEYSPACE, S("k"), 0, &done));
  REFUSED(skep_deadline(store, NO_KEYSPACE, S("k"), &done, &number));
  REFUSED(skep_count(store, NO_KEYSPACE, NULL, NULL, &number));
  REFUSED(skep_delete_range(store, NO_KEYSPACE, NULL, 1, &number));
#undef REFUSED
  CHECK(strstr(skep_error_text(), "keyspace") != NULL);
  CHECK(skep_batch_get(NULL, S("k"), 0) == SKEP_NO_SLOT);
  CHECK(skep_batch_outcome(NULL, 0) == NULL && skep_batch_applied(NULL) == 0);
  CHECK(skep_batch_items(NULL, 0, 0, &item, 1) == 0);
  CHECK(skep_maintain(NULL) == 0);
  skep_batch_clear(NULL);
  skep_batch_free(NULL);
  skep_scanner_free(NULL);
  skep_snapshot_free(NULL);
  skep_watch_free(NULL);
  skep_free(NULL);
  skep_close(NULL);
}

struct numbers {
  uint64_t memory_bytes;
  uint64_t items;
  int details;
  int has_hash;
};

static void note(void* context, int64_t keyspace, const char* engine, const char* name,
                 uint64_t value) {
  struct numbers* seen = (struct numbers*)context;
  CHECK((keyspace == -1) == (*engine == '\0'));
  if (keyspace == -1 && strcmp(name, "memory_bytes") == 0) seen->memory_bytes = value;
  if (keyspace == 0 && strcmp(name, "items") == 0) seen->items = value;
  if (keyspace == 0) ++seen->details;
  if (keyspace == HASH_KEYSPACE && strcmp(engine, "hash") == 0) seen->has_hash = 1;
}

static void test_statistics(skep_store* store, int in_process) {
  struct numbers seen = {0, 0, 0, 0};
  empty(store);
  OK(skep_put(store, 0, S("a"), S("1")));
  OK(skep_put(store, 0, S("b"), S("1")));
  OK(skep_put(store, HASH_KEYSPACE, S("b"), S("1")));
  OK(skep_statistics(store, note, &seen));
  CHECK(seen.items == 2 && seen.details >= 6 && seen.has_hash);
  if (in_process) CHECK(seen.memory_bytes > 0);
}

static void test_names(void) {
  int engines = 0;
  for (const char* const* name = skep_engine_names(); *name != NULL; ++name) {
    engines += strcmp(*name, "btree") == 0 || strcmp(*name, "hash") == 0;
  }
  CHECK(engines == 2);
  CHECK(strcmp(skep_version(), SKEP_VERSION) == 0);
}

static void check_refused(skep_code code, skep_store** store, const char* text) {
  CHECK(code == SKEP_INVALID_ARGUMENT && *store == NULL);
  CHECK(strstr(skep_error_text(), text) != NULL);
}

static void test_options(void) {
  static const char* const wrong[][2] = {
      {"color=red", "color"},         {"keyspaces", "keyspaces"},
      {"keyspaces=", "keyspaces"},    {"keyspaces=-1", "keyspaces"},
      {"keyspaces=x", "keyspaces"},   {"keyspaces=4294967296", "keyspaces"},
      {"log_sync=often", "log_sync"}, {"btree.multi_version=1", "multi_version"},
      {"btree.layout=x", "layout"},   {"keyspace=hash", "keyspace"},
      {"engine=abacus", "engine"},    {"btree.node_bytes=7", ""},
  };
  const char* all[] = {"engine=btree",
                       "keyspaces=4",
                       "keyspace=1=hash",
                       "keyspace=2=model",
                       "memory_bytes_max=1000000000",
                       "snapshot_age_ms_max=1000",
                       "directory=",
                       "log_sync=everysec",
                       "log_segment_bytes=1048576",
                       "recovery_threads=1",
                       "btree.node_bytes=4096",
                       "btree.log_bytes=512",
                       "btree.layout=paper",
                       "btree.multi_version=yes",
                       "hash.inline_bytes_max=10",
                       "hash.fill_slots=5",
                       NULL};
  static const char* const all_connect[] = {"connections=2",      "timeout_ms=100",
                                            "wants_versions=yes", "remembers_writes=no",
                                            "syncs_writes=no",    NULL};
  skep_store* store;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    const char* options[2] = {wrong[i][0], NULL};
    check_refused(skep_open(options, &store), &store, wrong[i][1]);
  }
  OK(skep_open(all, &store));
  OK(skep_put(store, 3, S("k"), S("v")));
  CHECK(skep_put(store, 4, S("k"), S("v")) == SKEP_INVALID_ARGUMENT);
  CHECK(skep_save(store) == SKEP_NOT_SUPPORTED);
  skep_close(store);

  check_refused(skep_connect(NULL, NULL, &store), &store, "address");
  check_refused(skep_connect("nowhere", NULL, &store), &store, "");
  {
    const char* options[2] = {"password", NULL};
    check_refused(skep_connect("127.0.0.1:1", options, &store), &store, "password");
  }
  {
    /* A port that no other process can have. */
    struct sockaddr_in own;
    socklen_t own_bytes = sizeof own;
    char address[32];
    const int taken = socket(AF_INET, SOCK_STREAM, 0);
    memset(&own, 0, sizeof own);
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(taken, (struct sockaddr*)&own, sizeof own) == 0);
    CHECK(getsockname(taken, (struct sockaddr*)&own, &own_bytes) == 0);
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(own.sin_port));
    CHECK(skep_connect(address, all_connect, &store) == SKEP_UNAVAILABLE && store == NULL);
    close(taken);
  }
}

static void test_memory_limit(void) {
  const char* options[] = {"memory_bytes_max=67108864", NULL};
  char* value = (char*)calloc(1, 1 << 20);
  skep_store* store;
  skep_code code = SKEP_OK;
  int keys = 0;
  OK(skep_open(options, &store));
  for (; code == SKEP_OK && keys < 100; ++keys) {
    code = skep_put(store, 0, &keys, sizeof keys, value, 1 << 20);
  }
  CHECK(code == SKEP_OUT_OF_MEMORY && skep_error_detail() == 67108864);
  skep_close(store);
  free(value);
}

static void test_old_snapshot(void) {
  const char* options[] = {"snapshot_age_ms_max=1", NULL};
  const time_t begin = time(NULL);
  skep_store* store;
  skep_snapshot* snapshot;
  uint64_t count;
  OK(skep_open(options, &store));
  OK(skep_put(store, 0, S("k"), S("v")));
  OK(skep_take_snapshot(store, 0, &snapshot));
  while (skep_count(store, 0, NULL, snapshot, &count) == SKEP_OK) {
    CHECK(time(NULL) - begin < PATIENCE_S);
    skep_maintain(store);
  }
  CHECK(skep_count(store, 0, NULL, snapshot, &count) == SKEP_SNAPSHOT_TOO_OLD);
  skep_snapshot_free(snapshot);
  skep_close(store);
}

/* Flips a byte in the middle of a snapshot file of the directory. */
static void damage(const char* directory) {
  DIR* files = opendir(directory);
  struct dirent* file;
  int damaged = 0;
  CHECK(files != NULL);
  while ((file = readdir(files)) != NULL) {
    char path[1024];
    if (strncmp(file->d_name, "snapshot", 8) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", directory, file->d_name);
    FILE* f = fopen(path, "r+b");
    CHECK(f != NULL && fseek(f, 0, SEEK_END) == 0);
    const long middle = ftell(f) / 2;
    fseek(f, middle, SEEK_SET);
    const int byte = fgetc(f);
    fseek(f, middle, SEEK_SET);
    fputc(byte ^ 1, f);
    fclose(f);
    ++damaged;
  }
  closedir(files);
  CHECK(damaged == 1);
}

static void test_directory(const char* folder) {
  char option[600];
  char nowhere[640];
  const char* options[] = {option, "log_sync=always", "log_segment_bytes=1048576", NULL};
  const char* elsewhere[] = {nowhere, NULL};
  skep_store* store;
  skep_store* second;
  snprintf(option, sizeof option, "directory=%s/store", folder);
  snprintf(nowhere, sizeof nowhere, "directory=/dev/null/store");
  CHECK(skep_open(elsewhere, &store) == SKEP_IO && skep_error_detail() == ENOTDIR);
  OK(skep_open(options, &store));
  put_many(store);
  CHECK(skep_open(options, &second) == SKEP_UNAVAILABLE && second == NULL);
  OK(skep_save(store));
  OK(skep_put(store, 0, S("behind"), S("it")));
  skep_close(store);
  OK(skep_open(options, &store));
  CHECK(value_is(store, S("key0999"), "0999") && value_is(store, S("behind"), "it"));
  skep_close(store);
  damage(option + strlen("directory="));
  CHECK(skep_open(options, &store) == SKEP_CORRUPT && store == NULL);
  CHECK(strstr(skep_error_text(), "snapshot") != NULL);
}

static skep_store* open_store(const char* address) {
  const char* options[] = {"keyspace=1=hash", NULL};
  const char* connect_options[] = {"password=sesame", "wants_versions=yes", "connections=2", NULL};
  const char* wrong_password[] = {"password=mellon", NULL};
  skep_store* store;
  if (address == NULL) {
    OK(skep_open(options, &store));
  } else {
    CHECK(skep_connect(address, wrong_password, &store) == SKEP_INVALID_ARGUMENT);
    OK(skep_connect(address, connect_options, &store));
  }
  return store;
}

int main(int argc, char** argv) {
  CHECK(argc == 2 || argc == 3);
  skep_store* store = open_store(argc == 3 ? argv[2] : NULL);
  CHECK(store != NULL);
  test_names();
  test_points(store);
  test_deadlines(store);
  test_ranges(store);
  test_snapshots(store);
  test_watches(store);
  test_empty_batch(store);
  test_batch(store);
  test_batch_ranges(store);
  test_atomic(store);
  test_functions(store);
  test_walk(store);
  test_begin(store);
  test_refused_requests(store);
  test_null_handles(store);
  test_get_many(store);
  test_null_pointers(store);
  test_statistics(store, argc == 2);
  skep_close(store);
  if (argc == 2) {
    test_options();
    test_memory_limit();
    test_old_snapshot();
    test_directory(argv[1]);
  }
  printf("done\n");
  return 0;
}
