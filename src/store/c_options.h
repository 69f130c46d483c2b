// c_options.h: options as skep.h takes them, strings "name=value".
#pragma once

#include <string>

#include "skep/client.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep::c_api {

// Reads options. The array ends with a null pointer; a null array has none.
//   kInvalidArgument  no such option, or it does not take the value; *problem names it
Result<Options> ParseOpenOptions(const char* const* options, std::string* problem);
Result<ConnectOptions> ParseConnectOptions(const char* const* options, std::string* problem);

}  // namespace skep::c_api
