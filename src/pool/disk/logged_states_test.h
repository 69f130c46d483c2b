// logged_states_test.h: what tests append to the log of an index server.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "pool/index_log.h"
#include "pool/state_pieces.h"

namespace skep::pool {

inline constexpr DigestKeys kLoggedKeys = {.index = {1, 2}, .tag = {3, 4}};

inline IndexLog::Kind KindOfNext(const StatePieces& pieces) {
  switch (pieces.part()) {
    case StatePart::kBegin:
      return IndexLog::Kind::kStateBegin;
    case StatePart::kEnd:
      return IndexLog::Kind::kStateEnd;
    default:
      return IndexLog::Kind::kState;
  }
}

// The owner with number 7 takes the state.
inline IndexLog::Ticket AppendOwner(IndexLog& log) {
  return log.Append(IndexLog::Kind::kOwner, std::string_view("\7\1", 2));
}

// A state without keys and clients, and its owner.
inline void AppendEmptyState(IndexLog& log) {
  IndexState state(kLoggedKeys);
  StatePieces pieces(state, {.epoch = 1, .hash_server = 1});
  while (!pieces.IsDone()) {
    const IndexLog::Kind kind = KindOfNext(pieces);
    std::string piece;
    pieces.Next(piece);
    ASSERT_NE(log.Append(kind, piece), 0u);
  }
  ASSERT_NE(AppendOwner(log), 0u);
}

// The client whose number is the entry's index joins.
inline LogBatch JoinOf(uint64_t index) {
  LogBatch batch(index);
  batch.Add({.kind = LogEntry::Kind::kJoin, .client = static_cast<uint32_t>(index)});
  return batch;
}

}  // namespace skep::pool
