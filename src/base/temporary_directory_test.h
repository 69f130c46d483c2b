// temporary_directory_test.h: a directory in the machine's file system, for the duration of a test.
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
  std::string path_ = "/tmp/skep-XXXXXX";  // short: a unix socket's path has at most 107 bytes
};

}  // namespace skep
