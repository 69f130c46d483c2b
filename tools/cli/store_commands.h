// store_commands.h: the commands that skep-cli has over the packed protocol.
//
// Nearly all are the server's own (server/command.h): they are planned here, sent as a batch, and
// finished here, so their arguments and replies are the same by either protocol. Commands that need
// the server's own state, or memory between two commands of a connection (KSCAN, SCAN, KEYS), are
// not among them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/command.h"
#include "wire/resp_reply.h"

namespace skep::cli {

// Commands that are not planned but run directly: no batch does what they do.
enum class OwnCommand : uint8_t { kNone, kDbsize, kInfo, kPing, kSave, kSelect, kSnapshot };

struct StoreCommand {
  const Command* command = nullptr;
  OwnCommand own = OwnCommand::kNone;
};

// Finds a command by name, in any case. The result has no command if there is none.
StoreCommand FindStoreCommand(std::string_view name);

// Returns "APPEND DBSIZE DECR ...".
std::string StoreCommandNames();

// Returns the descriptions in the form of a server's answer to COMMAND DOCS.
RespReply StoreCommandDocs();

// Parses the one reply that these bytes encode.
RespReply ReplyOf(std::string_view bytes);

}  // namespace skep::cli
