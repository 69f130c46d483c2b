#include "server/datagrams.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "wire/packed_reply.h"

namespace skep {
namespace {

using packed::DatagramHead;
using packed::Header;
using packed::Kind;

// Room for an error.
constexpr size_t kReplyBytesMin = 256;

// Whether the message needs nothing that belongs to a connection.
bool IsAlone(Kind kind) {
  return packed::IsBatch(kind) || kind == Kind::kPing || kind == Kind::kKeyspace ||
         kind == Kind::kStatistics;
}

// The header of the message that is the rest of a datagram behind its head; nullopt if it is none.
std::optional<Header> MessageOf(std::string_view datagram) {
  if (datagram.size() < sizeof(DatagramHead) + sizeof(Header)) return std::nullopt;
  datagram.remove_prefix(sizeof(DatagramHead));
  const auto header = packed::Read<Header>(datagram);
  const bool fits = header.payload_bytes == datagram.size() - sizeof(Header);
  if (!fits || !packed::IsKind(header.kind) || (header.flags & ~packed::kRequestFlags) != 0) {
    return std::nullopt;
  }
  return header;
}

}  // namespace

Datagrams::~Datagrams() {
  // The sessions of connections are gone: those that wait for a gate are datagrams'.
  gates_.DropIf([this](Session* session) {
    connections_.Charge(*session, 0);
    return true;
  });
  Stop();
}

Status Datagrams::Serve(std::unique_ptr<DatagramSocket> socket) {
  auto port = std::make_unique<DatagramPort>(std::move(socket));
  if (Status s = poller_.Add(port->socket(), port.get()); !s.ok()) return s;
  ports_.push_back(std::move(port));
  packed_.set_takes_datagrams();
  return {};
}

DatagramPort* Datagrams::Find(const void* tag) const {
  const auto port = std::ranges::find(ports_, tag, &std::unique_ptr<DatagramPort>::get);
  return port == ports_.end() ? nullptr : port->get();
}

void Datagrams::Stop() {
  for (const auto& port : ports_) poller_.Remove(port->socket());
}

void Datagrams::Receive(DatagramPort& port) {
  for (const Datagram& datagram : port.socket().Receive()) {
    Bump(turn_.statistics().input_bytes, datagram.bytes.size());
    if (port.IsFull()) {
      batch_.Flush();
      Send();
    }
    Dispatch(port, datagram);
  }
}

void Datagrams::DropOverdue() {
  gates_.DropIf([this](Session* session) {
    if (session->port == nullptr || !DatagramPort::IsOverdue(*session, turn_.monotonic_ms())) {
      return false;
    }
    connections_.UnqueueDatagram(*session);
    connections_.Charge(*session, 0);
    session->port->Drop(*session);
    return true;
  });
}

void Datagrams::Send() {
  if (ports_.empty()) return;
  for (Session* const session : connections_.TakeQueuedDatagrams()) {
    session->port->Answer(*session);
    // A reply that waits for a gate may stay for long; any other leaves now.
    const bool waits = session->waiting;
    connections_.Charge(*session,
                        waits ? session->out.capacity() + session->packed->held_bytes() : 0);
  }
  for (const auto& port : ports_) Bump(turn_.statistics().output_bytes, port->Send());
}

void Datagrams::Dispatch(DatagramPort& port, const Datagram& datagram) {
  const auto header = MessageOf(datagram.bytes);
  if (!header || !packed::IsHello(datagram.bytes)) return turn_.CountError();
  // A datagram cannot log in. If a password is required, only one of a few KiB gets an error.
  const size_t bytes_max =
      turn_.options().requirepass.empty() ? kDatagramBytesMax : kStrangerBytesMax;
  if (datagram.bytes.size() > bytes_max) return turn_.CountError();
  const auto head = packed::Read<DatagramHead>(datagram.bytes);
  const size_t asked = head.reply_bytes_max == 0 ? bytes_max : head.reply_bytes_max;
  const uint8_t why = head.version != packed::kVersion ? packed::kHelloVersion
                      : head.instance != 0 && head.instance != host_.state().instance()
                          ? packed::kHelloInstance
                          : packed::kHelloAccepted;
  Session* const session = port.Admit(
      datagram.peer, {.why = why, .client = head.client, .instance = host_.state().instance()},
      std::clamp(asked, kReplyBytesMin, bytes_max), turn_.monotonic_ms());
  if (session == nullptr) return turn_.CountError();
  if (why != packed::kHelloAccepted) return connections_.Queue(*session);
  if (!IsAlone(header->kind)) {
    packed::AppendFailure(session->out, *header,
                          {Code::kNotSupported, "a message of this kind needs a connection"});
    return connections_.Queue(*session);
  }
  hot_.Missed(datagram.bytes);
  packed_.Dispatch(*session, *header, datagram.bytes.substr(sizeof(DatagramHead) + sizeof(Header)));
}

}  // namespace skep
