#include "tools/cli/command_docs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/ascii.h"
#include "tools/cli/syntax.h"
#include "wire/inline_request.h"

namespace skep::cli {
namespace {

constexpr std::string_view kIntroduction =
    "help COMMAND   what a command takes and does\n"
    "help @group    the commands of a group\n"
    "TAB            completes commands, subcommands and options\n"
    "clear, exit    clears the screen; ends\n";

// Returns the value of a field, in a map of RESP3 or the flat array of RESP2; null: there is none.
const RespReply* Field(const RespReply& map, std::string_view name) {
  for (size_t i = 0; i + 1 < map.elements.size(); i += 2) {
    if (map.elements[i].text == name) return &map.elements[i + 1];
  }
  return nullptr;
}

std::string TextField(const RespReply& map, std::string_view name) {
  const RespReply* const field = Field(map, name);
  return field == nullptr ? std::string() : field->text;
}

// ---- Arguments, as COMMAND DOCS describes them, to a syntax ----

std::string SyntaxOf(const RespReply* arguments, std::string_view between);

bool HasFlag(const RespReply& argument, std::string_view flag) {
  const RespReply* const flags = Field(argument, "flags");
  return flags != nullptr &&
         std::ranges::any_of(flags->elements, [&](const RespReply& f) { return f.text == flag; });
}

std::string JoinNonEmpty(std::string_view a, std::string_view b) {
  return fmt::format("{}{}{}", a, a.empty() || b.empty() ? "" : " ", b);
}

// Returns an argument's syntax without its token and without brackets.
std::string ValueOf(const RespReply& argument, const std::string& type) {
  if (type == "pure-token") return "";
  if (type == "block") return SyntaxOf(Field(argument, "arguments"), " ");
  if (type == "oneof") return SyntaxOf(Field(argument, "arguments"), " | ");
  const std::string shown = TextField(argument, "display_text");
  return shown.empty() ? TextField(argument, "name") : shown;
}

std::string SyntaxOf(const RespReply& argument) {
  const std::string type = TextField(argument, "type");
  const std::string token = TextField(argument, "token");
  const bool is_optional = HasFlag(argument, "optional");
  std::string value = ValueOf(argument, type);
  if (type == "oneof" && (!is_optional || !token.empty())) value = "<" + value + ">";
  std::string once = JoinNonEmpty(token, value);
  if (HasFlag(argument, "multiple")) {
    const std::string& more = HasFlag(argument, "multiple_token") ? once : value;
    if (is_optional && token.empty()) {
      once += " ...";
    } else {
      once += " [" + more + " ...]";
    }
  }
  return is_optional ? "[" + once + "]" : once;
}

std::string SyntaxOf(const RespReply* arguments, std::string_view between) {
  if (arguments == nullptr) return {};
  std::string syntax;
  for (const RespReply& argument : arguments->elements) {
    if (!syntax.empty()) syntax += between;
    syntax += SyntaxOf(argument);
  }
  return syntax;
}

std::vector<CommandDoc> ParseAll(const RespReply& map) {
  std::vector<CommandDoc> docs;
  for (size_t i = 0; i + 1 < map.elements.size(); i += 2) {
    const RespReply& fields = map.elements[i + 1];
    CommandDoc doc = {.name = UpperCase(map.elements[i].text),
                      .summary = TextField(fields, "summary"),
                      .since = TextField(fields, "since"),
                      .group = TextField(fields, "group"),
                      .syntax = SyntaxOf(Field(fields, "arguments"), " "),
                      .subcommands = {}};
    std::ranges::replace(doc.name, '|', ' ');
    if (const RespReply* const subs = Field(fields, "subcommands")) {
      doc.subcommands = ParseAll(*subs);
    }
    docs.push_back(std::move(doc));
  }
  std::ranges::sort(docs, {}, &CommandDoc::name);
  return docs;
}

// ---- Lines that are being typed ----

// The words of a line, of which the last may be half typed. Parsing returns false if a quote is
// open.
struct Typed {
  std::unique_ptr<char[]> unquoted;
  std::vector<std::string_view> words;
  std::string_view partial;  // empty: the line ends in a blank, or is empty

