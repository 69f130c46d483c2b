#include "server/config_text.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/ascii.h"
#include "base/decimal.h"
#include "server/option_values.h"

namespace skep {
namespace {

constexpr bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// Takes the first line off the text and returns it.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// `value` as a basic string of TOML.
std::string Quote(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      text += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string TomlLine(const OptionInfo& option, const ServerOptions& options) {
  return fmt::format("{} = {}\n", option.name, TomlValue(option, option.get(options)));
}

// ---- redis.conf ----

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// The words of a directive, quoted as Redis has it: "a b", with \n, \r, \t, \a, \b, \xhh, or 'a b'.
// nullopt: a quote is not closed.
std::optional<std::vector<std::string>> RedisWords(std::string_view line) {
  std::vector<std::string> words;
  for (line = Trim(line); !line.empty(); line = Trim(line)) {
    const char quote = line.front() == '"' || line.front() == '\'' ? line.front() : '\0';
    if (quote == '\0') {
      const size_t end = std::min(line.find_first_of(" \t"), line.size());
      words.emplace_back(line.substr(0, end));
      line.remove_prefix(end);
      continue;
    }
    std::string word;
    line.remove_prefix(1);
    while (!line.empty() && line.front() != quote) {
      char c = line.front();
      line.remove_prefix(1);
      if (c == '\\' && !line.empty() && (quote == '"' || line.front() == '\'')) {
        c = line.front();
        line.remove_prefix(1);
        if (quote == '"' && c == 'x' && line.size() >= 2 && HexDigit(line[0]) &&
            HexDigit(line[1])) {
          c = static_cast<char>(*HexDigit(line[0]) * 16 + *HexDigit(line[1]));
          line.remove_prefix(2);
        } else if (quote == '"') {
          c = c == 'n'   ? '\n'
              : c == 'r' ? '\r'
              : c == 't' ? '\t'
              : c == 'a' ? '\a'
              : c == 'b' ? '\b'
                         : c;
        }
      }
      word += c;
    }
    if (line.empty()) return std::nullopt;
    line.remove_prefix(1);
    words.push_back(std::move(word));
  }
  return words;
}

// Directives of Redis that need nothing if they have this value: Skep is always so.
struct NothingToDo {
  std::string_view name, value;
};
constexpr NothingToDo kNothingToDo[] = {
    {"daemonize", "no"},
    {"supervised", "no"},
    {"always-show-logo", "no"},
    {"cluster-enabled", "no"},
    {"replica-serve-stale-data", "yes"},
    {"rdbcompression", "yes"},
    {"rdbchecksum", "yes"},
    {"stop-writes-on-bgsave-error", "yes"},
    {"aof-use-rdb-preamble", "yes"},
    {"aof-load-truncated", "yes"},
};

bool IsNothingToDo(const std::vector<std::string>& words) {
  for (const NothingToDo& row : kNothingToDo) {
    if (words.size() == 2 && EqualsIgnoringCase(words[0], row.name) &&
        EqualsIgnoringCase(words[1], row.value)) {
      return true;
    }
  }
  return false;
}

// Redis binds to "*" and "::*" for all addresses; a "-" before an address allows it to be missing.
std::string BindAddress(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  if (word == "*") return "0.0.0.0";
  if (word == "::*") return "::";
  return std::string(word);
}

class RedisConfig {
 public:
  void Take(std::string_view line) {
    ++line_;
    const std::string_view trimmed = Trim(line);
    if (trimmed.empty() || trimmed.front() == '#') return Keep(line);
    const auto words = RedisWords(trimmed);
    if (!words) return Refuse(line, "a quote is not closed");
    if (IsNothingToDo(*words)) return Keep(fmt::format("# {}", trimmed));
    const std::string why = Set(*words);
    if (!why.empty()) return Refuse(trimmed, why);
  }

  std::string Finish() {
    // A Redis that writes no file keeps its data in memory only, and so should Skep.
    const bool is_in_memory = has_dir_ && appendonly_ == "no" && options_.save.empty();
    if (is_in_memory) {
      notes_ +=
          "#   dir: not taken, as the file has `appendonly no` and no `save`; with `dir` Skep logs "
          "every "
          "write\n";
    }
    std::string text = "# Translated from a redis.conf.\n";
    text += notes_.empty() ? "# Everything in it has a meaning here.\n"
                           : "# Not taken, by line of that file:\n" + notes_;
    text += "\n" + lines_;
    for (const OptionInfo& option : AllOptions()) {
      if (option.get(options_) == option.get(ServerOptions{})) continue;
      if (option.name == "dir" && is_in_memory) continue;
      text += TomlLine(option, options_);
    }
    return text;
  }

 private:
  void Keep(std::string_view line) { lines_ += fmt::format("{}\n", line); }
  void Refuse(std::string_view line, std::string_view why) {
    notes_ += fmt::format("#   {}: {}: {}\n", line_, line.substr(0, line.find(' ')), why);
    Keep(fmt::format("# {}", line));
  }

  // Sets an option from a directive. Returns why not; empty if it is set.
  std::string Set(const std::vector<std::string>& words) {
    const OptionInfo* option = FindOption(words[0]);
    if (option == nullptr) return "skep-server has no such option";
    std::string value;
    for (size_t i = 1; i < words.size(); ++i) {
      if (i > 1) value += ' ';
      value += option->name == "bind" ? BindAddress(words[i]) : words[i];
    }
    if (option->name == "appendonly") {
      appendonly_ = value;
      return {};  // a store with `dir` always appends
    }
    if (option->name == "save") value = AddSavePoint(value);
    const Status s = option->set(options_, value);
    if (!s.ok()) return s.what();
    if (option->name == "dir") has_dir_ = true;
    return {};
  }

  // Each `save` adds a point to those before it, but the first one replaces the default, and an
  // empty one removes all.
  std::string AddSavePoint(const std::string& value) {
    const std::string before = has_save_ ? options_.save : "";
    has_save_ = true;
    if (value.empty() || before.empty()) return value;
    return before + " " + value;
  }

  int line_ = 0;
  ServerOptions options_;
  bool has_dir_ = false;
  bool has_save_ = false;
  std::string appendonly_ = "no";  // Redis's default
  std::string notes_, lines_;
};

}  // namespace

std::string TomlValue(const OptionInfo& option, std::string_view value) {
  if (option.value_name == "yes|no") return value == "yes" ? "true" : "false";
  if (!option.is_list && ParseInt64(value)) return std::string(value);
  return Quote(value);
}

std::string PrintConfig(const ServerOptions& options) {
  std::string text =
      "# Options of skep-server. A line that begins with # is a comment; those that hold an option "
      "show "
      "its\n# default. Every option is also a flag: --port 7000. Sizes are numbers of bytes or "
      "texts: "
      "\"4gb\".\n";
  for (const OptionInfo& option : AllOptions()) {
    const bool is_default = option.get(options) == option.get(ServerOptions{});
    text += fmt::format("\n# {}{}\n{}{}", option.help,
                        option.mutable_at_run_time ? " CONFIG SET may change it." : "",
                        is_default ? "#" : "", TomlLine(option, options));
  }
  return text;
}

std::string ConvertRedisConfig(std::string_view text) {
  RedisConfig config;
  while (!text.empty()) config.Take(TakeLine(text));
  return config.Finish();
}

bool LooksLikeRedisConfig(std::string_view line) {
  const auto words = RedisWords(line);
  return words && words->size() >= 2 && (*words)[1] != "=" &&
         (*words)[0].find('=') == std::string::npos &&
         (*words)[0].find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") ==
             std::string::npos;
}

}  // namespace skep
