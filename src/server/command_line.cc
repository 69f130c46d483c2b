#include "server/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "server/config_file.h"
#include "server/config_text.h"

namespace skep {
namespace {

struct Flag {
  const OptionInfo* option;
  std::vector<std::string> values;
};

CommandLine UsageError(const std::string& message) {
  // The text is one line, whatever the message quotes.
  std::string line = message;
  std::ranges::replace(line, '\n', ' ');
  return {.exit_code = CommandLine::kUsageError, .text = "skep-server: " + line + "\n"};
}

CommandLine Print(std::string text) { return {.text = std::move(text)}; }

std::string HelpOf(const OptionInfo& option) {
  const std::string value = option.get(ServerOptions{});
  return value.empty() ? std::string(option.help) : fmt::format("{} [{}]", option.help, value);
}

// The `values` of the flags must not move after this.
void AddFlags(CLI::App& app, std::vector<Flag>& flags) {
  for (Flag& flag : flags) {
    app.add_option("--" + std::string(flag.option->name), flag.values, HelpOf(*flag.option))
        ->type_name(std::string(flag.option->value_name))
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
}

// A list takes every value of its flag; any other option the last one, as in Redis.
Status Apply(const Flag& flag, ServerOptions& options) {
  if (flag.values.empty()) return {};
  if (flag.option->is_list) {
    return flag.option->set(options, fmt::format("{}", fmt::join(flag.values, " ")));
  }
  return flag.option->set(options, flag.values.back());
}

// Advice about an argument that is not a flag. Most often it is a configuration file, because
// redis-server takes one so.
std::string HintForArgument(const std::string& argument) {
  if (argument.starts_with('-')) return "see --help";
  return fmt::format(
      "a configuration file is named by --config, and is TOML (skep-server --convert-config {} "
      "translates one of Redis); see --help",
      argument);
}

CommandLine Convert(const std::string& path, FileSystem& files) {
  const Result<std::string> text = files.ReadAll(path);
  if (!text) {
    return UsageError(fmt::format("{}: cannot be read: {}", path, text.error().ToString()));
  }
  return Print(ConvertRedisConfig(*text));
}

CommandLine Combine(const std::vector<Flag>& flags, const std::string& config, FileSystem& files) {
  CommandLine line{.run = true};
  std::string error;
  if (!config.empty() && !LoadConfig(files, config, line.options, &error).ok()) {
    return UsageError(error);
  }
  line.options.config_file = config;
  for (const Flag& flag : flags) {
    if (Status s = Apply(flag, line.options); !s.ok()) {
      return UsageError(fmt::format("--{}: {}", flag.option->name, s.what()));
    }
  }
  if (!CheckOptions(line.options, &error).ok()) return UsageError(error);
  return line;
}

}  // namespace

CommandLine ParseCommandLine(std::span<const char* const> arguments, FileSystem& files) {
  CLI::App app("Skep: an ordered in-memory key-value store that speaks Redis's protocol.",
               "skep-server");
  app.set_version_flag("--version", "skep-server " SKEP_VERSION);
  std::string config;
  app.add_option("--config", config, "TOML file with these options, without the dashes.")
      ->type_name("FILE");
  bool prints_config = false;
  app.add_flag("--print-config", prints_config,
               "Print a TOML file with every option, as it is set, and end.");
  std::string convert;
  app.add_option("--convert-config", convert, "Print a redis.conf translated to TOML, and end.")
      ->type_name("FILE");
  std::vector<Flag> flags;
  for (const OptionInfo& option : AllOptions()) flags.push_back({&option, {}});
  AddFlags(app, flags);

  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return Print(app.help());
  } catch (const CLI::CallForVersion& version) {
    return Print(std::string(version.what()) + "\n");
  } catch (const CLI::ExtrasError&) {
    const std::string argument = app.remaining().front();
    return UsageError(
        fmt::format("unknown argument '{}'; {}", argument, HintForArgument(argument)));
  } catch (const CLI::ParseError& error) {
    return UsageError(error.what());
  }
  if (!convert.empty()) return Convert(convert, files);
  CommandLine line = Combine(flags, config, files);
  return line.run && prints_config ? Print(PrintConfig(line.options)) : line;
}

}  // namespace skep
