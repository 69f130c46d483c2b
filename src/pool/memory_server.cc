#include "pool/memory_server.h"

#include "pool/fields.h"
#include "pool/messages.h"

namespace skep::pool {

Result<std::unique_ptr<MemoryServer>> MemoryServer::Open(rma::Fabric& fabric, const Address& listen,
                                                         uint32_t id, uint32_t frame_count) {
  if (frame_count == 0 || frame_count > kFramesMax) {
    return Fail(Code::kInvalidArgument, "frames of a memory server", kFramesMax);
  }
  auto memory = SharedMemory::Create(size_t{frame_count} * kChunkBytes, SharedPages::kTransparent);
  if (!memory) return Fail(memory.error());
  auto server =
      std::unique_ptr<MemoryServer>(new MemoryServer(std::move(*memory), id, frame_count));
  auto endpoint =
      fabric.Open({.listen = listen,
                   .regions = {{.memory = &server->memory_, .access = rma::Access::kReadWrite}}});
  if (!endpoint) return Fail(endpoint.error());
  server->endpoint_ = std::move(*endpoint);
  return server;
}

bool MemoryServer::Turn(int timeout_ms) {
  const auto events = endpoint_->Poll(timeout_ms);
  for (const rma::Event& event : events) {
    if (event.kind == rma::Event::Kind::kRequest) Answer(event);
    if (event.kind == rma::Event::Kind::kLeft) HandleLeft(event.peer);
  }
  return !events.empty();
}

void MemoryServer::Answer(const rma::Event& event) {
  std::string_view fields = event.bytes;
  const auto kind = fields.empty() ? MessageKind() : static_cast<MessageKind>(fields[0]);
  if (!fields.empty()) fields.remove_prefix(1);
  reply_.assign(1, static_cast<char>(AnswerTo(event.peer, kind, fields)));
  if (reply_[0] == static_cast<char>(ReplyCode::kOk)) reply_ += fields_;
  endpoint_->Reply(event.peer, event.token, reply_);
}

// Sets the fields of the answer.
ReplyCode MemoryServer::AnswerTo(rma::PeerId peer, MessageKind kind, std::string_view fields) {
  fields_.clear();
  uint32_t client = 0;
  uint32_t server = 0;
  if (kind == MessageKind::kHello) {
    if (!TakeNumber(fields, &client) || !TakeNumber(fields, &server) || !fields.empty()) {
      return ReplyCode::kMalformed;
    }
    AppendVarint(fields_, frame_count_);
    return server == id_ ? Greet(peer, client) : ReplyCode::kNotServing;
  }
  if (kind == MessageKind::kFence) {
    if (!TakeNumber(fields, &client) || !fields.empty()) return ReplyCode::kMalformed;
    fields_.push_back(Fence(client) ? 1 : 0);
    return ReplyCode::kOk;
  }
  if (kind != MessageKind::kRetire || !TakeNumber(fields, &server) || fields.size() != 1) {
    return ReplyCode::kMalformed;
  }
  if (server != id_) return ReplyCode::kNotServing;
  standing_ = fields[0] != 0 ? Standing::kDrained : Standing::kReplaced;
  return ReplyCode::kOk;
}

// Client 0 is a hash server, which only asks.
ReplyCode MemoryServer::Greet(rma::PeerId peer, uint32_t client) {
  if (client == 0) return ReplyCode::kOk;
  if (fenced_.contains(client)) return ReplyCode::kUnknownClient;
  if (clients_.try_emplace(peer, client).first->second != client) return ReplyCode::kMalformed;
  peers_[client].insert(peer);
  return ReplyCode::kOk;
}

void MemoryServer::HandleLeft(rma::PeerId peer) {
  const auto client = clients_.extract(peer);
  if (!client || !endpoint_->Fence(peer)) return;
  const auto peers = peers_.find(client.mapped());
  if (peers == peers_.end()) return;
  peers->second.erase(peer);
  if (peers->second.empty()) peers_.erase(peers);
}

bool MemoryServer::Fence(uint32_t client) {
  fenced_.insert(client);
  const auto at = peers_.find(client);
  if (at == peers_.end()) return true;
  std::erase_if(at->second, [this](rma::PeerId peer) { return endpoint_->Fence(peer); });
  if (!at->second.empty()) return false;
  peers_.erase(at);
  return true;
}

}  // namespace skep::pool
