// wanted_faults_test.h: whether a test of faults tries every one, or as many as a test run has time
// for.
#pragma once

#include <cstdlib>
#include <string_view>

namespace skep {

// Returns whether SKEP_FAULTS (of the environment) is "all": `make faults` has time for it.
inline bool WantsAllFaults() {
  const char* const wanted = std::getenv("SKEP_FAULTS");
  return wanted != nullptr && std::string_view(wanted) == "all";
}

}  // namespace skep
