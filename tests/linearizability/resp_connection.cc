#include <cerrno>

#include "tests/linearizability/resp_client.h"

namespace skep::linearizability {

RespConnection::RespConnection(Network& network, const Address& address)
    : poller_(network.NewPoller()) {
  auto connected = network.Connect(address, -1);
  if (!connected) return;
  stream_ = std::move(*connected);
  if (!poller_->Add(*stream_, this, true, false).ok()) stream_.reset();
}

RespConnection::~RespConnection() { Break(); }

void RespConnection::Break() {
  if (stream_ != nullptr) poller_->Remove(*stream_);
  stream_.reset();
}

std::optional<RespReply> RespConnection::Ask(std::span<const std::string_view> args) {
  std::string command;
  AppendCommand(command, args);
  if (stream_ == nullptr || !Send(command)) return std::nullopt;
  RespReply reply;
  while (true) {
    const RespReplyParser::Event event = parser_.Next(received_, reply);
    if (event == RespReplyParser::Event::kReply) {
      received_.erase(0, parser_.consumed());
      return reply;
    }
    if (event == RespReplyParser::Event::kError || !Receive()) {
      Break();
      return std::nullopt;
    }
  }
}

bool RespConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t taken = stream_->Write(bytes);
    if (taken >= 0) {
      bytes.remove_prefix(static_cast<size_t>(taken));
    } else if (taken != -EAGAIN || !WaitFor(false)) {
      Break();
      return false;
    }
  }
  return true;
}

bool RespConnection::Receive() {
  char buffer[4096];
  while (true) {
    const ssize_t read = stream_->Read(buffer, sizeof buffer);
    if (read > 0) {
      received_.append(buffer, static_cast<size_t>(read));
      return true;
    }
    if (read != -EAGAIN || !WaitFor(true)) return false;
  }
}

bool RespConnection::WaitFor(bool readable) {
  if (!poller_->Change(*stream_, this, readable, !readable).ok()) return false;
  return !poller_->Wait(kReplyTimeoutMs).empty();
}

}  // namespace skep::linearizability
