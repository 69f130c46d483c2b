// key_specs.h: which words of a command are keys, and what it does with them, for COMMAND INFO,
// GETKEYS and GETKEYSANDFLAGS.
//
// Thread safety: all of it is thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/command.h"

namespace skep {

// Keys that a command uses in the same way: the words `first`, `first` + `step` and so on.
struct KeySpec {
  // Redis's names, between spaces: RO, RW, OW or RM (reads, reads and writes, overwrites, removes
  // the key), and what it does with the value: access, update, insert, delete.
  std::string_view flags;
  int first;
  int last;  // counted from `first`; -1: the last word
  int step;
};

// Whether a call of the command can name keys.
bool HasKeys(const Command& command);

// Empty for a command without keys, and for one whose first key has no fixed place.
std::vector<KeySpec> KeySpecsOf(const Command& command);

// A key among the words of a call, with the flags that hold for this call.
struct KeyInCall {
  std::string_view key;
  std::string_view flags;
};
// Requires that the command accepts the number of words. Empty if the words name keys in no way
// that the command takes.
std::vector<KeyInCall> KeysInCall(const Command& command, std::span<const std::string_view> words);

// The words between spaces.
std::vector<std::string_view> SplitFlags(std::string_view flags);

// The categories of Redis's access lists that a command is in: "@read", "@string", "@fast".
std::vector<std::string> CategoriesOf(const Command& command);

}  // namespace skep
