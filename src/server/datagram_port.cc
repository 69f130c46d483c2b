#include "server/datagram_port.h"

#include <utility>

#include "wire/packed_reply.h"

namespace skep {
namespace {

constexpr size_t kKeptCapacityMax = 1024;  // capacity of a session's buffer between messages

}  // namespace

void FitIntoDatagram(std::string& out, size_t begin, const packed::Header& header,
                     size_t datagram_bytes_max) {
  const size_t bytes = sizeof(packed::DatagramHead) + out.size() - begin;
  if (bytes <= datagram_bytes_max) return;
  out.resize(begin);
  out.shrink_to_fit();
  packed::AppendFailure(
      out, header,
      {Code::kTooLarge, "it is done, but its reply does not fit into a datagram", bytes});
}

Session* DatagramPort::Admit(const DatagramPeer& peer, const packed::DatagramHead& head,
                             size_t reply_bytes_max, uint64_t now_ms) {
  if (IsFull()) return nullptr;
  if (free_.empty()) {
    DatagramSession& made = *pool_.emplace_back(std::make_unique<DatagramSession>());
    made.packed = std::make_unique<PackedSession>(0);
    made.port = this;
    made.authenticated = false;  // a login cannot come as a datagram
    made.has_logged_in = false;
    free_.push_back(&made);
  }
  DatagramSession& session = *free_.back();
  free_.pop_back();
  session.peer = peer;
  session.admitted_ms = now_ms;
  session.packed->set_client(head.client);
  session.reply_bytes_max = reply_bytes_max;
  session.closing = false;
  packed::Append(session.out, head);
  return &session;
}

void DatagramPort::Answer(Session& session) {
  constexpr size_t kHead = sizeof(packed::DatagramHead);
  if (session.waiting || session.task != nullptr) return;
  if (session.out.size() > session.reply_bytes_max) {
    const auto header = packed::Read<packed::Header>(std::string_view(session.out).substr(kHead));
    FitIntoDatagram(session.out, kHead, header, session.reply_bytes_max);
  }
  auto& answered = static_cast<DatagramSession&>(session);
  answered_.push_back(&answered);
  replies_.push_back({.peer = answered.peer, .bytes = answered.out});
}

void DatagramPort::Drop(Session& session) {
  session.waiting = false;
  session.packed->DropHeld();
  Free(static_cast<DatagramSession&>(session));
}

void DatagramPort::Free(DatagramSession& session) {
  session.out.clear();
  if (session.out.capacity() > kKeptCapacityMax) std::string().swap(session.out);
  free_.push_back(&session);
}

uint64_t DatagramPort::Send() {
  if (replies_.empty()) return 0;
  socket_->Send(replies_);
  replies_.clear();
  uint64_t bytes = 0;
  for (DatagramSession* const session : answered_) {
    bytes += session->out.size();
    Free(*session);
  }
  answered_.clear();
  return bytes;
}

}  // namespace skep
