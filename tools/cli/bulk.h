// bulk.h: sends many commands from standard input, without waiting for each reply.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tools/command_pipeline.h"
#include "tools/dump_format.h"
#include "tools/dump_peer.h"
#include "tools/server_client.h"

namespace skep::cli {

enum class BulkFormat : uint8_t {
  kCommands,  // RESP arrays, or inline commands, a line each
  kTab,       // key TAB value, a line each, any bytes but LF, no TAB in the key: SET key value
};

struct BulkSummary {
  uint64_t commands = 0;  // answered commands, errors included
  uint64_t errors = 0;    // replies that are errors, and lines that do not have the format
  double seconds = 0;
};

// Called for each command that was refused: "command 3" or "line 3", and why.
using OnBulkError = std::function<void(std::string_view where, std::string_view why)>;

// Sends the input to its end. Returns a line for people that says why it ended before, or nothing.
// Memory: some MiB, or twice the largest command.
std::string LoadBulk(CommandPipeline& pipeline, BulkFormat format, const DumpSource& source,
                     const OnBulkError& on_error, BulkSummary* summary);

struct BulkOptions {
  ServerAddress server;
  ConnectPeer connect = ConnectRespPeer;
  uint64_t keyspace = 0;
  BulkFormat format = BulkFormat::kCommands;
};

// Runs LoadBulk on standard input, with a bar on standard error if that is a terminal. Returns the
// exit status (exit_status.h).
int RunBulk(const BulkOptions& options);

}  // namespace skep::cli
