# What every folder's CMakeLists.txt is written with.

# Paths are kept relative, so that a clone in another folder finds what this one has compiled.
find_program(SKEP_CCACHE ccache)
if(SKEP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
    CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${SKEP_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()

# Links in a fifth of the time that the system's linker takes.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=mold SKEP_LINKS_WITH_MOLD)
if(SKEP_LINKS_WITH_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# GCC 12's ThreadSanitizer dies at random where addresses have more than 28 random bits. Binaries
# that CMake or ctest starts then run without randomisation, if that is allowed here.
if(SKEP_SANITIZE MATCHES "thread" AND EXISTS /proc/sys/vm/mmap_rnd_bits)
  file(READ /proc/sys/vm/mmap_rnd_bits random_bits)
  execute_process(COMMAND setarch -R true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
  if(random_bits GREATER 28 AND NOT refused)
    set(CMAKE_CROSSCOMPILING_EMULATOR setarch -R)
  elseif(random_bits GREATER 28)
    message(WARNING "ThreadSanitizer may not start here: lower vm.mmap_rnd_bits to 28")
  endif()
endif()

add_library(skep_flags INTERFACE)
target_include_directories(skep_flags INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>)
target_compile_options(skep_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers
  -fno-omit-frame-pointer)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(skep_flags INTERFACE -march=x86-64-v2)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Anonymous-union designated initialisers are C++20; GCC 12 warns about them under -Wpedantic.
  target_compile_options(skep_flags INTERFACE -Wno-pedantic -Wno-interference-size)
endif()
if(SKEP_SANITIZE)
  target_compile_options(skep_flags INTERFACE -fsanitize=${SKEP_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(skep_flags INTERFACE -fsanitize=${SKEP_SANITIZE})
endif()
if(SKEP_SANITIZE MATCHES "undefined" AND NOT SKEP_FUZZERS)
  # AddressSanitizer finds the first three too, and the others have never found anything: a third of
  # the compiler's time. The fuzzers have them.
  target_compile_options(skep_flags INTERFACE
    -fno-sanitize=null,vptr,object-size,alignment,pointer-overflow)
endif()
if(SKEP_FUZZERS)
  # The fuzzer steers by the coverage of everything, not only of its own file.
  target_compile_options(skep_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# skep_read_once(name headers...): a target whose headers are read by the compiler once a build, for
# the targets that skep_reads_from(it). Not where every file is to be read alone.
function(skep_read_once name)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  # Without it ccache keeps nothing that uses such headers.
  target_compile_options(${name} PRIVATE -fpch-preprocess)
endfunction()
function(skep_reads_from name headers)
  if(TARGET ${headers})
    target_precompile_headers(${name} REUSE_FROM ${headers})
    target_compile_options(${name} PRIVATE -fpch-preprocess)
  endif()
endfunction()

if(CMAKE_UNITY_BUILD)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers.cc CONTENT "")
  add_library(skep_headers STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/headers.cc)
  target_link_libraries(skep_headers PRIVATE skep_flags)
  skep_read_once(skep_headers <algorithm> <array> <atomic> <bit> <chrono> <cstdint> <cstring> <deque>
    <expected> <functional> <map> <memory> <mutex> <optional> <ranges> <set> <span> <string>
    <string_view> <thread> <utility> <vector>)
endif()

# skep_library(name [HOT] SOURCES file... [APART file...] DEPS target...): one folder's code. Headers
# are found by search. Several files are compiled as one (CMAKE_UNITY_BUILD), which reads their
# headers once; not those APART, whose local names others have too, or which take long as they are;
# and in release not those of a HOT one, where it moves what the compiler makes inline (GETs of the
# tree: 1.8 instead of 2.25 M a second, medians of five).
function(skep_library name)
  cmake_parse_arguments(ARG "HOT" "" "SOURCES;APART;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES} ${ARG_APART})
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(ARG_HOT AND CMAKE_BUILD_TYPE STREQUAL "Release")
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  target_link_libraries(${name} PUBLIC skep_flags ${ARG_DEPS})
  skep_reads_from(${name} skep_headers)
endfunction()

# skep_bpf_program(loader macro source header...): the source is compiled for BPF, and the loader,
# a file of a library, finds the path of the object in the macro.
function(skep_bpf_program loader macro source)
  cmake_path(GET source STEM LAST_ONLY name)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${SKEP_BPF_CLANG} -target bpf -mcpu=v3 -O2 -g -ffreestanding -Wall -Wextra -Werror
      -I${CMAKE_SOURCE_DIR}/src -I/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
      -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
    DEPENDS ${source} ${ARGN}
    COMMENT "Compiling ${source} for BPF")
  set_source_files_properties(${loader} PROPERTIES
    OBJECT_DEPENDS ${object} COMPILE_DEFINITIONS "${macro}=\"${object}\"")
endfunction()

# skep_module(name file): libskep-<name>.so, which base/module.h loads, of skep_<name>. It shows what
# cmake/<name>.map says. In the build tree it lies where it is installed, as the programs see it.
function(skep_module name file)
  set(symbols ${PROJECT_SOURCE_DIR}/cmake/${name}.map)
  add_library(skep_${name}_module SHARED ${file})
  target_link_libraries(skep_${name}_module PRIVATE skep_${name})
  set_target_properties(skep_${name}_module PROPERTIES
    OUTPUT_NAME skep-${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}
    VERSION ${PROJECT_VERSION} SOVERSION ${SKEP_SO_VERSION} LINK_DEPENDS ${symbols})
  target_link_options(skep_${name}_module PRIVATE LINKER:--version-script=${symbols})
  install(TARGETS skep_${name}_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# skep_parses_command_line(file...): CLI11 costs the compiler as much as ten other files, and runs
# once. (A file with options of its own is compiled alone.)
function(skep_parses_command_line)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O1)
  endif()
endfunction()

# Labels say what a test is for, and a preset runs the tests of the labels in SKEP_RUNS, each of them
# where it finds something (docs/testing.md has the table and what it was made from):
#   unit     the rule, of tests without a label: dev and tsan
#   single   one thread and no memory tricks: ThreadSanitizer has nothing to find. dev
#   threads  real threads, whose schedules change with the optimiser: release and tsan
#   linearizability  histories of threads and clients: release and tsan
#   e2e      real clients against a real process: dev
#   slow     what only full speed, real memory or the installed package shows: release
#   bench    a benchmark's tests and its smoke run: release, where benchmarks are built
#   fuzz     a fuzzer on its committed corpus: dev; `make fuzz` goes on from there
# A test that a preset does not run is still built there if it is asked for by name.
set(SKEP_RUNS unit single threads linearizability e2e slow bench fuzz CACHE STRING
  "Tests with one of these labels are built and run")

# skep_runs_labels(result label...): whether this build runs tests with these labels. Without a
# label it is asked for `unit`.
function(skep_runs_labels result)
  set(labels ${ARGN})
  if(NOT labels)
    set(labels unit)
  endif()
  set(${result} FALSE PARENT_SCOPE)
  foreach(label IN LISTS labels)
    if(label IN_LIST SKEP_RUNS)
      set(${result} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Tests are compiled once and run once: their own code may be optimised less than what they test,
# and in dev it is not asked about its alignment, a quarter of its time.
set(SKEP_TEST_FLAGS "" CACHE STRING "Compiler options of the tests, after those of the build type")
add_library(skep_test_flags INTERFACE)
target_compile_options(skep_test_flags INTERFACE ${SKEP_TEST_FLAGS})

# Nearly every test includes these headers. Those that libraries read once are of no use here, since
# the code of a program is placed in memory otherwise.
if(SKEP_TESTS AND CMAKE_UNITY_BUILD)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cc CONTENT "int main() {}\n")
  add_executable(skep_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/test_headers.cc)
  target_link_libraries(skep_test_headers PRIVATE skep_flags skep_test_flags GTest::gmock)
  skep_read_once(skep_test_headers <gmock/gmock.h> <gtest/gtest.h> <algorithm> <chrono> <filesystem>
    <functional> <map> <memory> <random> <string> <thread> <vector>)
endif()

# All that the tests of this build need which are programs of GoogleTest.
add_custom_target(skep_tests)

# Tests of more than half a minute begin first: one that began last would leave a core with nothing
# to do. ctest knows no times in a fresh clone.
set(SKEP_LONG_TESTS engine_conformance_test remote_conformance_test tree_interleavings_test
  tree_memory_test tree_directory_test tree_regression_test tree_random_test tree_bulk_load_test
  layout_test hash_threads_test hashleaf_engine_test linearizability_test
  remote_linearizability_test one_sided_test durable_snapshot_test durable_log_threads_test
  durable_log_damage_test pool_engine_test pool_replicas_test skep_pool_cleaner_test
  skep_pool_transfer_test coordinator_zookeeper_test pool_test ranges_test cli_test cli_packed_test
  tools_test crash_test client_limits_test large_collections_test long_collections_test
  differential_test disk_fault_test collections_test log_merger_test pieces_threads_test
  collections_threads_test)

# skep_test(name SOURCES file... [APART file...] DEPS target... [LABELS label...]
#           [TIMEOUT seconds] [ENVIRONMENT variable=value] [TSAN_FILTER filter]): a GoogleTest
# binary; each of its tests is a ctest test. With a sanitizer, where to start a process takes longer
# than most tests, the whole binary is one. TSAN_FILTER: the tests that ThreadSanitizer runs, as
# GTEST_FILTER has it; it leaves out what has no threads, and sizes and layouts that share them.
function(skep_test name)
  if(NOT SKEP_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT;ENVIRONMENT;TSAN_FILTER" "SOURCES;APART;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
    # Some of these take two minutes alone on a processor, and share it with five other programs.
    if(name IN_LIST SKEP_LONG_TESTS)
      set(ARG_TIMEOUT 1500)
    endif()
  endif()
  skep_runs_labels(wanted ${ARG_LABELS})
  set(on_demand EXCLUDE_FROM_ALL)
  if(wanted)
    set(on_demand)
  endif()
  add_executable(${name} ${on_demand} ${ARG_SOURCES} ${ARG_APART})
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(${name} PRIVATE skep_flags ${ARG_DEPS} skep_test_flags GTest::gmock
    GTest::gtest_main)
  skep_reads_from(${name} skep_test_headers)
  if(NOT wanted)
    return()
  endif()
  add_dependencies(skep_tests ${name})
  include(GoogleTest)
  # A property without a value would take the next one's name for it.
  set(properties TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  if(name IN_LIST SKEP_LONG_TESTS)
    list(APPEND properties COST 1000)
  endif()
  set(environment ${ARG_ENVIRONMENT})
  if(ARG_TSAN_FILTER AND SKEP_SANITIZE MATCHES "thread")
    list(APPEND environment "GTEST_FILTER=${ARG_TSAN_FILTER}")
  endif()
  if(environment)
    string(REPLACE ";" "\\;" environment "${environment}")
    list(APPEND properties ENVIRONMENT "${environment}")
  endif()
  if(SKEP_SANITIZE)
    add_test(NAME ${SKEP_TEST_PREFIX}${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${SKEP_TEST_PREFIX}${name} PROPERTIES ${properties})
  else()
    gtest_discover_tests(${name} TEST_PREFIX "${SKEP_TEST_PREFIX}" DISCOVERY_TIMEOUT 60
      PROPERTIES ${properties})
  endif()
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

# skep_fuzzer(name SOURCES file... DEPS target... CORPUS folder [DICT file]): a libFuzzer binary in the
# preset `fuzz`, built by the target skep_fuzzers, which ctest runs for SKEP_FUZZ_SECONDS from its
# committed corpus on. Where AddressSanitizer is there without libFuzzer, the same source with a main
# of ours (base/corpus_replay.cc) is a test that runs the corpus once.
set(SKEP_FUZZ_SECONDS 5 CACHE STRING "How long ctest runs each fuzzer")
if(SKEP_FUZZERS)
  add_custom_target(skep_fuzzers)
endif()
function(skep_fuzzer name)
  skep_runs_labels(wanted fuzz)
  if(NOT SKEP_FUZZERS AND NOT (SKEP_TESTS AND SKEP_SANITIZE MATCHES "address" AND wanted))
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS;DICT" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE skep_flags ${ARG_DEPS})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  if(NOT SKEP_FUZZERS)
    target_link_libraries(${name} PRIVATE skep_test_flags skep_corpus_replay)
    add_test(NAME ${SKEP_TEST_PREFIX}${name} COMMAND ${name} ${corpus})
    set_tests_properties(${SKEP_TEST_PREFIX}${name} PROPERTIES LABELS fuzz TIMEOUT 300)
    return()
  endif()
  add_dependencies(skep_fuzzers ${name})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set(grown ${CMAKE_BINARY_DIR}/corpus/${name})
  set(crashes ${CMAKE_BINARY_DIR}/crashes)
  file(MAKE_DIRECTORY ${grown} ${crashes})
  math(EXPR timeout "${SKEP_FUZZ_SECONDS} + 120")
  set(dictionary)
  if(ARG_DICT)
    set(dictionary -dict=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_DICT})
  endif()
  add_test(NAME ${SKEP_TEST_PREFIX}${name} COMMAND ${name} -max_total_time=${SKEP_FUZZ_SECONDS}
    -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=${crashes}/${name}-
    ${dictionary} ${grown} ${corpus})
  set_tests_properties(${SKEP_TEST_PREFIX}${name} PROPERTIES LABELS fuzz TIMEOUT ${timeout})
endfunction()
