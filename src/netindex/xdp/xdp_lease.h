// xdp_lease.h: a program in a driver's hook, and its map, that a helper with the privilege has
// attached for this process (xdp_offer.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "netindex/xdp/xdp_offer.h"
#include "skep/status.h"

namespace skep::xdp {

// Owner: one thread at a time.
class XdpLease {
 public:
  // Asks the helper that listens at `path`. Waits for it for some seconds. On an error *problem is
  // a line for a person.
  //   kIo           there is none, it does not answer, or the map cannot be mapped
  //   kUnavailable  it cannot attach a program
  static Result<XdpLease> Take(const std::string& path, std::string* problem);
  XdpLease(XdpLease&& other) noexcept;
  XdpLease& operator=(XdpLease&&) = delete;
  ~XdpLease();

  XdpMap& map() { return *map_; }
  const XdpOffer& offer() const { return offer_; }
  // Whether the helper lives. Does not wait.
  bool HelperIsThere() const;
  // Detaches the program. The map stays until this object goes.
  void Detach();

 private:
  XdpLease(FileDescriptor helper, FileDescriptor link, XdpMap* map, const XdpOffer& offer)
      : helper_(std::move(helper)), link_(std::move(link)), map_(map), offer_(offer) {}

  FileDescriptor helper_;
  FileDescriptor link_;
  XdpMap* map_;
  XdpOffer offer_;
};

}  // namespace skep::xdp
