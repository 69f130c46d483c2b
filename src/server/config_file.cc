#include "server/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "base/ascii.h"
#include "server/config_text.h"
#include "server/option_values.h"

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

// The offset of a position of toml++ in the text: its columns count UTF-8 characters.
size_t OffsetOf(std::string_view text, const toml::source_position& position) {
  size_t at = 0;
  for (toml::source_index line = 1; line < position.line; ++line) at = text.find('\n', at) + 1;
  for (toml::source_index column = 1; column < position.column && at < text.size(); ++column) {
    do ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  }
  return at;
}

std::string_view LineOf(std::string_view text, toml::source_index number) {
  const size_t begin = OffsetOf(text, {.line = number, .column = 1});
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Guesses what the author of this line, which is not TOML, meant; empty if there is no guess.
std::string HintFor(const std::string& path, std::string_view line) {
  if (LooksLikeRedisConfig(line)) {
    return fmt::format(
        "; this looks like a redis.conf, and TOML is wanted: skep-server --convert-config {} "
        "translates it",
        path);
  }
  const size_t equal = line.find('=');
  const std::vector<std::string> names = SplitWords(line.substr(0, equal));
  if (equal == std::string_view::npos || names.size() != 1) return {};
  const OptionInfo* const option = FindOption(names.front());
  const std::vector<std::string> words = SplitWords(line.substr(equal + 1));
  if (option == nullptr || words.empty()) return {};
  if (words.front().find_first_of("\"'[#") != std::string::npos) return {};
  return fmt::format("; a value that is no number takes quotes: {} = \"{}\"", option->name,
                     words.front());
}

Status SetFromNode(ServerOptions& options, std::string_view name, const toml::node& node) {
  const std::optional<std::string> text = AsText(node);
  if (!text) return {Code::kInvalidArgument, "not a string, integer, boolean or array of strings"};
  return SetOption(options, name, *text);
}

// Sets the options of the file. If that fails, *error has the reason, without the file's name, and
// nothing is set.
Status SetFromTable(ServerOptions& options, const toml::table& table, std::string* error) {
  ServerOptions changed = options;
  for (const auto& [key, node] : table) {
    if (Status s = SetFromNode(changed, key.str(), node); !s.ok()) {
      *error = fmt::format("{}: {}: {}", node.source().begin.line, key.str(), s.what());
      return s;
    }
  }
  options = std::move(changed);
  return {};
}

// The nodes that set the option; their names are in upper or lower case.
std::vector<const toml::node*> NodesOf(const toml::table& table, std::string_view name) {
  std::vector<const toml::node*> nodes;
  for (const auto& [key, node] : table) {
    if (EqualsIgnoringCase(key.str(), name)) nodes.push_back(&node);
  }
  return nodes;
}

// Whether a server that is started with the file `text` has the same values of the options that
// CONFIG SET can change.
bool Gives(std::string_view text, const ServerOptions& options) {
  const toml::parse_result parsed = toml::parse(text);
  ServerOptions loaded;
  std::string error;
  if (!parsed || !SetFromTable(loaded, parsed.table(), &error).ok()) return false;
  return std::ranges::all_of(AllOptions(), [&](const OptionInfo& option) {
    return !option.mutable_at_run_time || option.get(loaded) == option.get(options);
  });
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
    const toml::source_index line = parsed.error().source().begin.line;
    *error = fmt::format("{}:{}: {}{}", path, line, parsed.error().description(),
                         HintFor(path, LineOf(*bytes, line)));
    return {Code::kInvalidArgument, "not a TOML file"};
  }
  const Status set = SetFromTable(options, parsed.table(), error);
  if (!set.ok()) *error = fmt::format("{}:{}", path, *error);
  return set;
}

Result<std::string> RewriteConfig(std::string_view text, const ServerOptions& options) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return Fail(Code::kInvalidArgument, "not a TOML file");
  struct Edit {
    size_t begin = 0, end = 0;
    std::string value;
  };
  std::vector<Edit> edits;
  std::string added;
  for (const OptionInfo& option : AllOptions()) {
    if (!option.mutable_at_run_time) continue;
    const std::string value = option.get(options);
    const std::vector<const toml::node*> nodes = NodesOf(parsed.table(), option.name);
    if (nodes.empty() && option.get(ServerOptions{}) != value) {
      added += fmt::format("{} = {}\n", option.name, TomlValue(option, value));
    }
    for (const toml::node* const node : nodes) {
      ServerOptions in_file;
      if (!SetFromNode(in_file, option.name, *node).ok()) {
        return Fail(Code::kInvalidArgument, "a value in it is wrong");
      }
      if (option.get(in_file) == value) continue;
      edits.push_back({.begin = OffsetOf(text, node->source().begin),
                       .end = OffsetOf(text, node->source().end),
                       .value = TomlValue(option, value)});
    }
  }
  std::string out(text);
  std::ranges::sort(edits, std::greater{}, &Edit::begin);
  for (const Edit& edit : edits) out.replace(edit.begin, edit.end - edit.begin, edit.value);
  if (!added.empty() && !out.empty() && !out.ends_with('\n')) out += '\n';
  out += added;
  if (!Gives(out, options)) {
    return Fail(Code::kInvalidArgument, "a value as it is now cannot be written as TOML");
  }
  return out;
}

}  // namespace skep
