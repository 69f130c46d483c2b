// log_sync_name.h: the names of the policies of a log, as options have them.
#pragma once

#include <optional>
#include <string_view>

#include "skep/options.h"

namespace skep::durable {

// "always", "everysec" or "no"; nothing: another text.
inline std::optional<LogSync> LogSyncOf(std::string_view name) {
  if (name == "always") return LogSync::kAlways;
  if (name == "everysec") return LogSync::kEverySecond;
  if (name == "no") return LogSync::kNo;
  return std::nullopt;
}

}  // namespace skep::durable
