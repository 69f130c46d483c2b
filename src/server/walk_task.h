// walk_task.h: KEYS of a keyspace without order.
//
// There is no version to read at, so the keys are collected before the first of them is sent: a
// RESP array starts with its length. A key that is there all the while is in the reply exactly
// once, one that is not, once or not at all. Other connections are served between the pieces of
// both passes. Memory: the keys that match, charged to the budget; if it has no room left, the
// reply is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/memory_budget.h"
#include "server/command.h"
#include "server/session.h"

namespace skep {

class WalkTask final : public Task {
 public:
  // Replies with the keys that match (glob.h), at once or over the next turns.
  static void Start(Call& call, std::string_view pattern);
  ~WalkTask() override { budget_.Release(charged_bytes_); }

  bool Step(Call& call) override;
  uint64_t held_bytes() const override { return charged_bytes_; }

 private:
  WalkTask(MemoryBudget& budget, std::string_view pattern) : budget_(budget), pattern_(pattern) {}

  bool Collect(Call& call);
  bool Send(Call& call);

  MemoryBudget& budget_;
  const std::string pattern_;
  uint64_t cursor_ = 0;
  bool is_collected_ = false;
  size_t count_ = 0;
  std::string keys_;  // as they are sent
  size_t sent_ = 0;   // of keys_
  uint64_t charged_bytes_ = 0;
};

}  // namespace skep
