// dump_command.h: runs an export or an import for a command line: files, messages on standard
// error, and an exit status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/dump_export.h"
#include "tools/dump_peer.h"
#include "tools/server_client.h"

namespace skep {

struct DumpCommand {
  std::string program;  // named in front of each complaint
  ServerAddress server;
  ConnectPeer connect = ConnectRespPeer;
  std::optional<uint64_t> db;  // of an import: none means those that the input names
  DumpFormat format = DumpFormat::kResp;
  std::string file = "-";  // a standard stream; an RDB file has a name, as it is read twice
  ExportOptions range;     // without database and format
  bool strict = false;     // RdbImport::is_strict
};

// Returns 0 if all was done; else 1, and a line on standard error says why.
int RunExport(const DumpCommand& command);
// Returns as RunExport; also 1 if keys were refused, with a line for each.
int RunImport(const DumpCommand& command);

}  // namespace skep
