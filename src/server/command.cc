#include "server/command.h"

#include <fmt/format.h>

#include "server/range_args.h"

namespace skep {

std::string WrongCountError(const Command& command) {
  std::string text = fmt::format("ERR wrong number of arguments for '{}' command", command.name);
  if (command.arguments.starts_with("min max")) {
    text += fmt::format(": it takes {}; {}", command.arguments, kRangeSyntax);
  }
  return text;
}

}  // namespace skep
