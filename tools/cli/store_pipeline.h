// store_pipeline.h: sends commands over the packed protocol in batches, several of which are under
// way at once.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/command.h"
#include "server/session.h"
#include "skep/store.h"
#include "tools/command_pipeline.h"

namespace skep::cli {

// The only command that it takes is SET. `store` must outlive it.
class StorePipeline final : public CommandPipeline, private CommandHost {
 public:
  explicit StorePipeline(Store& store) : CommandHost(now_), store_(store) {}

  std::string Select(uint64_t db) override;
  bool takes_collections() const override { return false; }
  bool Send(std::span<const std::string_view> args, std::string name) override;
  bool Set(const DumpItem& item, std::string name) override;
  bool Finish() override;
  size_t unanswered() const override;

 private:
  // A batch, and the names that its commands were sent with.
  struct Sent {
    Batch batch;
    std::vector<std::string> names;
    size_t bytes = 0;
    std::unique_ptr<BatchFuture> future;
  };

  void Execute(skep::Session& session, Batch& batch,
               std::span<const PlannedCommand> commands) override;

  bool NoteAdded(std::string name, size_t bytes);
  bool BeginFilled();
  bool AwaitOldest();
  RespReply ReplyOf(const Batch& batch, uint32_t slot);

  Store& store_;
  const Command& set_ = *FindCommand("set");
  StoreNow now_;           // of the command being sent
  skep::Session session_;  // keyspace, and replies as a server encodes them
  std::unique_ptr<Sent> filled_ = std::make_unique<Sent>();
  std::deque<std::unique_ptr<Sent>> under_way_;  // oldest first
  std::vector<std::unique_ptr<Sent>> unused_;    // cleared; kept for their memory
};

}  // namespace skep::cli
