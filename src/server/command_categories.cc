#include "server/command_categories.h"

#include <algorithm>

#include "base/ascii.h"
#include "server/subcommands.h"

namespace skep {
namespace {

constexpr std::string_view kDangerous[] = {"flushall", "flushdb", "info",           "keys",
                                           "migrate",  "restore", "restore-asking", "sort",
                                           "sort_ro",  "swapdb"};

// The commands that are in other categories than that of their group. Each has its own, and the
// groups "server" and "cluster" have none.
struct Exception {
  std::string_view name;
  std::string_view category;
};
constexpr Exception kExceptions[] = {
    {"asking", "connection"},
    {"command", "connection"},
    {"dbsize", "keyspace"},
    {"flushall", "keyspace"},
    {"flushdb", "keyspace"},
    {"readonly", "connection"},
    {"readwrite", "connection"},
    {"restore-asking", "keyspace"},
    {"sort", "list"},
    {"sort", "set"},
    {"sort", "sortedset"},
    {"sort_ro", "list"},
    {"sort_ro", "set"},
    {"sort_ro", "sortedset"},
    {"swapdb", "keyspace"},
    {"wait", "connection"},
};

struct Group {
  std::string_view name;
  std::string_view category;  // empty: none
};
constexpr Group kGroups[] = {{"cluster", ""},
                             {"generic", "keyspace"},
                             {"server", ""},
                             {"sorted-set", "sortedset"},
                             {"transactions", "transaction"}};

void AddOfGroup(const Command& command, std::vector<std::string_view>& categories) {
  bool is_exception = false;
  for (const auto& [name, category] : kExceptions) {
    if (name != command.name) continue;
    is_exception = true;
    categories.push_back(category);
  }
  if (is_exception) return;
  const auto group = std::ranges::find(kGroups, command.group, &Group::name);
  const std::string_view category = group == std::end(kGroups) ? command.group : group->category;
  if (!category.empty()) categories.push_back(category);
}

// But for how fast it is.
std::vector<std::string_view> CategoriesOfDeeds(const Command& command) {
  std::vector<std::string_view> categories;
  if (command.has(Command::kWrite)) categories.emplace_back("write");
  if (command.has(Command::kReadOnly)) categories.emplace_back("read");
  AddOfGroup(command, categories);
  if (command.has(Command::kAdmin)) categories.emplace_back("admin");
  const bool is_dangerous = std::ranges::find(kDangerous, command.name) != std::end(kDangerous);
  if (is_dangerous || command.has(Command::kAdmin)) categories.emplace_back("dangerous");
  if (command.has(Command::kBlocks)) categories.emplace_back("blocking");
  return categories;
}

}  // namespace

std::vector<std::string_view> CategoriesOf(const Command& command, const Subcommand& subcommand) {
  std::vector<std::string_view> categories;
  if (subcommand.name == kHelpSubcommand.name) {
    if (command.group != "pubsub") AddOfGroup(command, categories);
  } else {
    categories = CategoriesOfDeeds(command);
  }
  categories.emplace_back("slow");
  return categories;
}

std::vector<std::string_view> CategoriesOf(const Command& command) {
  const bool needs_subcommand = command.subcommands != nullptr && command.arity < -1;
  if (needs_subcommand) return {"slow"};
  auto categories = CategoriesOfDeeds(command);
  categories.emplace_back(command.has(Command::kFast) ? "fast" : "slow");
  return categories;
}

bool CommandName::IsOf(std::string_view category) const {
  return std::ranges::any_of(
      categories, [&](std::string_view has) { return EqualsIgnoringCase(has, category); });
}

std::vector<CommandName> AllCommandNames() {
  std::vector<CommandName> names;
  for (const Command& command : AllCommands()) {
    names.push_back({.name = std::string(command.name), .categories = CategoriesOf(command)});
    if (command.subcommands == nullptr) continue;
    const auto add = [&](const Subcommand& sub) {
      names.push_back(
          {.name = FullName(command, sub.name), .categories = CategoriesOf(command, sub)});
    };
    for (const Subcommand& sub : command.subcommands()) add(sub);
    add(kHelpSubcommand);
  }
  return names;
}

}  // namespace skep