  bool Split(std::string_view line) {
    if (!SplitInlineRequest(line, unquoted, words)) return false;
    if (!words.empty() && line.back() != ' ') {
      partial = words.back();
      words.pop_back();
    }
    return true;
  }
};

std::string_view LastWord(std::string_view name) { return name.substr(name.rfind(' ') + 1); }

bool StartsWithIgnoringCase(std::string_view word, std::string_view prefix) {
  return word.size() >= prefix.size() && EqualsIgnoringCase(word.substr(0, prefix.size()), prefix);
}

// Returns the word in upper case, or in lower case if a small letter was typed.
std::string InCaseOf(std::string_view typed, std::string_view word) {
  const bool is_lower = std::ranges::any_of(typed, [](char c) { return c >= 'a' && c <= 'z'; });
  return is_lower ? LowerCase(word) : UpperCase(word);
}

std::string DescriptionOf(const CommandDoc& doc) {
  std::string text = fmt::format("  {}{}{}\n", doc.name, doc.syntax.empty() ? "" : " ", doc.syntax);
  text += fmt::format("  {}\n", doc.summary);
  if (!doc.since.empty()) text += fmt::format("  since {}, group {}\n", doc.since, doc.group);
  for (const CommandDoc& sub : doc.subcommands) {
    text += fmt::format("\n  {}{}{}\n    {}\n", sub.name, sub.syntax.empty() ? "" : " ", sub.syntax,
                        sub.summary);
  }
  return text;
}

}  // namespace

CommandDocs::CommandDocs(const RespReply& reply) : commands_(ParseAll(reply)) {}

const CommandDoc* CommandDocs::Find(std::span<const std::string_view> words, size_t* named) const {
  const auto find = [](const std::vector<CommandDoc>& docs, std::string_view word) {
    const auto at = std::ranges::find_if(
        docs, [&](const CommandDoc& doc) { return EqualsIgnoringCase(LastWord(doc.name), word); });
    return at == docs.end() ? nullptr : &*at;
  };
  *named = 1;
  const CommandDoc* const doc = words.empty() ? nullptr : find(commands_, words[0]);
  if (doc == nullptr || words.size() == 1) return doc;
  const CommandDoc* const sub = find(doc->subcommands, words[1]);
  *named = sub == nullptr ? 1 : 2;
  return sub == nullptr ? doc : sub;
}

std::vector<std::string> CommandDocs::Complete(std::string_view before) const {
  Typed typed;
  if (!typed.Split(before)) return {};
  std::vector<std::string> candidates;
  const auto offer = [&](std::string_view word) {
    if (StartsWithIgnoringCase(word, typed.partial)) {
      candidates.push_back(InCaseOf(typed.partial, word));
    }
  };
  std::span<const std::string_view> words = typed.words;
  const bool is_help = !words.empty() && EqualsIgnoringCase(words[0], "help");
  if (is_help) words = words.subspan(1);
  size_t named = 0;
  const CommandDoc* const doc = Find(words, &named);
  if (words.empty()) {
    for (const CommandDoc& command : commands_) offer(command.name);
    if (!is_help && !commands_.empty()) offer("HELP");
  } else if (doc != nullptr && words.size() == 1) {
    for (const CommandDoc& sub : doc->subcommands) offer(LastWord(sub.name));
  }
  if (doc != nullptr && doc->subcommands.empty() && !is_help) {
    for (const std::string& token :
         NextTokens(RemainingSyntax(doc->syntax, words.subspan(named)))) {
      offer(token);
    }
  }
  return candidates;
}

std::string CommandDocs::Hint(std::string_view line) const {
  Typed typed;
  if (!typed.Split(line)) return {};
  std::vector<std::string_view> words = typed.words;
  if (!typed.partial.empty()) words.push_back(typed.partial);
  size_t named = 0;
  const CommandDoc* const doc = Find(words, &named);
  if (doc == nullptr) return {};
  std::string hint;
  for (const std::string& item :
       RemainingSyntax(doc->syntax, std::span(words).subspan(std::min(named, words.size())))) {
    if (!hint.empty() || !typed.partial.empty()) hint += ' ';
    hint += item;
  }
  return hint;
}

std::string CommandDocs::GroupHelp(std::string_view group) const {
  std::string text;
  for (const CommandDoc& doc : commands_) {
    if (EqualsIgnoringCase(doc.group, group)) {
      text += fmt::format("  {:<16} {}\n", doc.name, doc.summary);
    }
  }
  return text.empty() ? fmt::format("There is no group {}.\n", group) : text;
}

std::string CommandDocs::Help(std::span<const std::string_view> words) const {
  if (commands_.empty()) return "The server tells nothing of its commands (COMMAND DOCS).\n";
  if (words.empty()) {
    std::vector<std::string> groups;
    for (const CommandDoc& doc : commands_) groups.push_back("@" + doc.group);
    std::ranges::sort(groups);
    const auto repeated = std::ranges::unique(groups);
    groups.erase(repeated.begin(), repeated.end());
    return fmt::format("{}groups         {}\n", kIntroduction, fmt::join(groups, " "));
  }
  if (words[0].starts_with('@')) return GroupHelp(words[0].substr(1));
  size_t named = 0;
  const CommandDoc* const doc = Find(words, &named);
  if (doc != nullptr && named == words.size()) return DescriptionOf(*doc);
  return fmt::format("The server has no command {}.\n",
                     UpperCase(fmt::format("{}", fmt::join(words, " "))));
}

}  // namespace skep::cli
