// store_pipeline.h: commands on their way over the packed protocol: batches, some of them begun and
// not waited for.
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

// Of commands it takes SET. `store` must outlive it.
class StorePipeline final : public CommandPipeline, private CommandHost {
 public:
  explicit StorePipeline(Store& store) : CommandHost(now_), store_(store) {}

  std::string Select(uint64_t db) override;
  bool Send(std::span<const std::string_view> args, std::string name) override;
  bool Set(const DumpItem& item, std::string name) override;
  bool Finish() override;
  size_t unanswered() const override;

 private:
  // A batch, and the names of its slots.
  struct Sent {
    Batch batch;
    std::vector<std::string> names;
    size_t bytes = 0;
    std::unique_ptr<BatchFuture> future;
  };

  void Execute(skep::Session& session, Batch& batch) override;

  bool NoteAdded(std::string name, size_t bytes);
  bool BeginFilled();
  bool AwaitOldest();
  RespReply ReplyOf(const Batch& batch, uint32_t slot);

  Store& store_;
  const Command& set_ = *FindCommand("set");
  StoreNow now_;           // of the command that is sent
  skep::Session session_;  // keyspace, and replies as a server encodes them
  std::unique_ptr<Sent> filled_ = std::make_unique<Sent>();
  std::deque<std::unique_ptr<Sent>> under_way_;  // the oldest first
  std::vector<std::unique_ptr<Sent>> unused_;    // empty; for their memory
};

}  // namespace skep::cli
