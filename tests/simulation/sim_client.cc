#include "tests/simulation/sim_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace skep::simulation {

SimClient::SimClient(Network& network, Address server, int protocol)
    : network_(network), server_(std::move(server)), protocol_(protocol) {
  Reconnect();
}

void SimClient::Reconnect() {
  auto stream = network_.Connect(server_, 0);
  SKEP_CHECK(stream.has_value());
  stream_ = std::move(*stream);
  out_.clear();
  finishing_ = false;
  broke_ = false;
  parsed_ = received_.size();
  parser_.Reset();
  replies_.clear();
  hidden_ = 0;
  if (protocol_ != 3) return;
  Send({"HELLO", "3"});
  hidden_ = 1;
}

void SimClient::Send(std::span<const std::string> args) {
  const std::vector<std::string_view> views(args.begin(), args.end());
  AppendCommand(out_, views);
}

void SimClient::Send(std::initializer_list<std::string_view> args) { AppendCommand(out_, args); }

bool SimClient::Move() {
  const bool wrote = Write();
  const bool read = Read();
  return wrote || read;
}

bool SimClient::Write() {
  if (closed()) return false;
  if (out_.empty()) {
    if (!std::exchange(finishing_, false)) return false;
    stream_->FinishSending();
    return true;
  }
  const ssize_t taken = stream_->Write(out_);
  if (taken == -EAGAIN) return false;
  // Bytes that have arrived can still be read, even if the server takes no more.
  broke_ |= taken < 0;
  out_.erase(0, taken < 0 ? out_.size() : static_cast<size_t>(taken));
  return true;
}

bool SimClient::Read() {
  if (closed() || read_bytes_max_ == 0) return false;
  std::array<char, 16 * 1024> buffer;
  const ssize_t got = stream_->Read(buffer.data(), std::min(buffer.size(), read_bytes_max_));
  if (got == -EAGAIN) return false;
  if (got <= 0) {
    broke_ |= got < 0;
    stream_.reset();
    return true;
  }
  received_.append(buffer.data(), static_cast<size_t>(got));
  Parse();
  return true;
}

void SimClient::Parse() {
  RespReply reply;
  while (parsed_ < received_.size()) {
    const auto event = parser_.Next(std::string_view(received_).substr(parsed_), reply);
    if (event != RespReplyParser::Event::kReply) return;
    parsed_ += parser_.consumed();
    if (hidden_ == 0) {
      replies_.push_back(std::move(reply));
    } else {
      --hidden_;
    }
  }
}

std::optional<RespReply> SimClient::Take() {
  if (replies_.empty()) return std::nullopt;
  RespReply reply = std::move(replies_.front());
  replies_.pop_front();
  return reply;
}

}  // namespace skep::simulation
