// file_worlds_test.h: a directory on the machine's disk, and one on a simulated disk, for typed
// tests that must pass on both:
//
//   TYPED_TEST_SUITE(SomeTest, FileWorlds, FileWorldName);
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <string>
#include <type_traits>

#include "base/check.h"
#include "base/file.h"
#include "base/temporary_directory_test.h"
#include "sim/sim_file.h"

namespace skep {

struct PosixFiles {
  FileSystem& files() { return PosixFileSystem(); }
  TemporaryDirectory temporary;
  std::string directory = temporary.path();
};

struct SimulatedFiles {
  SimulatedFiles() {
    std::cout << "the disk's seed: " << seed << "\n";
    SKEP_CHECK(disk.CreateDirectory(directory).ok());
  }
  FileSystem& files() { return disk; }
  uint64_t seed = std::random_device{}();
  Trace trace;
  SimFileSystem disk{seed, trace};
  std::string directory = "data";
};

using FileWorlds = testing::Types<PosixFiles, SimulatedFiles>;

class FileWorldName {
 public:
  template <typename World>
  static std::string GetName(int) {
    return std::is_same_v<World, PosixFiles> ? "Posix" : "Simulated";
  }
};

}  // namespace skep
