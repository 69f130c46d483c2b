// xdp_helper.h: the process with the privilege: gives servers programs in a driver's hook
// (xdp_offer.h), one at a time.
//
// A server may be of another user. It decides what the program answers, but not where: the
// addresses and the port are the helper's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/file_descriptor.h"
#include "netindex/xdp/xdp_hook.h"
#include "netindex/xdp/xdp_offer.h"
#include "skep/status.h"

namespace skep::xdp {

struct HelperOptions {
  std::string interface;
  std::string socket;  // a path
  std::string user;    // who may connect; empty: the helper's own
  uint16_t port = 6379;
  Mode mode = Mode::kAuto;
};

class XdpHelper {
 public:
  using Report = std::function<void(std::string_view line)>;

  // `report` takes what a person should know.
  XdpHelper(HelperOptions options, Report report)
      : options_(std::move(options)), report_(std::move(report)) {}

  // Listens. On an error *problem is a line for a person.
  //   kInvalidArgument  no such user
  //   kIo               the errno of the socket
  Status Start(std::string* problem);
  // Serves until `end`, a descriptor, can be read. Then, or when the process ends, the server that
  // has the program sees its connection end, and lets the program go.
  void Run(int end);

 private:
  void Accept();
  XdpOffer Offer(std::optional<XdpHook>* hook, std::optional<XdpHook::Link>* link);
  XdpConfig ConfigOfInterface() const;
  void AwaitServerEnd();

  const HelperOptions options_;
  const Report report_;
  FileDescriptor listener_;
  FileDescriptor server_;
};

}  // namespace skep::xdp
