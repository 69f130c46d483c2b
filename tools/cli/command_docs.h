// command_docs.h: the server's descriptions of its commands, for completion, hints and help.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/resp_reply.h"

namespace skep::cli {

struct CommandDoc {
  std::string name;  // upper case; both words of a subcommand: "CONFIG GET"
  std::string summary, since, group;
  std::string syntax;  // syntax.h
  std::vector<CommandDoc> subcommands;
};

// Thread safety: none.
class CommandDocs {
 public:
  // Knows no command: no completions, no hints.
  CommandDocs() = default;
  // Takes the reply to COMMAND DOCS, of RESP2 or RESP3. Skips what it does not understand.
  explicit CommandDocs(const RespReply& reply);

  bool empty() const { return commands_.empty(); }

  // Returns the whole words that the last word of a line may become, in the letter case that was
  // typed. `before` is the line up to the cursor.
  std::vector<std::string> Complete(std::string_view before) const;

  // Returns the syntax that may follow a line, to be shown behind it; empty: nothing is known.
  std::string Hint(std::string_view line) const;

  // Returns the lines of `help`, `help word...` and `help @group`; words without `help`.
  std::string Help(std::span<const std::string_view> words) const;

 private:
  // Returns the command, or subcommand, that the words begin with, and how many of them name it.
  const CommandDoc* Find(std::span<const std::string_view> words, size_t* named) const;
  std::string GroupHelp(std::string_view group) const;

  std::vector<CommandDoc> commands_;  // by name
};

}  // namespace skep::cli
