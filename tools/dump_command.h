// dump_command.h: an export or an import as a command line asks for it: files, what is said on the
// standard error, and an exit status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/dump_export.h"
#include "tools/dump_peer.h"
#include "tools/server_client.h"

namespace skep {

struct DumpCommand {
  std::string program;  // in front of each complaint
  ServerAddress server;
  ConnectPeer connect = ConnectRespPeer;
  std::optional<uint64_t> db;  // of an import, none: those that the input names
  DumpFormat format = DumpFormat::kResp;
  std::string file = "-";  // a standard stream; an RDB file has a name, as it is read twice
  ExportOptions range;     // without database and format
  bool strict = false;     // RdbImport::is_strict
};

// 0 if all was done; else 1, and a line on the standard error says why.
int RunExport(const DumpCommand& command);
// The same; also 1 if keys were refused, each of which is a line.
int RunImport(const DumpCommand& command);

}  // namespace skep
