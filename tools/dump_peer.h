// dump_peer.h: the server from which keys are exported or into which they are imported, by any
// protocol.
#pragma once

#include <memory>
#include <string>

#include "tools/command_pipeline.h"
#include "tools/dump_export.h"
#include "tools/server_client.h"

namespace skep {

// Thread safety: one owner.
class DumpPeer {
 public:
  virtual ~DumpPeer() = default;
  // Exports as skep::Export does.
  virtual std::string Export(const ExportOptions& options, const DumpTarget& target,
                             ExportSummary* summary) = 0;
  virtual CommandPipeline& pipeline() = 0;
};

// Connects and logs in. On failure returns null; *problem is a line for people.
using ConnectPeer = std::unique_ptr<DumpPeer> (*)(const ServerAddress& server,
                                                  std::string* problem);
std::unique_ptr<DumpPeer> ConnectRespPeer(const ServerAddress& server, std::string* problem);

}  // namespace skep
