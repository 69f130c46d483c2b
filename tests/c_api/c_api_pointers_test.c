/* Goal: every function of include/skep.h refuses a null pointer to bytes that have a length, or to
 *   the place of a result, and does nothing.
 * Method: each pointer of each function is null once. This is a part of c_api_test, and so is the
 *   test of skep_get_many below. */
#include <string.h>

#include "c_api_test.h"

/* Goal: values of many keys: present, absent and empty ones, and none if a key is refused. */
void test_get_many(skep_store* store) {
  static char long_key[64 * 1024 + 1];
  const skep_bytes keys[] = {{S("a")}, {S("absent")}, {S("a\0b")}, {S("empty")}, {NULL, 0}};
  const skep_bytes too_long[] = {{S("a")}, {long_key, sizeof long_key}};
  const skep_bytes unsound[] = {{S("a")}, {NULL, 1}};
  skep_bytes values[5];
  skep_scratch* scratch = skep_scratch_new();
  CHECK(scratch != NULL);
  OK(skep_delete_range(store, 0, NULL, SKEP_NO_LIMIT, NULL));
  OK(skep_put(store, 0, S("a"), S("first")));
  OK(skep_put(store, 0, S("a\0b"), S("\0")));
  OK(skep_put(store, 0, S("empty"), NULL, 0));
  for (int i = 0; i < 3; ++i) { /* the memory is used again */
    OK(skep_get_many(store, 0, keys, 5, values, scratch));
    CHECK(values[0].bytes == 5 && memcmp(values[0].at, "first", 5) == 0);
    CHECK(values[1].at == NULL && values[1].bytes == 0);
    CHECK(values[2].bytes == 1 && *(const char*)values[2].at == 0);
    CHECK(values[3].at != NULL && values[3].bytes == 0);
    CHECK(values[4].at == NULL);
  }
  CHECK(skep_get_many(store, 0, too_long, 2, values, scratch) == SKEP_TOO_LARGE);
  CHECK(values[0].at == NULL && values[1].at == NULL);
#define REFUSED(call) CHECK((call) == SKEP_INVALID_ARGUMENT)
  REFUSED(skep_get_many(store, 0, unsound, 2, values, scratch));
  REFUSED(skep_get_many(store, 0, NULL, 2, values, scratch));
  REFUSED(skep_get_many(store, 0, keys, 2, NULL, scratch));
  REFUSED(skep_get_many(store, 0, keys, 2, values, NULL));
  REFUSED(skep_get_many(NULL, 0, keys, 2, values, scratch));
  REFUSED(skep_get_many(store, 99, keys, 2, values, scratch));
#undef REFUSED
  OK(skep_get_many(store, 0, NULL, 0, NULL, scratch));
  skep_scratch_free(scratch);
  skep_scratch_free(NULL);
  OK(skep_delete_range(store, 0, NULL, SKEP_NO_LIMIT, NULL));
}

