// collected_reply.h: a long array that is encoded as a whole before its first byte is sent.
//
// A RESP array begins with its length. An engine that keeps one version of a key knows the length
// only when the last element was read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/memory_budget.h"
#include "server/command.h"

namespace skep {

// Thread safety: one owner.
class CollectedReply {
 public:
  explicit CollectedReply(MemoryBudget& budget) : budget_(budget) {}
  ~CollectedReply() { budget_.Release(charged_bytes_); }
  CollectedReply(const CollectedReply&) = delete;
  CollectedReply& operator=(const CollectedReply&) = delete;

  // The encoded elements; callers append to them.
  std::string& bytes() { return bytes_; }
  // Called after some were appended: charges them to the budget. False: the budget has no room for
  // the next 1 MiB, and the reply is an error.
  bool HasRoom(const Call& call);
  // Sends a piece. Returns false if it was the last.
  bool Send(const Call& call);
  // Bytes of the budget that the elements hold.
  uint64_t charged_bytes() const { return charged_bytes_; }

 private:
  MemoryBudget& budget_;
  std::string bytes_;
  size_t sent_ = 0;
  uint64_t charged_bytes_ = 0;
};

}  // namespace skep
