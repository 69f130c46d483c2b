// toml_config.h: the file of a command line (--config) as TOML: keys at the top are options of the
// program, tables those of its subcommands.
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <vector>

namespace skep {

// Only reads.
class TomlConfig final : public CLI::Config {
 public:
  // Throws CLI::ParseError: the file is not TOML, or has a value of a type that no option takes.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return {}; }
};

}  // namespace skep
