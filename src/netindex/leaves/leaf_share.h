// leaf_share.h: a server's side of leaves that clients read one-sided (leaf_reader.h): the memory
// of one tree, exposed over a fabric, to be read only.
//
//   region 0   the board (engine/leaf_board.h)
//          1   the rows of the page table
//          2   the arena's first region, 3 its second one, as many as there are when it is opened
//
// A thread lets peers connect; over a fabric that needs it, it also carries out their reads. It
// sleeps while there is nothing to do, and never looks at the tree. Its reads go by mappings of the
// same memory that are its own and cannot be written, as those of another process do: the tree's
// writers know nothing of them, and store bytes that no reader of theirs may look at yet.
//
// The share ends before the server gives up its address or its directory: as long as a client is
// connected, no other server has answered a write (leaf_session.h).
//
// Whoever can connect reads all keys of the tree: no fabric asks for a password. No peer can write:
// `mem` hands out descriptors that cannot be mapped to write, `tcp` refuses writes.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/shared_memory.h"
#include "engine/engine.h"
#include "engine/leaf_board.h"
#include "rma/fabric.h"
#include "skep/status.h"

namespace skep::leaves {

class LeafShare {
 public:
  // `engine` must outlive it, and have one share at a time. `instance`: ServerHello::instance. On
  // an error *problem is a line for a person.
  //   kInvalidArgument  the place
  //   kNotSupported     the engine is no tree that is shared (BtreeOptions::shared), with versions
  //                     and the layout heads
  //   kIo               the errno: of listening, say, or of mapping the memory
  static Result<std::unique_ptr<LeafShare>> Open(std::string_view place, Engine& engine,
                                                 uint64_t instance, std::string* problem);
  // Ends all connections.
  ~LeafShare();
  LeafShare(const LeafShare&) = delete;
  LeafShare& operator=(const LeafShare&) = delete;

  // The policy of syncs may have changed.
  void NoteOptions() { board_.syncs.store(engine_.syncs_to_release() ? 1 : 0); }
  // "mem:unix:PATH" or "tcp:HOST:PORT", with the port that the system gave.
  std::string place() const;
  uint32_t peers() const { return peers_.load(std::memory_order_relaxed); }

 private:
  LeafShare(Engine& engine, LeafBoard& board, std::vector<SharedMemory> mapped,
            std::unique_ptr<rma::Fabric> fabric, std::unique_ptr<rma::Endpoint> endpoint);
  void Serve();

  Engine& engine_;
  LeafBoard& board_;
  const std::vector<SharedMemory> mapped_;  // the regions
  const std::unique_ptr<rma::Fabric> fabric_;
  const std::unique_ptr<rma::Endpoint> endpoint_;  // polled by the thread
  std::atomic<uint32_t> peers_ = 0;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace skep::leaves
