// c_api_test.h: the common parts of the files of the test of skep.h. C11, and C++.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "skep.h"

#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "%s:%d: %s\n(last error: %s)\n", __FILE__, __LINE__, #condition, \
              skep_error_text());                                                      \
      exit(EXIT_FAILURE);                                                              \
    }                                                                                  \
  } while (0)
#define OK(call) CHECK((call) == SKEP_OK)

/* A string as the two arguments that functions take. */
#define S(text) (text), (sizeof(text) - 1)

/* Of a store that has a keyspace 0 with an order. */
void test_get_many(skep_store* store);
void test_null_pointers(skep_store* store);
