# Writes OUTPUT, a header with the commit that is being built, if that has changed: figures are
# recorded with it. Run at every build, in SOURCE.
execute_process(COMMAND git describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${SOURCE}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#pragma once
namespace skep::bench {
inline constexpr const char* kCommit = "@commit@";
}
]] @ONLY)
