#include "server/command_table.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "server/command_tables.h"

namespace skep {
namespace {

std::vector<Command> JoinGroups() {
  using namespace command_table;
  std::vector<Command> all;
  for (const auto group : {BitCommands(),           KeyCommands(),       OrderedCommands(),
                           ServerCommands(),        StringCommands(),    HashCommands(),
                           HashExpiryCommands(),    ListCommands(),      MessageCommands(),
                           SetCommands(),           SortedSetCommands(), SortedSetRangeCommands(),
                           SortedSetJoinCommands(), BlockingCommands(),  HyperLogLogCommands(),
                           SortCommands(),          GeoCommands(),       GeoSearchCommands(),
                           DumpCommands(),          AloneCommands(),     ScriptCommands(),
                           DebugCommands()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  std::ranges::sort(all, {}, &Command::name);
  const auto same = std::ranges::adjacent_find(all, {}, &Command::name);
  SKEP_CHECK(same == all.end());
  return all;
}

// Where each name is in AllCommands(): a table with open addressing.
class NameTable {
 public:
  explicit NameTable(std::span<const Command> commands) : commands_(commands) {
    SKEP_CHECK(commands.size() <= kPlaces / 2);
    for (size_t i = 0; i < commands.size(); ++i) {
      size_t place = PlaceOf(commands[i].name);
      while (numbers_[place] != 0) place = (place + 1) % kPlaces;
      numbers_[place] = static_cast<uint16_t>(i + 1);
    }
  }

  const Command* Find(std::string_view name) const {
    for (size_t place = PlaceOf(name); numbers_[place] != 0; place = (place + 1) % kPlaces) {
      const Command& command = commands_[numbers_[place] - 1];
      if (EqualsIgnoringCase(name, command.name)) return &command;
    }
    return nullptr;
  }

 private:
  static constexpr size_t kPlaces = 1024;
  static constexpr size_t kHashedMax = 32;  // bytes of a name

  // Upper and lower case have one place.
  static size_t PlaceOf(std::string_view name) {
    size_t hash = name.size();
    for (const char c : name.substr(0, kHashedMax)) hash = hash * 31 + (c | 0x20);
    return hash % kPlaces;
  }

  const std::span<const Command> commands_;
  std::array<uint16_t, kPlaces> numbers_{};  // one more than the command's; 0: none
};

}  // namespace

std::span<const Command> AllCommands() {
  static const std::vector<Command> all = JoinGroups();
  return all;
}

const Command* FindCommand(std::string_view name) {
  static const NameTable table(AllCommands());
  return table.Find(name);
}

}  // namespace skep
