#include "netindex/switch/switch_host.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "netindex/switch/icrc.h"
#include "netindex/xdp/unix_socket.h"

namespace skep::netindex {
namespace {

// Reads a whole bank; 0, or an errno.
uint32_t ReadBank(int file, SwitchBank* bank) {
  auto* const to = reinterpret_cast<char*>(bank);
  for (size_t at = 0; at < sizeof(*bank);) {
    const ssize_t got = pread(file, to + at, sizeof(*bank) - at, static_cast<off_t>(at));
    if (got < 0) return static_cast<uint32_t>(errno);
    if (got == 0) return EMSGSIZE;
    at += static_cast<size_t>(got);
  }
  return 0;
}

Status WithErrno(const char* what) { return {Code::kIo, what, static_cast<uint64_t>(errno)}; }

}  // namespace

Status SwitchHost::Start(std::string* problem) {
  const auto config = std::make_unique<SwitchConfig>();
  config->port = options_.port;
  config->duties = options_.duties;
  FillIcrcTables(config.get());
  if (!options_.service.empty() &&
      inet_pton(AF_INET, options_.service.c_str(), &config->service) != 1) {
    *problem = fmt::format("'{}' is no IPv4 address", options_.service);
    return {Code::kInvalidArgument, "no address"};
  }
  auto loaded = SwitchProgram::Load(*config, problem);
  if (!loaded) return loaded.error();
  program_.emplace(std::move(*loaded));
  for (const std::string& interface : options_.interfaces) {
    if (const Status s = AttachTo(interface, problem); !s.ok()) return s;
  }
  // Nobody of another user may connect.
  const mode_t mask = umask(S_IRWXG | S_IRWXO);
  std::optional<FileDescriptor> listener = xdp::ListenUnix(options_.socket);
  umask(mask);
  if (listener) {
    listener_ = std::move(*listener);
    return {};
  }
  *problem = fmt::format("{}: {}", options_.socket, std::strerror(errno));
  return WithErrno("the socket");
}

Status SwitchHost::AttachTo(const std::string& interface, std::string* problem) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) {
    *problem = fmt::format("{}: there is no such interface", interface);
    return {Code::kInvalidArgument, "no interface"};
  }
  auto link = program_->Attach(index, options_.mode);
  if (link) {
    links_.push_back(std::move(*link));
    return {};
  }
  const auto error = static_cast<int>(link.error().detail());
  *problem = fmt::format("{}: {}", interface,
                         error == EBUSY ? "another program has the hook" : std::strerror(error));
  return link.error();
}

void SwitchHost::Run(int end) {
  std::array<pollfd, 2> polled{};
  while (true) {
    polled[0] = {.fd = listener_.get(), .events = POLLIN, .revents = 0};
    polled[1] = {.fd = end, .events = POLLIN, .revents = 0};
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    if (polled[1].revents != 0) break;
    if (polled[0].revents != 0) Serve();
  }
  unlink(options_.socket.c_str());
}

void SwitchHost::Serve() {
  const FileDescriptor peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const timeval patience = {.tv_sec = kPatienceMs / 1000, .tv_usec = 0};
  if (!peer.valid() ||
      setsockopt(peer.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0) {
    return;
  }
  SwitchRequest request;
  const auto files = xdp::ReceiveWithFiles(peer.get(), &request, sizeof(request));
  if (!files || request.magic != kSwitchMagic) return;
  SwitchReply reply;
  if (request.layout != SWITCH_LAYOUT) {
    reply.error = EPROTO;
  } else if ((*files)[0].valid()) {
    reply.error = Install((*files)[0].get(), request.version);
  }
  reply.version = version_;
  reply.counters = program_->Counters();
  xdp::SendWithFiles(peer.get(), &reply, sizeof(reply), {});
}

uint32_t SwitchHost::Install(int file, uint32_t version) {
  const auto bank = std::make_unique<SwitchBank>();
  if (const uint32_t error = ReadBank(file, bank.get()); error != 0) return error;
  const Status status = program_->Install(*bank);
  if (!status.ok()) return static_cast<uint32_t>(status.detail());
  version_ = version;
  return 0;
}

}  // namespace skep::netindex
