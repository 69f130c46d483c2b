// sim_client.h: one client of a simulated server: bytes out, replies in.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/network.h"
#include "wire/resp_reply.h"

namespace skep::simulation {

// Thread safety: one owner.
class SimClient {
 public:
  // Connects. With `protocol` 3 it says HELLO 3 first, of which the caller sees nothing.
  SimClient(Network& network, Address server, int protocol);

  // Queues a command, or any bytes. They leave in Move().
  void Send(std::span<const std::string> args);
  void Send(std::initializer_list<std::string_view> args);
  void SendBytes(std::string_view bytes) { out_ += bytes; }
  // After what is queued the server reads an end.
  void FinishSending() { finishing_ = true; }

  // One write and one read at most; whether any byte or an end moved. An actor's step.
  bool Move();

  // The oldest reply not yet taken.
  std::optional<RespReply> Take();
  size_t replies() const { return replies_.size(); }

  // The server closed the connection, or it broke.
  bool closed() const { return stream_ == nullptr; }
  // It broke: not all that was sent may have arrived, in either direction.
  bool broke() const { return broke_; }
  // Starts again, without what was queued or half received.
  void Reconnect();

  // Reads at most so many bytes at a Move; 0: nothing.
  void set_read_bytes_max(size_t bytes) { read_bytes_max_ = bytes; }
  // All bytes received on all connections.
  const std::string& received() const { return received_; }
  size_t unsent() const { return out_.size(); }
  // What arrived was no RESP; empty if all was.
  std::string_view broken_reply() const { return parser_.error(); }

 private:
  bool Write();
  bool Read();
  void Parse();

  Network& network_;
  const Address server_;
  const int protocol_;
  std::unique_ptr<Stream> stream_;
  std::string out_;
  bool finishing_ = false;
  bool broke_ = false;
  size_t read_bytes_max_ = SIZE_MAX;
  std::string received_;
  size_t parsed_ = 0;
  size_t hidden_ = 0;  // replies that the caller did not ask for
  RespReplyParser parser_;
  std::deque<RespReply> replies_;
};

}  // namespace skep::simulation
