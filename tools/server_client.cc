#include "tools/server_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/network_address.h"

namespace skep {
namespace {

constexpr size_t kReceiveBytes = 64 * 1024;
constexpr size_t kReceiveBytesMax = 1024 * 1024;

Result<std::unique_ptr<Stream>> Open(const ServerAddress& server) {
  const auto addresses = LookUp(server.ToAddress());
  if (!addresses) return Fail(addresses.error());
  Result<std::unique_ptr<Stream>> stream;
  for (const Address& address : *addresses) {
    stream = SocketNetwork().Connect(address, ServerClient::kPatienceMs);
    if (stream) break;
  }
  return stream;
}

}  // namespace

std::string ServerAddress::ToString() const {
  return socket.empty() ? AddressOf(host, port) : socket;
}

Result<std::unique_ptr<ServerClient>> ServerClient::Connect(const ServerAddress& server,
                                                            std::string* problem) {
  Result<std::unique_ptr<Stream>> stream = Open(server);
  if (!stream) {
    *problem = fmt::format("{}: {}", server.ToString(), stream.error().ToString());
    return Fail(stream.error());
  }
  std::unique_ptr<ServerClient> client(new ServerClient(std::move(*stream)));
  if (Status status = client->Login(server, problem); !status.ok()) return Fail(status);
  return client;
}

ServerClient::ServerClient(std::unique_ptr<Stream> stream)
    : poller_(SocketNetwork().NewPoller()), stream_(std::move(stream)) {}

Status ServerClient::Login(const ServerAddress& server, std::string* problem) {
  Status status = poller_->Add(*stream_, this, /*want_read=*/true, /*want_write=*/false);
  if (!status.ok()) {
    *problem = fmt::format("{}: {}", server.ToString(), status.ToString());
    return status;
  }
  if (server.password.empty()) return {};
  const auto reply = server.user.empty() ? Call({"AUTH", server.password})
                                         : Call({"AUTH", server.user, server.password});
  if (reply && !reply->is_error()) return {};
  // The password may come from an environment variable and be another server's: this server needs
  // none.
  constexpr std::string_view kNeedsNone = "called without any password configured";
  if (reply && reply->text.find(kNeedsNone) != std::string::npos) return {};
  status = reply ? Status(Code::kInvalidArgument, "AUTH") : reply.error();
  *problem =
      fmt::format("{}: {}", server.ToString(), reply ? reply->text : reply.error().ToString());
  return status;
}

void ServerClient::Send(std::span<const std::string_view> args) { AppendCommand(out_, args); }

Result<RespReply> ServerClient::Receive() {
  for (;;) {
    RespReply reply;
    switch (parser_.Next(std::string_view(in_).substr(begin_), reply)) {
      case RespReplyParser::Event::kReply:
        begin_ += parser_.consumed();
        return reply;
      case RespReplyParser::Event::kError:
        return Fail(Code::kCorrupt, "the server's reply is not RESP");
      case RespReplyParser::Event::kNeedMore:
        break;
    }
    if (Status status = Move(); !status.ok()) return Fail(status);
  }
}

bool ServerClient::IsOpen() { return poller_->Wait(0).empty() || Read().ok(); }

void ServerClient::Interrupt() {
  interrupted_.store(true, std::memory_order_relaxed);
  poller_->Wake();
}

// Sends what can be sent, then waits for bytes, or for room to send more: a server may stop reading
// until its replies are read.
Status ServerClient::Move() {
  if (sent_ < out_.size()) {
    const ssize_t sent = stream_->Write(std::string_view(out_).substr(sent_));
    if (sent < 0 && sent != -EAGAIN) {
      return Status(Code::kIo, "sending", static_cast<uint64_t>(-sent));
    }
    sent_ += static_cast<size_t>(std::max<ssize_t>(sent, 0));
  }
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  }
  if (Status status = Wait(/*wants_write=*/!out_.empty()); !status.ok()) return status;
  return Read();
}

Status ServerClient::Wait(bool wants_write) {
  if (wants_write != std::exchange(waits_to_write_, wants_write)) {
    Status status = poller_->Change(*stream_, this, /*want_read=*/true, wants_write);
    if (!status.ok()) return status;
  }
  const uint64_t begin_ms = SystemClock().MonotonicMs();
  for (;;) {
    const bool is_ready = !poller_->Wait(patience_ms_).empty();
    if (interrupted_.load(std::memory_order_relaxed)) {
      return Status(Code::kAborted, "interrupted");
    }
    if (is_ready) return {};
    if (patience_ms_ >= 0 &&
        SystemClock().MonotonicMs() - begin_ms >= static_cast<uint64_t>(patience_ms_)) {
      return Status(Code::kIo, "waiting for the server", ETIMEDOUT);
    }
  }
}

// Reads the bytes that have come; none if the wait was for room to write.
Status ServerClient::Read() {
  in_.erase(0, std::exchange(begin_, 0));
  const size_t before = in_.size();
  const size_t room = std::clamp(parser_.wanted(), kReceiveBytes, kReceiveBytesMax);
  ssize_t got = 0;
  in_.resize_and_overwrite(before + room, [&](char* bytes, size_t) {
    got = stream_->Read(bytes + before, room);
    return before + static_cast<size_t>(std::max<ssize_t>(got, 0));
  });
  if (got > 0 || got == -EAGAIN) return {};
  if (got == 0) return Status(Code::kUnavailable, "the server closed the connection");
  return Status(Code::kIo, "receiving", static_cast<uint64_t>(-got));
}

}  // namespace skep
