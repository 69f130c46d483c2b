// memory_server.h: the memory that items lie in, and next to no code.
//
// Its one region is a number of frames, which clients write and read one-sided. It answers three
// calls: hello tells how many frames there are and who calls; fence ends a client's access, and for
// ever, so that its chunks can be used again (H11 in chunk_upkeep.h); retire tells the server that
// the pool goes on without it (memory_watch.h).
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "pool/frames.h"
#include "pool/messages.h"
#include "rma/fabric.h"

namespace skep::pool {

class MemoryServer {
 public:
  // `id` is its number in the pool's map: it answers nobody who takes it for a server that was at
  // this address before. Reserves the memory, of which only what is written takes any, and listens.
  //   kInvalidArgument  no frames, or too many; the address
  //   kIo               there is not the memory, or the address is not free
  static Result<std::unique_ptr<MemoryServer>> Open(rma::Fabric& fabric, const Address& listen,
                                                    uint32_t id, uint32_t frame_count);

  // One turn of its loop: waits up to `timeout_ms` for something to do. Returns whether there was.
  bool Turn(int timeout_ms);
  void Wake() { endpoint_->Wake(); }
  Address address() const { return endpoint_->address(); }
  uint32_t frame_count() const { return frame_count_; }
  // Whether the pool goes on without this server: its memory is of no use any more. It was drained,
  // or was taken for dead; then another one may take part in its place.
  enum class Standing : uint8_t { kServing, kDrained, kReplaced };
  Standing standing() const { return standing_; }

 private:
  MemoryServer(SharedMemory memory, uint32_t id, uint32_t frame_count)
      : memory_(std::move(memory)), id_(id), frame_count_(frame_count) {}
  void Answer(const rma::Event& event);
  ReplyCode AnswerTo(rma::PeerId peer, MessageKind kind, std::string_view fields);
  ReplyCode Greet(rma::PeerId peer, uint32_t client);
  bool Fence(uint32_t client);
  void HandleLeft(rma::PeerId peer);

  SharedMemory memory_;
  const uint32_t id_;
  const uint32_t frame_count_;
  std::unique_ptr<rma::Endpoint> endpoint_;
  // Connections by which a client's writes may still arrive.
  std::map<uint32_t, std::set<rma::PeerId>> peers_;
  std::map<rma::PeerId, uint32_t> clients_;  // of the connections that are there
  std::set<uint32_t> fenced_;                // clients; their numbers never come again
  Standing standing_ = Standing::kServing;
  std::string fields_;
  std::string reply_;
};

}  // namespace skep::pool
