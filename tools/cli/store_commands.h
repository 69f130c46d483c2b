// store_commands.h: the commands there are over the packed protocol.
//
// Nearly all are the server's own (server/command.h): planned here, sent as a batch, finished here,
// so what they take and reply is the same by either protocol. What a server tells of itself, and
// what needs memory between two commands of a connection (KSCAN, SCAN, KEYS), is not among them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/command.h"
#include "wire/resp_reply.h"

namespace skep::cli {

// Those that are run, not planned: no batch does what they do.
enum class OwnCommand : uint8_t { kNone, kDbsize, kInfo, kPing, kSave, kSelect, kSnapshot };

struct StoreCommand {
  const Command* command = nullptr;
  OwnCommand own = OwnCommand::kNone;
};

// Any case. Without a command: there is none.
StoreCommand FindStoreCommand(std::string_view name);

// "APPEND DBSIZE DECR ...".
std::string StoreCommandNames();

// As a server answers COMMAND DOCS.
RespReply StoreCommandDocs();

// The one reply that these bytes are.
RespReply ReplyOf(std::string_view bytes);

}  // namespace skep::cli
