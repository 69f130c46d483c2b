// packet_channel.h: a stream of bytes over the messages of libfabric.
//
//   offset  size  field
//        0     4  consumed  packets that the sender has read so far, modulo 2^32
//        4     4  bytes     that follow; 0: the packet tells of `consumed` alone    little-endian
//        8        bytes
//
// Packets come in the order in which they were sent (FI_ORDER_SAS). Each side has receives posted
// for kWindow packets with bytes, and sends no more than that beyond what it knows to be consumed:
// so nothing piles up at a peer that does not read. A side that has consumed half a window more
// than it has told says so, in a packet without bytes if it has none to send; as the other one has
// sent a window at most since it last heard, at most kTold of these are on their way, for which
// receives are posted too. They are taken by whoever drains the queue, not by the reader.
//
// Progress: a writer waits for its peer to read, as with any stream; a reader waits for nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "ofi/ofi_domain.h"
#include "ofi/ofi_queue.h"

namespace skep::rma {

// Thread safety: the domain's mutex is held.
class PacketChannel final : public OfiCompleter {
 public:
  static constexpr size_t kPacketBytes = 2048;
  static constexpr uint32_t kWindow = 32;
  static constexpr uint32_t kTold = 2;

  // The domain outlives it.
  explicit PacketChannel(OfiDomain& domain) : domain_(domain) {}

  // Posts the receives. `ep` is enabled, and closed before this channel is gone.
  Status Begin(fid_ep* ep);
  void set_peer(fi_addr_t peer) { peer_ = peer; }

  // Both do as those of Stream: they return -EAGAIN when CanWrite() or CanRead() is false.
  ssize_t Write(std::string_view bytes);
  ssize_t Read(char* to, size_t bytes);
  bool CanWrite() const { return error_ == 0 && !free_.empty() && Unconsumed() < kWindow; }
  bool CanRead() const { return error_ == 0 && !received_.empty(); }
  // Does again what the provider had no room for, but what Write was given.
  void MoveOn();
  // Whether something waits for the provider to have room.
  bool Waits() const {
    return is_refused_ || !unposted_.empty() || consumed_ - told_ >= kWindow / 2;
  }
  int error() const { return error_; }

  void Complete(OfiContext& context, int error) override;

 private:
  static constexpr size_t kReceives = kWindow + kTold;
  static constexpr size_t kSends = kWindow + kTold;

  struct Header {
    uint32_t consumed;
    uint32_t bytes;
  };
  struct Buffer {
    OfiContext context;
    bool is_send = false;
    std::byte* memory = nullptr;
  };
  static constexpr size_t kBodyBytesMax = kPacketBytes - sizeof(Header);

  uint32_t Unconsumed() const { return sent_ - peer_consumed_; }
  void Fail(ssize_t code);
  bool Send(std::string_view bytes);
  void PostReceive(Buffer& buffer);
  void TakePacket(Buffer& buffer);
  void Consume();
  void* DescriptorOfMemory() const { return registered_ ? fi_mr_desc(registered_.get()) : nullptr; }

  OfiDomain& domain_;
  fid_ep* ep_ = nullptr;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::vector<std::byte> memory_;
  OfiHandle<fid_mr> registered_;
  std::vector<Buffer> buffers_;
  std::vector<Buffer*> free_;      // to send with
  std::deque<Buffer*> received_;   // with bytes that nobody has read
  std::vector<Buffer*> unposted_;  // receives that the provider had no room for
  size_t read_ = 0;                // bytes of the first received one
  uint32_t sent_ = 0;              // packets with bytes
  uint32_t peer_consumed_ = 0;     // of these
  uint32_t consumed_ = 0;
  uint32_t told_ = 0;        // of consumed_
  bool is_refused_ = false;  // the last packet that was to be sent
  int error_ = 0;
};

}  // namespace skep::rma
