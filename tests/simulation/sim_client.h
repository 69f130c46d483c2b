// sim_client.h: a client of a simulated server: sends bytes, receives replies.
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
  // Connects. With `protocol` 3 it says HELLO 3 first, whose reply the caller does not see.
  SimClient(Network& network, Address server, int protocol);

  // Queue a command, or any bytes. They leave in Move().
  void Send(std::span<const std::string> args);
  void Send(std::initializer_list<std::string_view> args);
  void SendBytes(std::string_view bytes) { out_ += bytes; }
  // After the queued bytes the server reads an end of stream.
  void FinishSending() { finishing_ = true; }

  // Does one write and one read at most; returns whether any byte or an end moved. The step of an
  // actor.
  bool Move();

  // Returns the oldest reply not yet taken.
  std::optional<RespReply> Take();
  size_t replies() const { return replies_.size(); }

  // Returns whether the server closed the connection, or it broke.
  bool closed() const { return stream_ == nullptr; }
  // Returns whether it broke: bytes that were sent may not have arrived, in either direction.
  bool broke() const { return broke_; }
  // Connects again, without queued or half received bytes.
  void Reconnect();

  // Limits the bytes that one Move reads; 0: none.
  void set_read_bytes_max(size_t bytes) { read_bytes_max_ = bytes; }
  // Returns all bytes received on all connections.
  const std::string& received() const { return received_; }
  size_t unsent() const { return out_.size(); }
  // Returns what is wrong with bytes that are no RESP; empty if there are none.
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
  size_t hidden_ = 0;  // replies to commands that the caller did not send
  RespReplyParser parser_;
  std::deque<RespReply> replies_;
};

}  // namespace skep::simulation
