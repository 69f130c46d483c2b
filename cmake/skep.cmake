# What every folder's CMakeLists.txt is written with.

add_library(skep_flags INTERFACE)
target_include_directories(skep_flags INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>)
target_compile_options(skep_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers
  -fno-omit-frame-pointer -march=x86-64-v2)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Anonymous-union designated initialisers are C++20; GCC 12 warns about them under -Wpedantic.
  target_compile_options(skep_flags INTERFACE -Wno-pedantic -Wno-interference-size)
endif()
if(SKEP_SANITIZE)
  target_compile_options(skep_flags INTERFACE -fsanitize=${SKEP_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(skep_flags INTERFACE -fsanitize=${SKEP_SANITIZE})
endif()

# skep_library(name SOURCES file... DEPS target...): one folder's code. Headers are found by search.
function(skep_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC skep_flags ${ARG_DEPS})
endfunction()

# skep_test(name SOURCES file... DEPS target... [LABELS label...] [TIMEOUT seconds]): a GoogleTest
# binary; each of its tests is a ctest test.
function(skep_test name)
  if(NOT SKEP_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE skep_flags ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${SKEP_TEST_PREFIX}" DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()

# skep_benchmark(name SOURCES file... DEPS target... SMOKE regex): a Google Benchmark binary; ctest
# runs the benchmarks the regex chooses, so that the file cannot rot.
function(skep_benchmark name)
  if(NOT SKEP_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "SMOKE" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE skep_flags ${ARG_DEPS} benchmark::benchmark_main)
  if(SKEP_TESTS)
    add_test(NAME ${SKEP_TEST_PREFIX}${name}
      COMMAND ${name} --benchmark_filter=${ARG_SMOKE} --benchmark_min_time=0.01)
    set_tests_properties(${SKEP_TEST_PREFIX}${name} PROPERTIES LABELS bench TIMEOUT 300)
  endif()
endfunction()

# skep_fuzzer(name SOURCES file... DEPS target... CORPUS folder): a libFuzzer binary. ctest runs it
# for SKEP_FUZZ_SECONDS on its committed corpus.
set(SKEP_FUZZ_SECONDS 5 CACHE STRING "How long ctest runs each fuzzer")
function(skep_fuzzer name)
  if(NOT SKEP_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE skep_flags ${ARG_DEPS})
  set(grown ${CMAKE_BINARY_DIR}/corpus/${name})
  file(MAKE_DIRECTORY ${grown})
  add_test(NAME ${SKEP_TEST_PREFIX}${name} COMMAND ${name} -max_total_time=${SKEP_FUZZ_SECONDS}
    -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 ${grown} ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  set_tests_properties(${SKEP_TEST_PREFIX}${name} PROPERTIES LABELS fuzz)
endfunction()
