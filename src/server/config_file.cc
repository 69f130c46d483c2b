#include "server/config_file.h"

#include <fmt/format.h>

#include <optional>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace skep {
namespace {

// The value as OptionInfo::set takes it; nullopt if no option has that type.
std::optional<std::string> AsText(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "yes" : "no";
  const toml::array* words = node.as_array();
  if (words == nullptr) return std::nullopt;
  std::string text;
  for (const toml::node& word : *words) {
    if (!word.is_string()) return std::nullopt;
    if (!text.empty()) text += ' ';
    text += word.as_string()->get();
  }
  return text;
}

Status SetFromNode(ServerOptions& options, std::string_view name, const toml::node& node) {
  const std::optional<std::string> text = AsText(node);
  if (!text) return {Code::kInvalidArgument, "not a string, integer, boolean or array of strings"};
  return SetOption(options, name, *text);
}

}  // namespace

Status LoadConfig(FileSystem& files, const std::string& path, ServerOptions& options,
                  std::string* error) {
  const Result<std::string> bytes = files.ReadAll(path);
  if (!bytes) {
    *error = fmt::format("{}: cannot be read: {}", path, bytes.error().ToString());
    return bytes.error();
  }
  const toml::parse_result parsed = toml::parse(*bytes, path);
  if (!parsed) {
    *error = fmt::format("{}:{}: {}", path, parsed.error().source().begin.line,
                         parsed.error().description());
    return {Code::kInvalidArgument, "not a TOML file"};
  }
  ServerOptions changed = options;
  for (const auto& [key, node] : parsed.table()) {
    if (Status s = SetFromNode(changed, key.str(), node); !s.ok()) {
      *error = fmt::format("{}:{}: {}: {}", path, node.source().begin.line, key.str(), s.what());
      return s;
    }
  }
  options = std::move(changed);
  return {};
}

}  // namespace skep
