// unused_options.h: options of Redis that CONFIG GET and SET take, and that change nothing here:
// scripts and test suites set them before they begin.
//
// A value is checked as Redis checks it, and kept until the server ends: CONFIG REWRITE does not
// write it, and the command line and the file of options do not take it.
//
// Thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "skep/status.h"

namespace skep {

struct UnusedOption {
  enum class Kind { kYesNo, kNumber, kBytes, kWords };

  std::string_view name;
  std::string_view value;  // before anybody sets it
  Kind kind = Kind::kNumber;
};

std::span<const UnusedOption> AllUnusedOptions();
// Upper and lower case are the same. Null if there is no such option.
const UnusedOption* FindUnusedOption(std::string_view name);
// kOk if the option takes the value; kInvalidArgument with Redis's text.
Status CheckUnusedOption(const UnusedOption& option, std::string_view value);

// Their values.
class UnusedOptions {
 public:
  UnusedOptions();

  // Requires that CheckUnusedOption has accepted the value.
  void Set(const UnusedOption& option, std::string_view value);
  std::string Get(const UnusedOption& option) const;

 private:
  mutable Mutex mutex_;
  std::vector<std::string> values_ SKEP_GUARDED_BY(mutex_);  // as AllUnusedOptions
};

}  // namespace skep
