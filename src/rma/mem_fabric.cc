#include "rma/mem_fabric.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/lazy_huge_pages.h"
#include "base/network_socket.h"
#include "base/prefetch.h"
#include "rma/descriptor_stream.h"
#include "rma/mem_fence.h"
#include "rma/stream_endpoint.h"
#include "rma/word_copy.h"

namespace skep::rma {
namespace {

constexpr uint32_t kOperationsMax = 4096;
// How many operations' lines are asked for before the first is copied, and how many bytes of each:
// a core has some tens of misses under way, and follows by itself where bytes are in a row.
constexpr size_t kAhead = 64;
constexpr uint32_t kBytesAhead = 256;

class MemEndpoint final : public StreamEndpoint {
 public:
  MemEndpoint(Network& network, Clock& clock, const EndpointOptions& options)
      : StreamEndpoint({.network = network,
                        .clock = clock,
                        .kind = FabricKind::kMem,
                        .address_prefix = "unix:",
                        .post_bytes_max = 0,
                        .polls_between_waits = 64},
                       options) {}

  Status Open();

  const Capabilities& capabilities() const override { return capabilities_; }
  void Post(PeerId peer, uint64_t token, std::span<const Operation> operations) override;
  // Post has read everything.
  bool Abandon(PeerId, uint64_t) override { return true; }
  bool Fence(PeerId peer) override;

 private:
  struct MemPeer final : Peer {
    MemPeer(std::unique_ptr<Stream> owned, std::unique_ptr<DescriptorStream> passing)
        : Peer(std::move(owned), *passing), descriptors(std::move(passing)) {}

    std::unique_ptr<DescriptorStream> descriptors;
    std::vector<SharedMemory> mapped;  // by region; gone before the stream is, for a fence's E1
    std::vector<std::byte*> begins;    // of these
    std::vector<LazyHugePages> pages;  // of these
    std::optional<PeerProcess> process;
  };

  using StreamEndpoint::Disconnect;

  std::unique_ptr<Peer> NewPeer(std::unique_ptr<Stream> stream) override;
  Status BeforeHello(Peer& peer, Hello& hello) override;
  Status Join(Peer& peer) override;
  void EndOperations(Peer& peer) override;
  void Leave(Peer& peer) override;

  static std::byte* Find(const MemPeer& peer, const Operation& operation);
  static void Copy(MemPeer& peer, const Operation& operation, std::byte* at);
  static Status CarryOut(MemPeer& peer, std::span<const Operation> operations);
  bool MayBeWritten() const;

