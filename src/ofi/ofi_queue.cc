#include "ofi/ofi_queue.h"

#include <rdma/fi_eq.h>

#include <array>
#include <cerrno>
#include <span>

namespace skep::rma {

Result<OfiQueue> OfiQueue::Open(fid_fabric* fabric, fid_domain* domain) {
  fi_cq_attr attributes = {};
  attributes.format = FI_CQ_FORMAT_MSG;
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  if (fi_cq_open(domain, &attributes, &queue, nullptr) == 0) {
    OfiQueue made(fabric, queue);
    const int code = fi_control(&queue->fid, FI_GETWAIT, &made.wait_fd_);
    if (code == 0) return made;
    return Fail(OfiError("libfabric tells no descriptor of its queue", code));
  }
  attributes.wait_obj = FI_WAIT_NONE;
  const int code = fi_cq_open(domain, &attributes, &queue, nullptr);
  if (code != 0) return Fail(OfiError("libfabric opens no completion queue", code));
  return OfiQueue(fabric, queue);
}

bool OfiQueue::Drain() {
  std::array<fi_cq_msg_entry, 64> entries;
  for (;;) {
    const ssize_t count = fi_cq_read(queue_.get(), entries.data(), entries.size());
    if (count == -FI_EAGAIN) return true;
    if (count == -FI_EAVAIL) {
      if (!TakeError()) return false;
      continue;
    }
    if (count < 0) return false;
    for (const fi_cq_msg_entry& entry : std::span(entries).first(static_cast<size_t>(count))) {
      auto* const context = static_cast<OfiContext*>(entry.op_context);
      if (context != nullptr) context->completer->Complete(*context, 0);
    }
  }
}

bool OfiQueue::TakeError() {
  fi_cq_err_entry entry = {};
  const ssize_t count = fi_cq_readerr(queue_.get(), &entry, 0);
  if (count == -FI_EAGAIN) return true;
  if (count < 0) return false;
  auto* const context = static_cast<OfiContext*>(entry.op_context);
  if (context != nullptr) context->completer->Complete(*context, entry.err == 0 ? EIO : entry.err);
  return true;
}

bool OfiQueue::MayWait() const {
  if (wait_fd_ < 0) return true;
  fid* waited = &queue_->fid;
  return fi_trywait(fabric_, &waited, 1) == FI_SUCCESS;
}

}  // namespace skep::rma
