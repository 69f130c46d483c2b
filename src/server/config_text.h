// config_text.h: texts of configuration files: a new one, and a redis.conf translated.
// config_file.h reads such files and brings them up to date.
#pragma once

#include <string>
#include <string_view>

#include "server/options.h"

namespace skep {

// A TOML file with every option: its help, and its value, in a comment if that is the default.
// LoadConfig() of the file gives these options.
std::string PrintConfig(const ServerOptions& options);

// A value that OptionInfo::get printed, as a value of a TOML file.
std::string TomlValue(const OptionInfo& option, std::string_view value);

// A redis.conf as a TOML file. Directives that have a meaning here are translated; the others are
// listed at the top, each with its line number and the reason, and stay as comments.
std::string ConvertRedisConfig(std::string_view text);

// Whether a line of a file that is not TOML looks like one of a redis.conf: a word, a space and a
// value, as "port 6379".
bool LooksLikeRedisConfig(std::string_view line);

}  // namespace skep
