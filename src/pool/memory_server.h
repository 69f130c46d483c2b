// memory_server.h: the memory that items lie in, and next to no code.
//
// Its one region is a number of chunks, which clients write and read one-sided. It answers two
// calls: hello tells how many chunks there are and who calls; fence ends a client's access, and for
// ever, so that its chunks can be used again (H11 in chunk_upkeep.h).
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "pool/messages.h"
#include "pool/slot.h"
#include "rma/fabric.h"

namespace skep::pool {

class MemoryServer {
 public:
  // `id` is its number in the pool's map: it answers nobody who takes it for a server that was at
  // this address before. Reserves the memory, of which only what is written takes any, and listens.
  //   kInvalidArgument  no chunks, or too many; the address
  //   kIo               there is not the memory, or the address is not free
  static Result<std::unique_ptr<MemoryServer>> Open(rma::Fabric& fabric, const Address& listen,
                                                    uint32_t id, uint32_t chunk_count);

  // One turn of its loop: waits up to `timeout_ms` for something to do. Returns whether there was.
  bool Turn(int timeout_ms);
  void Wake() { endpoint_->Wake(); }
  Address address() const { return endpoint_->address(); }
  uint32_t chunk_count() const { return chunk_count_; }

 private:
  MemoryServer(SharedMemory memory, uint32_t id, uint32_t chunk_count)
      : memory_(std::move(memory)), id_(id), chunk_count_(chunk_count) {}
  void Answer(const rma::Event& event);
  ReplyCode Greet(rma::PeerId peer, uint32_t client);
  bool Fence(uint32_t client);
  void HandleLeft(rma::PeerId peer);

  SharedMemory memory_;
  const uint32_t id_;
  const uint32_t chunk_count_;
  std::unique_ptr<rma::Endpoint> endpoint_;
  // Connections by which a client's writes may still arrive.
  std::map<uint32_t, std::set<rma::PeerId>> peers_;
  std::map<rma::PeerId, uint32_t> clients_;  // of the connections that are there
  std::set<uint32_t> fenced_;                // clients; their numbers never come again
  std::string reply_;
};

}  // namespace skep::pool
