// dump_peer.h: the server that keys are read from or stored in, whatever is spoken to it.
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
  // As skep::Export.
  virtual std::string Export(const ExportOptions& options, const DumpTarget& target,
                             ExportSummary* summary) = 0;
  virtual CommandPipeline& pipeline() = 0;
};

// Connects and logs in. Null: *problem is a line for a person.
using ConnectPeer = std::unique_ptr<DumpPeer> (*)(const ServerAddress& server,
                                                  std::string* problem);
std::unique_ptr<DumpPeer> ConnectRespPeer(const ServerAddress& server, std::string* problem);

}  // namespace skep
