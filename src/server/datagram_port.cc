#include "server/datagram_port.h"

#include <utility>

#include "wire/packed_reply.h"

namespace skep {
namespace {

constexpr size_t kKeptCapacityMax = 1024;  // of a session's buffer between messages

}  // namespace

Session* DatagramPort::Admit(const DatagramPeer& peer, const packed::DatagramHead& head,
                             size_t reply_bytes_max) {
  if (IsFull()) return nullptr;
  if (free_.empty()) {
    DatagramSession& made = *pool_.emplace_back(std::make_unique<DatagramSession>());
    made.packed = std::make_unique<PackedSession>(0);
    made.port = this;
    made.authenticated = false;  // no login comes as a datagram
    made.has_logged_in = false;
    free_.push_back(&made);
  }
  DatagramSession& session = *free_.back();
  free_.pop_back();
  session.peer = peer;
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
    const Status why(Code::kTooLarge, "it is done, but its reply does not fit into a datagram",
                     session.out.size());
    session.out.resize(kHead);
    packed::AppendFailure(session.out, header, why);
  }
  auto& answered = static_cast<DatagramSession&>(session);
  answered_.push_back(&answered);
  replies_.push_back({.peer = answered.peer, .bytes = answered.out});
}

uint64_t DatagramPort::Send() {
  if (replies_.empty()) return 0;
  socket_->Send(replies_);
  replies_.clear();
  uint64_t bytes = 0;
  for (DatagramSession* const session : answered_) {
    bytes += session->out.size();
    session->out.clear();
    if (session->out.capacity() > kKeptCapacityMax) std::string().swap(session->out);
    free_.push_back(session);
  }
  answered_.clear();
  return bytes;
}

}  // namespace skep
