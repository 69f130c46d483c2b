#include "server/command_table.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "server/command_tables.h"

namespace skep {
namespace {

constexpr size_t kNameBytesMax = 32;

std::vector<Command> JoinGroups() {
  using namespace command_table;
  std::vector<Command> all;
  for (const auto group : {BitCommands(), KeyCommands(), OrderedCommands(), ServerCommands(),
                           StringCommands(), HashCommands(), ListCommands(), SetCommands(),
                           SortedSetCommands(), SortedSetRangeCommands(), SortedSetJoinCommands(),
                           BlockingCommands(), HyperLogLogCommands(), SortCommands(), GeoCommands(),
                           GeoSearchCommands(), DumpCommands(), AloneCommands(), DebugCommands()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  std::ranges::sort(all, {}, &Command::name);
  const auto same = std::ranges::adjacent_find(all, {}, &Command::name);
  SKEP_CHECK(same == all.end());
  for (const Command& command : all) SKEP_CHECK(command.name.size() <= kNameBytesMax);
  return all;
}

}  // namespace

std::span<const Command> AllCommands() {
  static const std::vector<Command> all = JoinGroups();
  return all;
}

const Command* FindCommand(std::string_view name) {
  if (name.size() > kNameBytesMax) return nullptr;
  std::array<char, kNameBytesMax> lower{};
  std::ranges::transform(name, lower.begin(), [](char c) { return LowerCase(c); });
  const std::string_view wanted(lower.data(), name.size());
  const auto commands = AllCommands();
  const auto at = std::ranges::lower_bound(commands, wanted, {}, &Command::name);
  return at != commands.end() && at->name == wanted ? &*at : nullptr;
}

}  // namespace skep
