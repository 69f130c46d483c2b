#include "tools/pool/toml_config.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace skep {
namespace {

[[noreturn]] void Refuse(const toml::source_position& at, std::string_view why) {
  throw CLI::ParseError(fmt::format("the configuration file, line {}: {}", at.line, why),
                        CLI::ExitCodes::ConfigError);
}

std::optional<std::string> AsText(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

std::vector<std::string> ValuesOf(std::string_view name, const toml::node& node) {
  std::vector<std::string> values;
  const auto add = [&](const toml::node& value) {
    auto text = AsText(value);
    if (!text) Refuse(value.source().begin, fmt::format("{}: not a string or a number", name));
    values.push_back(std::move(*text));
  };
  if (const toml::array* const array = node.as_array()) {
    for (const toml::node& value : *array) add(value);
  } else {
    add(node);
  }
  return values;
}

void AddTable(const toml::table& table, std::vector<std::string>& parents,
              std::vector<CLI::ConfigItem>& items) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (const toml::table* const inner = node.as_table()) {
      parents.push_back(name);
      AddTable(*inner, parents, items);
      parents.pop_back();
    } else {
      CLI::ConfigItem item;
      item.parents = parents;
      item.name = name;
      item.inputs = ValuesOf(name, node);
      items.push_back(std::move(item));
    }
  }
}

}  // namespace

std::vector<CLI::ConfigItem> TomlConfig::from_config(std::istream& input) const {
  const std::string text(std::istreambuf_iterator<char>(input), {});
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) Refuse(parsed.error().source().begin, parsed.error().description());
  std::vector<std::string> parents;
  std::vector<CLI::ConfigItem> items;
  AddTable(parsed.table(), parents, items);
  return items;
}

}  // namespace skep
