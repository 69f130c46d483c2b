// command_pipeline.h: sends commands to a server, with so many under way at once that neither side
// waits for the other.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "skep/status.h"
#include "tools/dump_format.h"
#include "tools/server_client.h"

namespace skep {

// Thread safety: one owner.
class CommandPipeline {
 public:
  // Called with each reply, in order, and the name that its command was sent with.
  using OnReply = std::function<void(std::string_view name, const RespReply& reply)>;

  virtual ~CommandPipeline() = default;
  // To be called before the first command.
  void set_on_reply(OnReply on_reply) { on_reply_ = std::move(on_reply); }

  // Selects the database for the following commands. Waits for the commands under way, and for the
  // reply. Returns a line for people that says why it failed, or nothing.
  virtual std::string Select(uint64_t db) = 0;

  // Whether Send takes the commands of collections, and RESTORE; if not it takes SET only.
  virtual bool takes_collections() const = 0;

  // Each sends a command. Returns false if the connection broke: status() says why, and
  // unanswered() how many commands may or may not have been executed.
  virtual bool Send(std::span<const std::string_view> args, std::string name) = 0;
  // Sends SET of the item.
  virtual bool Set(const DumpItem& item, std::string name) = 0;
  // Waits for all replies.
  virtual bool Finish() = 0;

  Status status() const { return status_; }
  virtual size_t unanswered() const = 0;

 protected:
  OnReply on_reply_;
  Status status_;
};

// A pipeline in RESP. `client` must outlive it.
class RespPipeline final : public CommandPipeline {
 public:
  explicit RespPipeline(ServerClient& client) : client_(client) {}

  std::string Select(uint64_t db) override;
  bool takes_collections() const override { return true; }
  bool Send(std::span<const std::string_view> args, std::string name) override;
  bool Set(const DumpItem& item, std::string name) override;
  bool Finish() override { return Drain(0, 0); }
  size_t unanswered() const override { return pending_.size(); }

 private:
  struct Pending {
    std::string name;
    size_t bytes = 0;
  };

  bool Drain(size_t commands_max, size_t bytes_max);

  ServerClient& client_;
  std::deque<Pending> pending_;
  size_t pending_bytes_ = 0;
};

}  // namespace skep
