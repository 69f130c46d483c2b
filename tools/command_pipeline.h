// command_pipeline.h: commands on their way to a server, so many at once that neither side waits
// for the other.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "skep/status.h"
#include "tools/server_client.h"

namespace skep {

// Thread safety: one owner.
class CommandPipeline {
 public:
  // Told of each reply, in order, with the name that its command was sent with.
  using OnReply = std::function<void(std::string_view name, const RespReply& reply)>;

  CommandPipeline(ServerClient& client, OnReply on_reply)
      : client_(client), on_reply_(std::move(on_reply)) {}

  // Each returns false if the connection broke: status() says why, and of unanswered() commands
  // nobody knows whether they were executed.
  bool Send(std::span<const std::string_view> args, std::string name);
  // Waits for all replies.
  bool Finish() { return Drain(0, 0); }

  Status status() const { return status_; }
  size_t unanswered() const { return pending_.size(); }

 private:
  struct Pending {
    std::string name;
    size_t bytes = 0;
  };

  bool Drain(size_t commands_max, size_t bytes_max);

  ServerClient& client_;
  const OnReply on_reply_;
  std::deque<Pending> pending_;
  size_t pending_bytes_ = 0;
  Status status_;
};

}  // namespace skep
