// tour.c: the library from C: points, a batch, a scan. tour.py does the same in Python; both print
// tour.expected. An argument is the address of a server; without one the store is in this process.

#include <stdio.h>
#include <stdlib.h>

#include "skep.h"

// An example ends at the first failure; a program would look at the code.
static void must(skep_code code) {
  if (code == SKEP_OK) return;
  fprintf(stderr, "%s\n", skep_error_text());
  exit(EXIT_FAILURE);
}

static void points(skep_store* store) {
  void* value;
  size_t bytes;
  int swapped;
  must(skep_put(store, 0, "fruit:apple", 11, "red", 3));
  must(skep_compare_and_set(store, 0, "fruit:apple", 11, "red", 3, "yellow", 6, &swapped));
  must(skep_get(store, 0, "fruit:apple", 11, &value, &bytes));
  printf("swapped %d, apple is %.*s\n", swapped, (int)bytes, (const char*)value);
  skep_free(value);
}

static void batch(skep_store* store) {
  skep_batch* work = skep_batch_new(SKEP_ATOMIC);
  skep_batch_require_absent(work, "fruit:pear", 10);
  skep_batch_put(work, "fruit:pear", 10, "green", 5, 0);
  const uint32_t visits = skep_batch_apply(
      work, "visits", 6, skep_find_function(SKEP_PLAIN, "add-decimal", SKEP_I64), "3", 1);
  must(skep_execute(store, 0, work));
  printf("applied %d, visits %lld\n", skep_batch_applied(work),
         (long long)skep_batch_outcome(work, visits)->integer);
  skep_batch_free(work);
}

static void scan(skep_store* store) {
  const skep_range fruit = {.lo = "fruit:", .lo_bytes = 6, .flags = SKEP_RANGE_PREFIX};
  skep_scanner* scanner;
  skep_item items[16];
  size_t count;
  must(skep_scan(store, 0, &fruit, 0, SKEP_NO_LIMIT, NULL, &scanner));
  do {
    must(skep_scanner_next(scanner, items, 16, &count));
    for (size_t i = 0; i < count; ++i) {
      printf("%.*s = %.*s\n", (int)items[i].key_bytes, (const char*)items[i].key,
             (int)items[i].value_bytes, (const char*)items[i].value);
    }
  } while (count > 0);
  skep_scanner_free(scanner);
}

int main(int argc, char** argv) {
  skep_store* store;
  must(argc > 1 ? skep_connect(argv[1], NULL, &store) : skep_open(NULL, &store));
  points(store);
  batch(store);
  scan(store);
  skep_close(store);
  return 0;
}
