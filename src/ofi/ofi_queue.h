// ofi_queue.h: a completion queue of libfabric.
//
// What is given to the provider to do has a Context, whose Completer is told of its end. A Context
// stays until then, or until the fid_ep and the queue are closed.
#pragma once

#include "ofi/ofi_handle.h"

namespace skep::rma {

struct OfiContext;

class OfiCompleter {
 public:
  // `error`: 0, or what has gone wrong, as libfabric numbers it.
  virtual void Complete(OfiContext& context, int error) = 0;

 protected:
  ~OfiCompleter() = default;
};

struct OfiContext {
  fi_context2 room = {};  // the provider's; the first member, whose address it is given
  OfiCompleter* completer = nullptr;
  void* what = nullptr;  // the completer's
};

// Thread safety: the mutex of its domain is held (ofi_domain.h).
class OfiQueue {
 public:
  // With a descriptor to wait on, where the provider has one.
  //   kIo  as libfabric says
  static Result<OfiQueue> Open(fid_fabric* fabric, fid_domain* domain);

  fid_cq* get() const { return queue_.get(); }
  // Takes every completion that is there, and moves on what is under way. False: it has failed.
  bool Drain();
  // Readable when Drain() may have something to do, if MayWait() was true after the last one; -1:
  // this provider has none.
  int wait_fd() const { return wait_fd_; }
  bool MayWait() const;

 private:
  OfiQueue(fid_fabric* fabric, fid_cq* queue) : fabric_(fabric), queue_(queue) {}

  bool TakeError();

  fid_fabric* fabric_;
  OfiHandle<fid_cq> queue_;
  int wait_fd_ = -1;
};

}  // namespace skep::rma
