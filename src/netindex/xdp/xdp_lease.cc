#include "netindex/xdp/xdp_lease.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "netindex/xdp/unix_socket.h"

namespace skep::xdp {
namespace {

constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};

// The message that the helper has sent, and the descriptors of map and link that came with it.
struct Answer {
  XdpOffer offer;
  FileDescriptor map, link;
};

std::optional<Answer> Receive(int helper) {
  Answer answer;
  const XdpOffer expected;
  auto files = ReceiveWithFiles(helper, &answer.offer, sizeof(answer.offer));
  if (!files || std::memcmp(answer.offer.magic, expected.magic, sizeof(expected.magic)) != 0) {
    return std::nullopt;
  }
  answer.offer.interface[sizeof(answer.offer.interface) - 1] = '\0';
  answer.offer.problem[sizeof(answer.offer.problem) - 1] = '\0';
  answer.map = std::move((*files)[0]);
  answer.link = std::move((*files)[1]);
  return answer;
}

}  // namespace

Result<XdpLease> XdpLease::Take(const std::string& path, std::string* problem) {
  const auto fail = [&](Code code, std::string_view why) {
    const int error = errno;
    *problem = fmt::format("xdp {}: {}", path, why);
    return Fail(code, "no program in the driver's hook", static_cast<uint64_t>(error));
  };
  auto helper = ConnectUnix(path);
  if (!helper) {
    return fail(Code::kIo, fmt::format("there is no helper: {}; start skep-netindex xdp first",
                                       std::strerror(errno)));
  }
  setsockopt(helper->get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  std::optional<Answer> answer = Receive(helper->get());
  if (!answer) return fail(Code::kIo, "the helper does not answer, or is something else");
  if (answer->offer.layout != XDP_LAYOUT) {
    return fail(Code::kUnavailable, "the helper is of another version than the server");
  }
  if (answer->offer.problem[0] != '\0') return fail(Code::kUnavailable, answer->offer.problem);
  void* const map =
      mmap(nullptr, sizeof(XdpMap), PROT_READ | PROT_WRITE, MAP_SHARED, answer->map.get(), 0);
  if (map == MAP_FAILED || !answer->link.valid()) {
    return fail(Code::kIo, "the map of the helper cannot be mapped");
  }
  return XdpLease(std::move(*helper), std::move(answer->link), static_cast<XdpMap*>(map),
                  answer->offer);
}

XdpLease::XdpLease(XdpLease&& other) noexcept
    : helper_(std::move(other.helper_)),
      link_(std::move(other.link_)),
      map_(std::exchange(other.map_, nullptr)),
      offer_(other.offer_) {}

XdpLease::~XdpLease() {
  Detach();
  if (map_ != nullptr) munmap(map_, sizeof(XdpMap));
}

bool XdpLease::HelperIsThere() const {
  char byte;
  return recv(helper_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 &&
         (errno == EAGAIN || errno == EINTR);
}

void XdpLease::Detach() {
  FileDescriptor(std::move(link_));
  FileDescriptor(std::move(helper_));
}

}  // namespace skep::xdp
