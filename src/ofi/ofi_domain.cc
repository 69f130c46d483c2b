#include "ofi/ofi_domain.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/random.h"
#include "ofi/packet_channel.h"

namespace skep::rma {
namespace {

constexpr uint32_t kVersion = FI_VERSION(1, 17);

// A link may have so many sends and receives under way at once; a provider sets buffers aside for
// them. A Post of more operations waits.
constexpr size_t kSendsMax = 128;
constexpr size_t kReceivesMax = 64;

// The provider `shm` hands the addresses of this process's memory to its peers, if it is let, and
// does not look at keys then.
constexpr std::string_view kShm = "shm";

OfiInfo Hints(const std::string& provider) {
  OfiInfo hints(fi_allocinfo());
  if (hints == nullptr) return nullptr;
  hints->caps =
      FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  if (provider != kShm) hints->domain_attr->mr_mode |= FI_MR_VIRT_ADDR;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->size = kSendsMax;
  hints->rx_attr->size = kReceivesMax;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  return hints;
}

// libfabric reads these variables of the environment when it is first asked for anything. A
// variable that the user has set stays as it is.
//   rxm  sets 30 MB aside for each fid_ep, in buffers of 16 KiB, and clears them; a link's packets
//        are short.
//   shm  lets a peer copy to and from this process's memory by its addresses (process_vm_writev),
//        which may come late: when a link has ended, and what it was to read to is somebody else's.
void SetDefaults() {
  static const bool is_set = [] {
    constexpr int kKeep = 0;
    setenv("FI_OFI_RXM_BUFFER_SIZE", std::to_string(PacketChannel::kPacketBytes).c_str(), kKeep);
    setenv("FI_OFI_RXM_MSG_TX_SIZE", std::to_string(kSendsMax).c_str(), kKeep);
    setenv("FI_OFI_RXM_MSG_RX_SIZE", std::to_string(kSendsMax).c_str(), kKeep);
    setenv("FI_SHM_DISABLE_CMA", "1", kKeep);
    return true;
  }();
  static_cast<void>(is_set);
}

}  // namespace

OfiDomain::OfiDomain()
    : waited_(epoll_create1(EPOLL_CLOEXEC)),
      // An endpoint that is taken for another one knows none of its keys.
      last_key_(SystemRandom().Next() & 0xffff'ffff'ffff) {
  SKEP_CHECK(waited_.valid());
}

OfiDomain::~OfiDomain() {
  const MutexLock lock(SetUpMutex());
  domain_.reset();
  fabric_.reset();
}

Mutex& OfiDomain::SetUpMutex() {
  static Mutex mutex;
  return mutex;
}

Result<OfiInfo> OfiDomain::Find(const std::string& provider, const std::string& node) {
  const MutexLock lock(SetUpMutex());
  SetDefaults();
  const OfiInfo hints = Hints(provider);
  fi_info* found = nullptr;
  const int code = fi_getinfo(kVersion, node.empty() ? nullptr : node.c_str(), nullptr,
                              node.empty() ? 0 : uint64_t{FI_SOURCE}, hints.get(), &found);
  if (code == 0) return OfiInfo(found);
  return Fail(Code::kNotSupported,
              "libfabric has no such provider here, or not with messages, reads and writes",
              static_cast<uint64_t>(-code));
}

Result<std::shared_ptr<OfiDomain>> OfiDomain::Open(OfiInfo info) {
  std::shared_ptr<OfiDomain> made(new OfiDomain());
  const MutexLock lock(SetUpMutex());
  made->info_ = std::move(info);
  made->is_shm_ = made->info_->fabric_attr->prov_name == kShm;
  fid_fabric* fabric = nullptr;
  if (const int code = fi_fabric(made->info_->fabric_attr, &fabric, nullptr); code != 0) {
    return Fail(OfiError("libfabric opens no fabric", code));
  }
  made->fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  if (const int code = fi_domain(fabric, made->info_.get(), &domain, nullptr); code != 0) {
    return Fail(OfiError("libfabric opens no domain", code));
  }
  made->domain_.reset(domain);
  auto queue = OfiQueue::Open(fabric, domain);
  if (!queue) return Fail(queue.error());
  made->can_be_waited_for_ = queue->wait_fd() >= 0;
  return made;
}

Result<OfiHandle<fid_mr>> OfiDomain::Register(void* bytes, size_t size, uint64_t access,
                                              fid_ep* ep) {
  fid_mr* region = nullptr;
  int code = fi_mr_reg(domain_.get(), bytes, size, access, 0, ++last_key_, 0, &region, nullptr);
  if (code != 0) return Fail(OfiError("libfabric registers no memory", code));
  OfiHandle<fid_mr> made(region);
  if (!HasMode(FI_MR_ENDPOINT)) return made;
  code = fi_mr_bind(region, &ep->fid, 0);
  if (code == 0) code = fi_mr_enable(region);
  if (code != 0) return Fail(OfiError("libfabric binds no memory to its endpoint", code));
  return made;
}

Result<OfiHandle<fid_mr>> OfiDomain::RegisterLocal(void* bytes, size_t size, fid_ep* ep) {
  if (!HasMode(FI_MR_LOCAL)) return nullptr;
  return Register(bytes, size, FI_SEND | FI_RECV | FI_READ | FI_WRITE, ep);
}

Result<std::unique_ptr<OfiQueue>> OfiDomain::AddQueue() {
  auto opened = OfiQueue::Open(fabric_.get(), domain_.get());
  if (!opened) return Fail(opened.error());
  auto queue = std::make_unique<OfiQueue>(std::move(*opened));
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = queue.get()}};
  if (queue->wait_fd() >= 0 &&
      epoll_ctl(waited_.get(), EPOLL_CTL_ADD, queue->wait_fd(), &event) != 0) {
    return Fail(Code::kIo, "the descriptor of libfabric cannot be polled",
                static_cast<uint64_t>(errno));
  }
  queues_.push_back(queue.get());
  return queue;
}

void OfiDomain::RemoveQueue(OfiQueue& queue) {
  if (queue.wait_fd() >= 0) epoll_ctl(waited_.get(), EPOLL_CTL_DEL, queue.wait_fd(), nullptr);
  std::erase(queues_, &queue);
}

bool OfiDomain::Drain() {
  bool is_good = true;
  for (OfiQueue* const queue : queues_) is_good = queue->Drain() && is_good;
  return is_good;
}

bool OfiDomain::MayWait() const {
  return std::ranges::all_of(queues_, [](const OfiQueue* queue) { return queue->MayWait(); });
}

}  // namespace skep::rma
