// ofi_handle.h: owners of what libfabric makes, and its errors.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <memory>

#include "skep/status.h"

namespace skep::rma {

struct OfiClose {
  template <typename T>
  void operator()(T* object) const {
    static_cast<void>(fi_close(&object->fid));
  }
};
template <typename T>
using OfiHandle = std::unique_ptr<T, OfiClose>;

struct OfiFreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using OfiInfo = std::unique_ptr<fi_info, OfiFreeInfo>;

// `code` is what a function of libfabric returned; the detail is its errno, or a number of
// libfabric's own above 255.
inline Status OfiError(const char* what, ssize_t code) {
  return Status(Code::kIo, what, static_cast<uint64_t>(code < 0 ? -code : code));
}

}  // namespace skep::rma
