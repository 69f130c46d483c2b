#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>

#include "base/check.h"
#include "base/network_socket.h"

namespace skep {
namespace {

// Enough for a busy turn; events that do not fit are reported by the next Wait, in epoll's round
// robin.
constexpr size_t kEventsMax = 512;

class EpollPoller final : public Poller {
 public:
  EpollPoller() : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, kWakeFlags)) {
    SKEP_CHECK(epoll_.valid() && wake_.valid());
    SKEP_CHECK(Control(EPOLL_CTL_ADD, wake_.get(), EPOLLIN, &wake_).ok());
  }

  Status Add(Stream& stream, void* tag, bool want_read, bool want_write) override {
    return Control(EPOLL_CTL_ADD, FdOf(stream), Interest(want_read, want_write), tag);
  }
  Status Change(Stream& stream, void* tag, bool want_read, bool want_write) override {
    return Control(EPOLL_CTL_MOD, FdOf(stream), Interest(want_read, want_write), tag);
  }
  // Control() fails only for a stream that was never added, and then there is nothing to do.
  void Remove(Stream& stream) override {
    static_cast<void>(Control(EPOLL_CTL_DEL, FdOf(stream), 0, nullptr));
  }
  Status Add(Listener& listener, void* tag) override {
    return Control(EPOLL_CTL_ADD, FdOf(listener), EPOLLIN, tag);
  }
  void Remove(Listener& listener) override {
    static_cast<void>(Control(EPOLL_CTL_DEL, FdOf(listener), 0, nullptr));
  }
  Status Add(DatagramSocket& socket, void* tag) override {
    return Control(EPOLL_CTL_ADD, FdOf(socket), EPOLLIN, tag);
  }
  void Remove(DatagramSocket& socket) override {
    static_cast<void>(Control(EPOLL_CTL_DEL, FdOf(socket), 0, nullptr));
  }

  // Events are copied, so later calls on streams cannot change the ones returned.
  std::span<const ReadyEvent> Wait(int timeout_ms) override {
    const int found =
        epoll_wait(epoll_.get(), found_.data(), static_cast<int>(found_.size()), timeout_ms);
    SKEP_CHECK(found >= 0 || errno == EINTR);
    size_t ready = 0;
    for (int i = 0; i < found; ++i) {
      if (found_[i].data.ptr == &wake_) {
        DrainWake();
      } else {
        ready_[ready++] = Translate(found_[i]);
      }
    }
    return std::span(ready_).first(ready);
  }

  // The counter of the eventfd only has to be zero or not, and it cannot overflow.
  void Wake() override {
    const uint64_t one = 1;
    static_cast<void>(!write(wake_.get(), &one, sizeof(one)));
  }

 private:
  static constexpr int kWakeFlags = EFD_NONBLOCK | EFD_CLOEXEC;

  static int FdOf(const Stream& stream) { return static_cast<const SocketStream&>(stream).fd(); }
  static int FdOf(const Listener& listener) {
    return static_cast<const SocketListener&>(listener).fd();
  }
  static int FdOf(const DatagramSocket& socket) {
    return static_cast<const SocketDatagrams&>(socket).fd();
  }
  static uint32_t Interest(bool want_read, bool want_write) {
    return (want_read ? EPOLLIN | EPOLLRDHUP : 0u) | (want_write ? EPOLLOUT : 0u);
  }
  static ReadyEvent Translate(const epoll_event& event) {
    constexpr uint32_t kBroken = EPOLLERR | EPOLLHUP;
    return {.tag = event.data.ptr,
            .readable = (event.events & (EPOLLIN | EPOLLRDHUP | kBroken)) != 0,
            .writable = (event.events & (EPOLLOUT | kBroken)) != 0};
  }

  Status Control(int operation, int fd, uint32_t interest, void* tag) {
    epoll_event event = {.events = interest, .data = {.ptr = tag}};
    if (epoll_ctl(epoll_.get(), operation, fd, &event) == 0) return {};
    return Status(Code::kIo, "cannot poll a socket", static_cast<uint64_t>(errno));
  }

  void DrainWake() {
    uint64_t count;
    static_cast<void>(!read(wake_.get(), &count, sizeof(count)));
  }

  FileDescriptor epoll_;
  FileDescriptor wake_;  // the address of wake_ is its tag: no caller's tag can be equal
  std::array<epoll_event, kEventsMax> found_;
  std::array<ReadyEvent, kEventsMax> ready_;
};

}  // namespace

std::unique_ptr<Poller> NewEpollPoller() { return std::make_unique<EpollPoller>(); }

}  // namespace skep
