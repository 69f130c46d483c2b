#include "netindex/xdp/xdp_helper.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "netindex/xdp/unix_socket.h"

namespace skep::xdp {
namespace {

template <size_t kBytes>
void CopyText(char (&to)[kBytes], std::string_view from) {
  std::memcpy(to, from.data(), std::min(from.size(), kBytes - 1));
}

// The answer of a program in a veth's own hook waits in the ring of the other end, for ever if that
// end has no program. So kAuto does not choose that hook.
bool IsVeth(const std::string& interface) {
  const FileDescriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  ifreq request{};
  CopyText(request.ifr_name, interface);
  request.ifr_data = reinterpret_cast<char*>(&driver);
  return ioctl(any.get(), SIOCETHTOOL, &request) == 0 && std::string_view(driver.driver) == "veth";
}

}  // namespace

Status XdpHelper::Start(std::string* problem) {
  const auto fail = [&](std::string_view what) {
    const int error = errno;
    *problem = fmt::format("{}: {}", what, std::strerror(error));
    return Status{Code::kIo, "the helper cannot start", static_cast<uint64_t>(error)};
  };
  const passwd* user = nullptr;
  if (!options_.user.empty() && (user = getpwnam(options_.user.c_str())) == nullptr) {
    *problem = fmt::format("there is no user {}", options_.user);
    return {Code::kInvalidArgument, "there is no such user"};
  }
  // Nobody else may connect, also before the socket has its owner.
  const mode_t mask = umask(S_IRWXG | S_IRWXO);
  std::optional<FileDescriptor> listener = ListenUnix(options_.socket);
  umask(mask);
  if (!listener) return fail(options_.socket);
  if (user != nullptr && chown(options_.socket.c_str(), user->pw_uid, user->pw_gid) != 0) {
    return fail(options_.socket);
  }
  listener_ = std::move(*listener);
  return {};
}

void XdpHelper::Run(int end) {
  std::array<pollfd, 3> polled{};
  while (true) {
    // The server first: its place is free before another one is asked about.
    polled[0] = {.fd = server_.get(), .events = POLLIN, .revents = 0};
    polled[1] = {.fd = listener_.get(), .events = POLLIN, .revents = 0};
    polled[2] = {.fd = end, .events = POLLIN, .revents = 0};
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    if (polled[2].revents != 0) break;
    if (polled[0].revents != 0) AwaitServerEnd();
    if (polled[1].revents != 0) Accept();
  }
  unlink(options_.socket.c_str());
}

// A server sends nothing: what can be read is the end.
void XdpHelper::AwaitServerEnd() {
  FileDescriptor(std::move(server_));
  report_(fmt::format("{}: the server has gone, its program is detached", options_.interface));
}

void XdpHelper::Accept() {
  FileDescriptor server(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!server.valid()) return;
  std::optional<XdpHook> hook;
  std::optional<XdpHook::Link> link;
  const XdpOffer offer = Offer(&hook, &link);
  if (!link) {
    report_(offer.problem);
    SendWithFiles(server.get(), &offer, sizeof(offer), {});
    return;
  }
  const std::array<int, kFilesMax> files = {hook->map_fd(), link->file.get()};
  if (!SendWithFiles(server.get(), &offer, sizeof(offer), files)) return;
  report_(fmt::format("{}: attached for a server on port {}, {}", options_.interface, options_.port,
                      link->is_native ? "native" : "generic"));
  server_ = std::move(server);
}

XdpOffer XdpHelper::Offer(std::optional<XdpHook>* hook, std::optional<XdpHook::Link>* link) {
  XdpOffer offer;
  CopyText(offer.interface, options_.interface);
  const auto refuse = [&](std::string_view why) {
    CopyText(offer.problem, fmt::format("{}: {}", options_.interface, why));
    return offer;
  };
  const unsigned interface = if_nametoindex(options_.interface.c_str());
  if (interface == 0) return refuse("there is no such interface");
  offer.config = ConfigOfInterface();
  if (offer.config.addresses[0] == 0) return refuse("it has no IPv4 address");
  std::string problem;
  auto loaded = XdpHook::Load(offer.config, &problem);
  if (!loaded) return refuse(problem);
  const bool takes_generic = options_.mode == Mode::kAuto && IsVeth(options_.interface);
  auto attached = loaded->Attach(interface, takes_generic ? Mode::kGeneric : options_.mode);
  if (!attached) {
    const auto error = static_cast<int>(attached.error().detail());
    return refuse(error == EBUSY ? "another program, or server, has the hook"
                                 : std::strerror(error));
  }
  offer.is_native = attached->is_native ? 1 : 0;
  *hook = std::move(*loaded);
  *link = std::move(*attached);
  return offer;
}

XdpConfig XdpHelper::ConfigOfInterface() const {
  XdpConfig config{};
  config.port = options_.port;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return config;
  size_t count = 0;
  for (const ifaddrs* one = all; one != nullptr && count < XDP_ADDRESSES_MAX; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if (options_.interface != one->ifa_name) continue;
    sockaddr_in address;
    std::memcpy(&address, one->ifa_addr, sizeof(address));
    config.addresses[count++] = address.sin_addr.s_addr;
  }
  freeifaddrs(all);
  return config;
}

}  // namespace skep::xdp
