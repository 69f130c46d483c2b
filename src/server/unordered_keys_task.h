// unordered_keys_task.h: KEYS of a keyspace without order.
//
// There is no version to read at, so the keys are collected before the first of them is sent: a
// RESP array begins with its length. A key that is present all the while is in the reply exactly
// once, any other key once or not at all. Other connections are served between the pieces of both
// passes. Memory: collected_reply.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/memory_budget.h"
#include "server/collected_reply.h"
#include "server/command.h"
#include "server/session.h"

namespace skep {

class UnorderedKeysTask final : public Task {
 public:
  // Replies with the keys that match (glob.h), at once or over the next turns.
  static void Start(const ServerCall& call, std::string_view pattern);

  bool Step(const ServerCall& call) override;
  uint64_t held_bytes() const override { return collected_.charged_bytes(); }

 private:
  UnorderedKeysTask(MemoryBudget& budget, std::string_view pattern)
      : pattern_(pattern), collected_(budget) {}

  bool Collect(const ServerCall& call);

  const std::string pattern_;
  uint64_t cursor_ = 0;
  bool is_collected_ = false;
  size_t count_ = 0;
  CollectedReply collected_;
};

}  // namespace skep
