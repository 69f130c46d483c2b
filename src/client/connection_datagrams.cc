// The datagrams of a connection.
#include <algorithm>

#include "client/connection.h"
#include "skep/copy_bytes.h"

namespace skep::client {
namespace {

constexpr size_t kDatagramMax = 1400;  // bytes of a datagram: they fit into a packet of most links
constexpr uint16_t kDatagramReplyMax = 32'768;  // bytes of a reply: several packets, if need be
constexpr uint64_t kAnswerMs = 20;
constexpr uint32_t kTriesMax = 3;
constexpr uint32_t kSilentMax = 3;

}  // namespace

// If this fails everything goes on the stream.
void Connection::OpenDatagrams() {
  if (!options_.datagrams || (hello_.features & packed::kTakesDatagrams) == 0) return;
  auto socket = network_.ConnectDatagrams(stream_->peer());
  if (!socket || !poller_->Add(**socket, this).ok()) return;
  datagrams_ = std::move(*socket);
  silent_ = 0;
}

void Connection::CloseDatagrams() {
  if (datagrams_ != nullptr) poller_->Remove(*datagrams_);
  datagrams_.reset();
}

// The message may have to be sent again as it is, and may arrive twice.
bool Connection::FitsDatagram(const Message& message) const {
  const bool is_done_once = message.may_repeat || (message.remembered && client_ != 0);
  return datagrams_ != nullptr &&
         packed::IsBatch(packed::Read<packed::Header>(message.bytes).kind) &&
         message.generation == 0 && is_done_once &&
         sizeof(packed::DatagramHead) + message.bytes.size() <= kDatagramMax;
}

// Notes first when to send it again, because there may be no memory for that.
void Connection::SendDatagram(Message& message, uint64_t now_ms) {
  datagram_.clear();
  packed::Append(datagram_, packed::DatagramHead{.reply_bytes_max = kDatagramReplyMax,
                                                 .client = client_,
                                                 .instance = hello_.instance});
  datagram_.append(message.bytes);
  if (due_.empty() && has_leader_) poller_->Wake();  // to wait for this one, too
  due_.push_back({.when_ms = now_ms + kAnswerMs, .id = message.header.id});
  ++message.tries;
  const Datagram one{.peer = {}, .bytes = datagram_};
  datagrams_->Send({&one, 1});
}

// Sends the datagrams again that had no reply for a while.
void Connection::SendDue(uint64_t now_ms) {
  while (!due_.empty()) {
    const auto [when_ms, id] = due_.front();
    const auto found = under_way_.find(id);
    const bool waits = found != under_way_.end() && found->second->tries > 0;
    if (waits && when_ms > now_ms) return;
    due_.pop_front();
    if (!waits) continue;
    Message& message = *found->second;
    if (datagrams_ != nullptr && message.tries < kTriesMax) {
      SendDatagram(message, now_ms);
    } else {
      message.tries = 0;
      out_.append(message.bytes);
      if (++silent_ >= kSilentMax) CloseDatagrams();
    }
  }
}

void Connection::TakeDatagrams() {
  if (datagrams_ == nullptr) return;
  for (const Datagram& datagram : datagrams_->Receive()) TakeDatagram(datagram.bytes);
}

// Skips a datagram that is no reply to a message under way.
void Connection::TakeDatagram(std::string_view bytes) {
  if (bytes.size() < sizeof(packed::DatagramHead) + sizeof(packed::Header)) return;
  const auto head = packed::Read<packed::DatagramHead>(bytes);
  if (!packed::IsHello(bytes) || head.why != packed::kHelloAccepted || head.client != client_) {
    return;
  }
  bytes.remove_prefix(sizeof(head));
  const auto header = packed::Read<packed::Header>(bytes);
  bytes.remove_prefix(sizeof(header));
  const auto found = under_way_.find(header.id);
  if (header.payload_bytes != bytes.size() || found == under_way_.end()) return;
  const Message& message = *found->second;
  if (IsQueued(message) || packed::Read<packed::Header>(message.bytes).kind != header.kind) return;
  last_active_ms_ = clock_.MonotonicMs();
  silent_ = 0;
  auto payload = std::make_unique_for_overwrite<char[]>(bytes.size());
  CopyBytes(payload.get(), bytes.data(), bytes.size());
  Deliver(header, std::move(payload), Way::kDatagram);
}

}  // namespace skep::client
