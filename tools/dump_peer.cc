#include "tools/dump_peer.h"

#include <utility>

namespace skep {
namespace {

class RespPeer final : public DumpPeer {
 public:
  explicit RespPeer(std::unique_ptr<ServerClient> client)
      : client_(std::move(client)), pipeline_(*client_) {}

  std::string Export(const ExportOptions& options, const DumpTarget& target,
                     ExportSummary* summary) override {
    return skep::Export(*client_, options, target, summary);
  }
  CommandPipeline& pipeline() override { return pipeline_; }

 private:
  const std::unique_ptr<ServerClient> client_;
  RespPipeline pipeline_;
};

}  // namespace

std::unique_ptr<DumpPeer> ConnectRespPeer(const ServerAddress& server, std::string* problem) {
  auto client = ServerClient::Connect(server, problem);
  return client ? std::make_unique<RespPeer>(std::move(*client)) : nullptr;
}

}  // namespace skep
