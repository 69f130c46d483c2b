#include "tools/cli/syntax.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"

namespace skep::cli {
namespace {

using Items = std::vector<std::string>;

constexpr std::string_view kMore = "...";

// Splits at the blanks outside brackets.
Items SplitWords(std::string_view text) {
  Items words;
  std::string word;
  int depth = 0;
  for (const char c : text) {
    depth += (c == '[' || c == '<') - (c == ']' || c == '>');
    if (c != ' ' || depth > 0) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

std::string Join(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

bool IsToken(std::string_view word) {
  const auto is_letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  return std::ranges::any_of(word, is_letter) && std::ranges::none_of(word, [](char c) {
           return (c >= 'a' && c <= 'z') || c == '[' || c == '<';
         });
}

bool IsOptional(std::string_view item) { return item.starts_with('['); }

struct Choice {
  std::vector<Items> alternatives;  // each has at least a word
  bool repeats = false;
};

Choice ParseItem(std::string_view item) {
  if (!item.starts_with('[') && !item.starts_with('<')) {
    return {.alternatives = {{std::string(item)}}};
  }
  Choice choice;
  Items alternative;
  for (std::string& word : SplitWords(item.substr(1, item.size() - 2))) {
    if (word == kMore) {
      choice.repeats = true;
    } else if (word != "|") {
      alternative.push_back(std::move(word));
    } else if (!alternative.empty()) {
      choice.alternatives.push_back(std::exchange(alternative, {}));
    }
  }
  if (!alternative.empty()) choice.alternatives.push_back(alternative);
  return choice;
}

// Parses the items of a syntax: "a | B c" without brackets becomes one item with brackets.
Items ParseSyntax(std::string_view syntax) {
  Items items;
  const Items words = SplitWords(syntax);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kMore && !items.empty() && IsOptional(items.back())) {
      items.back().insert(items.back().size() - 1, " ...");
    } else if (words[i] == "|" && i + 2 < words.size()) {
      std::string before = Join(items);
      if (before.starts_with('<')) before = before.substr(1, before.size() - 2);
      items = {"<" + before + " | " + words[i + 1] + " " + words[i + 2] + ">"};
      i += 2;
    } else {
      items.push_back(words[i]);
    }
  }
  return items;
}

// Returns the alternative that begins with that word as its token; else, if not `by_token`, one
// that begins with a placeholder.
const Items* Find(const Choice& choice, std::string_view word, bool by_token) {
  const auto at = std::ranges::find_if(choice.alternatives, [&](const Items& alternative) {
    return IsToken(alternative[0]) ? by_token && EqualsIgnoringCase(alternative[0], word)
                                   : !by_token;
  });
  return at == choice.alternatives.end() ? nullptr : &*at;
}

// Takes a word that begins this alternative of item `at`. The rest of the alternative must come
// next; options before an item that is not optional cannot come any more.
void Take(const Items& alternative, size_t at, Items* items) {
  const std::string item = (*items)[at];
  Items next(alternative.begin() + 1, alternative.end());
  if (ParseItem(item).repeats) next.push_back(item);
  items->erase(IsOptional(item) ? items->begin() + at : items->begin(), items->begin() + at + 1);
  items->insert(items->begin(), next.begin(), next.end());
}

// A token is looked for among all items that may be left out; any other word is taken by the first
// item that can take it.
void Consume(std::string_view word, Items* items) {
  for (const bool by_token : {true, false}) {
    for (size_t at = 0; at < items->size(); ++at) {
      const Choice choice = ParseItem((*items)[at]);
      if (const Items* found = Find(choice, word, by_token)) return Take(*found, at, items);
      if (!IsOptional((*items)[at])) break;
    }
  }
}

}  // namespace

std::vector<std::string> RemainingSyntax(std::string_view syntax,
                                         std::span<const std::string_view> words) {
  Items items = ParseSyntax(syntax);
  for (const std::string_view word : words) Consume(word, &items);
  return items;
}

std::vector<std::string> NextTokens(std::span<const std::string> remaining) {
  std::vector<std::string> tokens;
  for (const std::string& item : remaining) {
    for (const Items& alternative : ParseItem(item).alternatives) {
      if (IsToken(alternative[0])) tokens.push_back(alternative[0]);
    }
    if (!IsOptional(item)) break;
  }
  return tokens;
}

}  // namespace skep::cli
