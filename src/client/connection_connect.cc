// Making a connection, and making it again.
#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "client/connection.h"

namespace skep::client {
namespace {

constexpr uint64_t kFirstPauseMs = 5;
constexpr uint64_t kPauseMaxMs = 1000;

constexpr Status kRefusedAfterwards(
    Code::kUnavailable, "the server refuses the client: whether it was done is not known");
constexpr Status kNotSkep(Code::kUnavailable, "the server does not speak the packed protocol");

}  // namespace

Status Connection::Connect() {
  const MutexLock lock(mutex_);
  if (IsConnected()) return {};
  return ConnectOnce(clock_.MonotonicMs() + options_.timeout_ms);
}

// Other threads may begin and end messages while this one waits.
Status Connection::ConnectOnce(uint64_t until_ms) {
  if (client_ == 0) TakeNewClient();
  int clients = 0;
  do {
    if (clients++ == kClientsMax) client_ = 0;
    auto made = [&, client = client_]() SKEP_REQUIRES(mutex_) {
      const MutexUnlock unlock(mutex_);
      return MakeLink(client, until_ms);
    }();
    if (!made) return made.error();
    if (Status s = poller_->Add(*made->stream, nullptr, true, false); !s.ok()) return s;
    stream_ = std::move(made->stream);
    hello_ = made->hello;
    wants_write_ = false;
    heard_ms_ = clock_.MonotonicMs();
    asked_for_sign_ = false;
    ++generation_;
  } while (!TakeNewIds());
  OpenDatagrams();
  return {};
}

Result<Connection::Link> Connection::MakeLink(uint64_t client, uint64_t until_ms) const {
  auto stream = network_.Connect(options_.address, PatienceMs(until_ms));
  if (!stream) {
    const Status s = stream.error();
    return s.code() == Code::kIo ? Fail(Code::kUnavailable, "cannot connect", s.detail()) : Fail(s);
  }
  Link link{.stream = std::move(*stream), .hello = {}};
  const auto poller = network_.NewPoller();
  if (Status s = poller->Add(*link.stream, nullptr, true, false); !s.ok()) return Fail(s);
  const Status shaken = Handshake(client, *link.stream, *poller, until_ms, &link.hello);
  poller->Remove(*link.stream);
  if (!shaken.ok()) return Fail(shaken);
  return link;
}

Status Connection::Handshake(uint64_t client, Stream& stream, Poller& poller, uint64_t until_ms,
                             packed::ServerHello* hello) const {
  std::string bytes;
  packed::Append(bytes, packed::ClientHello{.client = client});
  std::string reply;
  Status s = Exchange(stream, poller, bytes, sizeof(packed::ServerHello), until_ms, &reply);
  if (!s.ok()) return s;
  if (!packed::IsHello(reply)) return kNotSkep;
  *hello = packed::Read<packed::ServerHello>(reply);
  if (hello->version != packed::kVersion) {
    return {Code::kNotSupported, "the server speaks other versions of the protocol"};
  }
  // Batches are divided by these limits, so a server that takes nothing is refused.
  if (hello->operations_max == 0 || hello->message_bytes_max == 0) return kNotSkep;
  if ((hello->features & packed::kNeedsAuth) == 0) return {};
  bytes.clear();
  const size_t begin = packed::BeginMessage(bytes, {.kind = packed::Kind::kAuth});
  bytes.append(options_.password);
  packed::EndMessage(bytes, begin);
  s = Exchange(stream, poller, bytes, sizeof(packed::Header), until_ms, &reply);
  if (!s.ok()) return s;
  const auto header = packed::Read<packed::Header>(reply);
  if (header.kind != packed::Kind::kAuth) return kNotSkep;
  if (header.has(packed::kFailed)) return {Code::kInvalidArgument, "the password is wrong"};
  return header.payload_bytes == 0 ? Status() : kNotSkep;
}

// Sends the bytes and receives `reply_bytes` bytes.
Status Connection::Exchange(Stream& stream, Poller& poller, std::string_view bytes,
                            size_t reply_bytes, uint64_t until_ms, std::string* reply) const {
  reply->clear();
  while (reply->size() < reply_bytes) {
    if (!bytes.empty()) {
      const ssize_t sent = stream.Write(bytes);
      if (sent < 0 && sent != -EAGAIN) return kNotSkep;
      bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
    }
    if (Status s = poller.Change(stream, nullptr, true, !bytes.empty()); !s.ok()) return s;
    const int patience_ms = PatienceMs(until_ms);
    if (patience_ms == 0) return kNoAnswer;
    poller.Wait(patience_ms);
    const size_t had = reply->size();
    reply->resize(reply_bytes);
    const ssize_t got = stream.Read(reply->data() + had, reply_bytes - had);
    reply->resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0 || (got < 0 && got != -EAGAIN)) return kNotSkep;
  }
  return {};
}

// The time left until then, for a wait.
int Connection::PatienceMs(uint64_t until_ms) const {
  const uint64_t now_ms = clock_.MonotonicMs();
  const uint64_t left_ms = now_ms < until_ms ? until_ms - now_ms : 0;
  return static_cast<int>(std::min<uint64_t>(left_ms, INT_MAX));
}

// Waits for the end of the pause, or tries once to connect.
void Connection::Reconnect() {
  const uint64_t now_ms = clock_.MonotonicMs();
  if (now_ms < next_attempt_ms_) {
    if (!refused_.ok()) return RefuseAll(refused_);
    const int patience_ms = PatienceMs(std::min(next_attempt_ms_, NextDeadlineMs()));
    const MutexUnlock unlock(mutex_);
    poller_->Wait(patience_ms);
    return;
  }
  // The pause grows also if this attempt succeeds: until a reply comes the connection may be
  // useless.
  pause_ms_ = std::clamp(2 * pause_ms_, kFirstPauseMs, kPauseMaxMs);
  next_attempt_ms_ = now_ms + pause_ms_;
  // Other callers that wait have more time, and so another attempt.
  refused_ = {};
  const Status s = ConnectOnce(NextDeadlineMs());
  next_attempt_ms_ = clock_.MonotonicMs() + pause_ms_;
  if (s.ok()) return Flush();
  if (s.code() == Code::kInvalidArgument || s.code() == Code::kNotSupported) {
    refused_ = s;
    RefuseAll(s);
  }
}

// Ends all messages. One that was sent before may have been done by the server that refuses now.
void Connection::RefuseAll(const Status& why) {
  while (!under_way_.empty()) {
    Message& message = *under_way_.begin()->second;
    End(message, message.may_be_done() ? kRefusedAfterwards : why);
  }
}

}  // namespace skep::client