  const Capabilities capabilities_ = {.name = "mem",
                                      .one_sided = true,
                                      .post_operations_max = kOperationsMax,
                                      .post_bytes_max = std::numeric_limits<uint64_t>::max()};
  std::vector<FileDescriptor> read_only_;  // of the regions that are only read
  std::vector<int> descriptors_;           // of all regions
  std::map<PeerId, MemFence> fences_;      // of peers that have left and may still write
};

// What peers may write is sent with the descriptor it has, other memory with one to read with.
Status MemEndpoint::Open() {
  if (const Status s = Begin(); !s.ok()) return s;
  for (const Region& region : options().regions) {
    if (region.access == Access::kReadWrite) {
      descriptors_.push_back(region.memory->fd());
      continue;
    }
    auto file = region.memory->ReadOnlyDescriptor();
    if (!file) return file.error();
    descriptors_.push_back(file->get());
    read_only_.push_back(std::move(*file));
  }
  return {};
}

std::unique_ptr<MemEndpoint::Peer> MemEndpoint::NewPeer(std::unique_ptr<Stream> stream) {
  auto passing = std::make_unique<DescriptorStream>(static_cast<SocketStream&>(*stream));
  return std::make_unique<MemPeer>(std::move(stream), std::move(passing));
}

Status MemEndpoint::BeforeHello(Peer& peer, Hello&) {
  static_cast<MemPeer&>(peer).descriptors->SendWithNext(descriptors_);
  return {};
}

// Maps the peer's regions.
Status MemEndpoint::Join(Peer& joining) {
  auto& peer = static_cast<MemPeer&>(joining);
  std::vector<FileDescriptor> files = peer.descriptors->TakeReceived();
  if (files.size() != peer.hello.regions.size()) {
    return Status(Code::kCorrupt, "the peer sent other descriptors than it has regions");
  }
  for (size_t i = 0; i < files.size(); ++i) {
    auto memory = SharedMemory::Map(std::move(files[i]));
    if (!memory) return memory.error();
    const RegionExtent& told = peer.hello.regions[i];
    if (memory->size() != told.bytes ||
        memory->is_writable() != (told.access == Access::kReadWrite)) {
      return Status(Code::kCorrupt, "the peer sent a region that is not as it says");
    }
    peer.mapped.push_back(std::move(*memory));
    peer.begins.push_back(peer.mapped.back().begin());
    peer.pages.emplace_back(peer.mapped.back().memory());
  }
  peer.process.emplace(static_cast<SocketStream&>(*peer.stream));
  return {};
}

// Where the operation's bytes are, or null if the peer does not allow it.
std::byte* MemEndpoint::Find(const MemPeer& peer, const Operation& operation) {
  if (!Allow(peer.hello.regions, operation)) return nullptr;
  return peer.begins[operation.region] + operation.offset;
}

void MemEndpoint::Copy(MemPeer& peer, const Operation& operation, std::byte* at) {
  if (operation.kind == Operation::Kind::kRead) {
    return ReadWords(at, operation.local, operation.bytes);
  }
  WriteWords(operation.local, at, operation.bytes);
  peer.pages[operation.region].Written(peer.mapped[operation.region].memory(), operation.offset,
                                       operation.offset + operation.bytes);
}

// Lines are asked for one right after the other, without the checks between them: so more misses
// are under way at once (prefetch.h).
Status MemEndpoint::CarryOut(MemPeer& peer, std::span<const Operation> operations) {
  if (operations.size() > kOperationsMax) {
    return Status(Code::kTooLarge, "a Post has too many operations", kOperationsMax);
  }
  std::array<std::byte*, kAhead> at;
  while (!operations.empty()) {
    const auto some = operations.first(std::min(kAhead, operations.size()));
    for (size_t i = 0; i < some.size(); ++i) {
      at[i] = Find(peer, some[i]);
      if (at[i] != nullptr) continue;
      return Status(Code::kInvalidArgument, "an operation is not within the peer's regions");
    }
    for (size_t i = 0; i < some.size(); ++i) {
      FetchLines(at[i], at[i] + std::min(some[i].bytes, kBytesAhead));
    }
    for (size_t i = 0; i < some.size(); ++i) Copy(peer, some[i], at[i]);
    operations = operations.subspan(some.size());
  }
  return {};
}

void MemEndpoint::Post(PeerId id, uint64_t token, std::span<const Operation> operations) {
  auto* const peer = static_cast<MemPeer*>(FindJoined(id));
  const Status status = peer == nullptr ? Gone() : CarryOut(*peer, operations);
  AddEvent({.kind = Event::Kind::kDone, .peer = id, .token = token, .status = status});
}

void MemEndpoint::EndOperations(Peer& peer) { static_cast<MemPeer&>(peer).mapped.clear(); }

bool MemEndpoint::MayBeWritten() const {
  return std::ranges::any_of(
      regions(), [](const auto& region) { return region.access == Access::kReadWrite; });
}

void MemEndpoint::Leave(Peer& left) {
  auto& peer = static_cast<MemPeer&>(left);
  if (!peer.process || !MayBeWritten()) return;
  std::erase_if(fences_, [](const auto& fence) { return fence.second.IsOver(); });
  std::unique_ptr<SocketStream> socket(static_cast<SocketStream*>(peer.stream.release()));
  MemFence fence(std::move(socket), std::move(*peer.process));
  if (!fence.IsOver()) fences_.emplace(peer.id, std::move(fence));
}

bool MemEndpoint::Fence(PeerId peer) {
  Disconnect(peer);
  const auto fence = fences_.find(peer);
  if (fence == fences_.end()) return true;
  if (!fence->second.IsOver()) return false;
  fences_.erase(fence);
  return true;
}

}  // namespace

Result<std::unique_ptr<Endpoint>> MemFabric::Open(const EndpointOptions& options) {
  auto endpoint = std::make_unique<MemEndpoint>(network_, clock_, options);
  if (const Status s = endpoint->Open(); !s.ok()) return Fail(s);
  return endpoint;
}

}  // namespace skep::rma
