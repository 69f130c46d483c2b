// operation_queue.h: the reads and writes of one peer's memory that are under way.
//
// Each operation of a Post is one fi_read or fi_writemsg. A write is delivery-complete: its
// completion says that the bytes are in the peer's memory (F3 of fabric.h). Operations are given to
// the provider in the order of their Posts until it has no room, and then with each MoveOn().
//
// A provider that wants to know local memory, too (FI_MR_LOCAL), is told that of each operation;
// such providers remember what they have been told.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ofi/ofi_domain.h"
#include "ofi/ofi_queue.h"
#include "rma/fabric.h"

namespace skep::rma {

// A region of the peer's, as the provider names its bytes.
struct RemoteRegion {
  uint64_t base = 0;
  uint64_t key = 0;
};

// Thread safety: the domain's mutex is held.
class OperationQueue final : public OfiCompleter {
 public:
  // The domain outlives it.
  explicit OperationQueue(OfiDomain& domain) : domain_(domain) {}

  // `ep` is enabled, and closed before this queue is gone.
  void Begin(fid_ep* ep) { ep_ = ep; }
  void set_peer(fi_addr_t peer, std::vector<RemoteRegion> regions) {
    peer_ = peer;
    regions_ = std::move(regions);
  }

  // The operations are within the regions, and at least one.
  void Add(uint64_t token, std::span<const Operation> operations);
  // Gives the provider what it has room for.
  void MoveOn();
  // Whether something waits for the provider to have room.
  bool Waits() const { return begun_ < posts_.size(); }
  // The tokens of Posts whose operations have all been done.
  std::vector<uint64_t> TakeDone() { return std::exchange(done_, {}); }
  bool HasDone() const { return !done_.empty(); }
  // Those of the others; the fid_ep is closed.
  std::vector<uint64_t> TakeUndone();
  int error() const { return error_; }

  void Complete(OfiContext& context, int error) override;

 private:
  struct Post;
  struct Work {
    OfiContext context;
    Operation operation;
    OfiHandle<fid_mr> local;
    Post* post = nullptr;
  };
  struct Post {
    uint64_t token = 0;
    std::vector<Work> works;
    size_t begun = 0;
    size_t ended = 0;
  };

  ssize_t Begin(Work& work);

  OfiDomain& domain_;
  fid_ep* ep_ = nullptr;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::vector<RemoteRegion> regions_;
  std::deque<std::unique_ptr<Post>> posts_;
  size_t begun_ = 0;  // of posts_, the ones before this are with the provider wholly
  std::vector<uint64_t> done_;
  int error_ = 0;
};

}  // namespace skep::rma
