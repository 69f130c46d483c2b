// command_docs.h: what the server says of its commands, for completion, hints and help.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/resp_reply.h"

namespace skep::cli {

struct CommandDoc {
  std::string name;  // upper case; of a subcommand both words: "CONFIG GET"
  std::string summary, since, group;
  std::string syntax;  // syntax.h
  std::vector<CommandDoc> subcommands;
};

// Thread safety: none.
class CommandDocs {
 public:
  // Nothing is known: no completions, no hints.
  CommandDocs() = default;
  // The reply to COMMAND DOCS, of RESP2 or RESP3. What is not understood is passed over.
  explicit CommandDocs(const RespReply& reply);

  bool empty() const { return commands_.empty(); }

  // The whole words that the last word of a line may become, in the letter case that was typed.
  // `before` is what was typed up to the cursor.
  std::vector<std::string> Complete(std::string_view before) const;

  // What may follow a line, to be shown behind it; empty: nothing is known.
  std::string Hint(std::string_view line) const;

  // For `help`, `help word...` and `help @group`; words without `help`. Lines.
  std::string Help(std::span<const std::string_view> words) const;

 private:
  // The command, or subcommand, that the words begin with, and how many of them name it.
  const CommandDoc* Find(std::span<const std::string_view> words, size_t* named) const;
  std::string GroupHelp(std::string_view group) const;

  std::vector<CommandDoc> commands_;  // by name
};

}  // namespace skep::cli
