// c_options.h: options as skep.h takes them, strings "name=value".
#pragma once

#include <string>

#include "skep/client.h"
#include "skep/options.h"
#include "skep/status.h"

namespace skep::c_api {

// `options` ends with a null pointer, or is one.
//   kInvalidArgument  no such option, or a value it does not take; *problem then names it
Result<Options> ParseOpenOptions(const char* const* options, std::string* problem);
Result<ConnectOptions> ParseConnectOptions(const char* const* options, std::string* problem);

}  // namespace skep::c_api
