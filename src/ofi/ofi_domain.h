// ofi_domain.h: a provider of libfabric as one endpoint uses it.
//
// Everything of libfabric that an endpoint has is used under one mutex, by the endpoint's owner and
// by the thread that stands in for it (stand_in.h). The provider is told so (FI_THREAD_DOMAIN), and
// is asked for no threads of its own (FI_PROGRESS_MANUAL): Drain() moves on what is under way, that
// of peers on this endpoint's memory included.
//
// Each link has a completion queue of its own, since rxm of libfabric 1.17 leaves a closed fid_ep
// in its queue's list of what is to be waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "ofi/ofi_handle.h"
#include "ofi/ofi_queue.h"
#include "rma/fabric.h"

namespace skep::rma {

// Endpoints of one process are opened and closed one after the other (SetUpMutex): libfabric keeps
// lists of what is open.
//
// Thread safety: `mutex` is held for all but the mutex itself, info(), wait_fd() and
// CanBeWaitedFor().
class OfiDomain {
 public:
  // Held while anything of libfabric is opened or closed; taken after `mutex`.
  static Mutex& SetUpMutex();

  // Asks libfabric what the provider can do for endpoints with the address `node`; an empty `node`
  // stands for any address.
  //   kNotSupported  there is no such provider here, or it lacks something
  static Result<OfiInfo> Find(const std::string& provider, const std::string& node);
  //   kIo  as libfabric says
  static Result<std::shared_ptr<OfiDomain>> Open(OfiInfo info);

  const fi_info& info() const { return *info_; }
  fid_domain* domain() const { return domain_.get(); }
  // Whether it is the provider of libfabric that shm_neighbours.h is about.
  bool IsShm() const { return is_shm_; }
  bool HasMode(int mr_mode) const { return (info_->domain_attr->mr_mode & mr_mode) != 0; }

  // Registers memory under a key that it has not used before. `ep` is enabled.
  //   kIo  as libfabric says
  Result<OfiHandle<fid_mr>> Register(void* bytes, size_t size, uint64_t access, fid_ep* ep);
  // The same for memory that this side alone names; null where the provider needs none.
  Result<OfiHandle<fid_mr>> RegisterLocal(void* bytes, size_t size, fid_ep* ep);

  // A queue that is drained with the others until it is removed.
  //   kIo  as libfabric says
  Result<std::unique_ptr<OfiQueue>> AddQueue();
  void RemoveQueue(OfiQueue& queue);
  // Drains all queues. False: one has failed.
  bool Drain();

  // Readable when Drain() may have something to do, if MayWait() was true after the last one.
  int wait_fd() const { return waited_.get(); }
  // False: this provider does not wake anybody, and is drained from time to time.
  bool CanBeWaitedFor() const { return can_be_waited_for_; }
  bool MayWait() const;

  ~OfiDomain();

  Mutex mutex;

 private:
  OfiDomain();

  OfiInfo info_;
  OfiHandle<fid_fabric> fabric_;
  OfiHandle<fid_domain> domain_;
  FileDescriptor waited_;  // an epoll of the queues
  std::vector<OfiQueue*> queues_;
  bool can_be_waited_for_ = true;
  bool is_shm_ = false;
  uint64_t last_key_ = 0;
};

}  // namespace skep::rma