void test_null_pointers(skep_store* store) {
  void* value;
  size_t bytes;
  int done;
  uint64_t number;
  skep_item item;
  skep_scanner* scanner;
  const skep_range no_lo = {NULL, 1, NULL, 0, 0};
  const skep_range no_prefix = {NULL, 1, NULL, 0, SKEP_RANGE_PREFIX};
  const skep_range ranges[] = {no_lo, no_prefix};
  OK(skep_delete_range(store, 0, NULL, SKEP_NO_LIMIT, NULL));
#define REFUSED(call) CHECK((call) == SKEP_INVALID_ARGUMENT)
  REFUSED(skep_get(store, 0, NULL, 1, &value, &bytes));
  REFUSED(skep_put(store, 0, NULL, 1, S("v")));
  REFUSED(skep_put(store, 0, S("k"), NULL, 1));
  REFUSED(skep_put_until(store, 0, NULL, 1, S("v"), 0));
  REFUSED(skep_put_until(store, 0, S("k"), NULL, 1, 0));
  REFUSED(skep_insert(store, 0, NULL, 1, S("v"), &done));
  REFUSED(skep_insert(store, 0, S("k"), NULL, 1, &done));
  REFUSED(skep_update(store, 0, NULL, 1, S("v"), &done));
  REFUSED(skep_update(store, 0, S("k"), NULL, 1, &done));
  REFUSED(skep_delete(store, 0, NULL, 1, &done));
  REFUSED(skep_compare_and_set(store, 0, NULL, 1, S("v"), S("w"), &done));
  REFUSED(skep_compare_and_set(store, 0, S("k"), NULL, 1, S("w"), &done));
  REFUSED(skep_compare_and_set(store, 0, S("k"), S("v"), NULL, 1, &done));
  REFUSED(skep_expire(store, 0, NULL, 1, 0, &done));
  REFUSED(skep_deadline(store, 0, NULL, 1, &done, &number));
  for (int i = 0; i < 2; ++i) {
    REFUSED(skep_scan(store, 0, &ranges[i], 0, 1, NULL, &scanner));
    REFUSED(skep_count(store, 0, &ranges[i], NULL, &number));
    REFUSED(skep_delete_range(store, 0, &ranges[i], 1, &number));
  }
  /* Pointers to results. */
  REFUSED(skep_open(NULL, NULL));
  REFUSED(skep_connect("127.0.0.1:1", NULL, NULL));
  REFUSED(skep_get(store, 0, S("k"), NULL, &bytes));
  REFUSED(skep_get(store, 0, S("k"), &value, NULL));
  REFUSED(skep_deadline(store, 0, S("k"), NULL, &number));
  REFUSED(skep_deadline(store, 0, S("k"), &done, NULL));
  REFUSED(skep_scan(store, 0, NULL, 0, 1, NULL, NULL));
  REFUSED(skep_count(store, 0, NULL, NULL, NULL));
  REFUSED(skep_take_snapshot(store, 0, NULL));
  REFUSED(skep_watch_key(store, 0, S("k"), NULL));
  REFUSED(skep_statistics(store, NULL, NULL));
  OK(skep_scan(store, 0, NULL, 0, 1, NULL, &scanner));
  REFUSED(skep_scanner_next(scanner, &item, 1, NULL));
  REFUSED(skep_scanner_next(scanner, NULL, 1, &bytes));
  skep_scanner_free(scanner);
#undef REFUSED
  /* A batch with an impossible request is refused as a whole. */
  const skep_function* append = skep_find_function(SKEP_PLAIN, "append", SKEP_I8);
  for (int i = 0;; ++i) {
    skep_batch* batch = skep_batch_new(SKEP_ATOMIC);
    uint32_t slot = 0;
    switch (i) {
      case 0:
        slot = skep_batch_get(batch, NULL, 1, 0);
        break;
      case 1:
        slot = skep_batch_put(batch, NULL, 1, S("v"), 0);
        break;
      case 2:
        slot = skep_batch_put(batch, S("k"), NULL, 1, 0);
        break;
      case 3:
        slot = skep_batch_put_until(batch, S("k"), NULL, 1, 0, 0);
        break;
      case 4:
        slot = skep_batch_insert(batch, S("k"), NULL, 1, 0);
        break;
      case 5:
        slot = skep_batch_update(batch, S("k"), NULL, 1, 0);
        break;
      case 6:
        slot = skep_batch_delete(batch, NULL, 1, 0);
        break;
      case 7:
        slot = skep_batch_compare_and_set(batch, S("k"), NULL, 1, S("v"));
        break;
      case 8:
        slot = skep_batch_compare_and_set(batch, S("k"), S("v"), NULL, 1);
        break;
      case 9:
        slot = skep_batch_expire(batch, NULL, 1, 0);
        break;
      case 10:
        slot = skep_batch_move(batch, S("k"), NULL, 1);
        break;
      case 11:
        slot = skep_batch_apply(batch, S("k"), append, NULL, 1);
        break;
      case 12:
        slot = skep_batch_apply(batch, NULL, 1, append, S("v"));
        break;
      case 13:
        slot =
            skep_batch_update_elements(batch, S("k"), append, NULL, 1, 0, 0, SKEP_RETURN_NOTHING);
        break;
      case 14:
        slot = skep_batch_scan(batch, &no_lo, 0, 1);
        break;
      case 15:
        slot = skep_batch_count(batch, &no_prefix, 1);
        break;
      case 16:
        slot = skep_batch_delete_range(batch, &no_prefix, 1);
        break;
      case 17:
        slot = skep_batch_require_empty(batch, &no_lo);
        break;
      case 18:
        slot = skep_batch_require_absent(batch, NULL, 1);
        break;
      case 19:
        slot = skep_batch_require_present(batch, NULL, 1);
        break;
      case 20:
        slot = skep_batch_require_value(batch, S("k"), NULL, 1);
        break;
      case 21:
        slot = skep_batch_require_unchanged(batch, S("k"), NULL);
        break;
      default:
        skep_batch_free(batch);
        break;
    }
    if (i == 22) break;
    CHECK(slot == SKEP_NO_SLOT);
    skep_batch_put(batch, S("other"), S("v"), 0);
    CHECK(skep_execute(store, 0, batch) == SKEP_INVALID_ARGUMENT);
    skep_batch_free(batch);
  }
  OK(skep_count(store, 0, NULL, NULL, &number));
  CHECK(number == 0);
  /* The empty string may be a null pointer. */
  OK(skep_put(store, 0, S("k"), NULL, 0));
  OK(skep_get(store, 0, S("k"), &value, &bytes));
  CHECK(value != NULL && bytes == 0);
  skep_free(value);
  /* Functions that do not exist. */
  CHECK(skep_find_function(SKEP_PLAIN, NULL, SKEP_I8) == NULL);
  CHECK(skep_find_function((skep_function_kind)4, "add", SKEP_I8) == NULL);
  CHECK(skep_find_function((skep_function_kind)256, "append", SKEP_I8) == NULL);
  CHECK(skep_find_function(SKEP_UPDATE, "add", (skep_element)10) == NULL);
  CHECK(skep_find_function(SKEP_UPDATE, "add", (skep_element)256) == NULL);
}
