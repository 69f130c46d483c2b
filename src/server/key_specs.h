// key_specs.h: which words of a command are keys, and what it does with them, for COMMAND INFO,
// GETKEYS and GETKEYSANDFLAGS.
//
// Thread safety: all of it is thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "server/command.h"

namespace skep {

// Keys that a command uses in the same way.
struct KeySpec {
  // Where they are, in Redis's words.
  enum class Kind : uint8_t {
    kRange,    // the words `first`, `first` + `step` and so on, up to `last`
    kCounted,  // the word `first` says how many keys follow it
    kKeyword,  // the word behind `keyword`, which is looked for from the word `first` on
    kUnknown,  // no fixed place: KeysInCall() finds them
  };
  // Redis's names, between spaces: RO, RW, OW or RM (reads, reads and writes, overwrites, removes
  // the key), and what it does with the value: access, update, insert, delete.
  std::string_view flags;
  Kind kind = Kind::kRange;
  int first = 0;
  int last = 0;  // counted from `first`; -1: the last word, -2: the word before it
  int step = 1;
  std::string_view keyword = {};
};

// Whether a call of the command can name keys. Those of a subcommand are not of the command.
bool HasKeys(const Command& command);

// Empty for a command without keys.
std::vector<KeySpec> KeySpecsOf(const Command& command);
std::vector<KeySpec> KeySpecsOf(const Subcommand& subcommand);

// A key among the words of a call, with the flags that hold for this call.
struct KeyInCall {
  std::string_view key;
  std::string_view flags;
};
// Requires that the command accepts the number of words. Empty if the words name keys in no way
// that the command takes.
std::vector<KeyInCall> KeysInCall(const Command& command, std::span<const std::string_view> words);
std::vector<KeyInCall> KeysInCall(const Subcommand& subcommand,
                                  std::span<const std::string_view> words);

// The words between spaces.
std::vector<std::string_view> SplitFlags(std::string_view flags);

}  // namespace skep
