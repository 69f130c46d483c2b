#include "bench/net/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/network_socket.h"

namespace skep::bench {

NetLane::NetLane(StreamConnection connection, std::unique_ptr<NetProtocol> protocol, uint32_t depth)
    : connection_(std::move(connection)),
      descriptor_(connection_->descriptor()),
      protocol_(std::move(protocol)),
      depth_(depth),
      ring_(std::bit_ceil(size_t{depth} + 1)) {}

NetLane::NetLane(std::unique_ptr<DatagramSocket> socket, std::unique_ptr<NetProtocol> protocol,
                 uint32_t depth)
    : datagrams_(std::move(socket)),
      descriptor_(static_cast<SocketDatagrams&>(*datagrams_).fd()),
      protocol_(std::move(protocol)),
      depth_(depth),
      ring_(std::bit_ceil(size_t{depth} + 1)) {}

void NetLane::Take(const OpStream& stream, const ValuePool& values, uint32_t group, bool again) {
  stream_ = &stream;
  values_ = &values;
  group_ = group;
  again_ = again;
  next_ = 0;
}

void NetLane::Issue(uint64_t meant_ns) {
  const YcsbOp op = stream_->at(next_);
  if (op.kind == OpKind::kReadModifyWrite) {
    Push({.kind = OpKind::kRead, .count = 1}, meant_ns, 0);
    Push({.kind = OpKind::kUpdate, .count = 1}, meant_ns, 1);
    next_ += 1;
  } else {
    const auto left = stream_->size() - next_;
    const auto count = static_cast<uint32_t>(std::min<size_t>(group_, left));
    Push({.kind = op.kind, .count = count, .items = op.scan_items}, meant_ns, count);
    next_ += count;
  }
  if (again_ && next_ == stream_->size()) next_ = 0;
}

void NetLane::Push(const NetAsked& asked, uint64_t meant_ns, uint32_t operations) {
  if (datagrams_ != nullptr) protocol_->AppendFrame(static_cast<uint32_t>(end_), out_);
  protocol_->Encode(asked, *stream_, next_, *values_, out_);
  if (datagrams_ != nullptr) ends_.push_back(out_.size());
  ring_[end_++ & (ring_.size() - 1)] = {
      .meant_ns = meant_ns, .asked = asked, .operations = operations};
}

Status NetLane::Send() {
  if (datagrams_ != nullptr) {
    SendDatagrams();
    return {};
  }
  const Result<size_t> sent = connection_->Send(std::string_view(out_).substr(sent_));
  if (!sent) return sent.error();
  sent_ += *sent;
  if (!has_unsent()) {
    out_.clear();
    sent_ = 0;
  }
  return {};
}

void NetLane::SendDatagrams() {
  send_.clear();
  size_t begin = 0;
  for (const size_t end : ends_) {
    send_.push_back({.peer = {}, .bytes = std::string_view(out_).substr(begin, end - begin)});
    begin = end;
  }
  datagrams_->Send(send_);
  ends_.clear();
  out_.clear();
}

std::string NetLane::Unreadable(std::string_view bytes) {
  constexpr size_t kShown = 60;
  return fmt::format("what the server sent is no answer to what was asked: {:?}",
                     bytes.substr(0, std::min(bytes.find('\r'), kShown)));
}

}  // namespace skep::bench
