// temporary_directory_test.h: a directory of the machine, for as long as a test needs it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/check.h"

namespace skep {

class TemporaryDirectory {
 public:
  TemporaryDirectory() { SKEP_CHECK(mkdtemp(path_.data()) != nullptr); }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/skep-XXXXXX";  // short: a socket's path has 107 bytes
};

}  // namespace skep
