// state_sender.h: sends the state of an index server to a newcomer, piece by piece
// (state_transfer.h).
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "pool/index_context.h"
#include "pool/state_pieces.h"

namespace skep::pool {

class StateSender {
 public:
  // Pieces, beside what commits have changed.
  static constexpr size_t kUnackedMax = 4;
  // Its calls' tokens, which no role uses.
  static constexpr uint64_t kFirstToken = uint64_t{1} << 62;

  // The context's state keeps both indexes, whole. Of two transfers of an epoch the later one has
  // the higher attempt.
  StateSender(IndexContext& context, uint32_t newcomer, uint64_t attempt)
      : context_(context),
        newcomer_(newcomer),
        pieces_(context.state, {.epoch = context.map.epoch + 1,
                                .attempt = attempt,
                                .hash_server = context.map.hash_server,
                                .keys_per_piece = context.keys_per_piece}),
        next_token_(kFirstToken + (attempt << 32)) {}

  uint32_t newcomer() const { return newcomer_; }
  // All keys have been sent: the state may not change before IsDone.
  bool IsHolding() const { return pieces_.HasAllKeys(); }
  // All pieces have been sent.
  bool IsDone() const { return pieces_.IsDone(); }
  // The newcomer has let a piece wait for lease_ns.
  bool IsLate() const {
    return !sent_.empty() && context_.now_ns() > sent_.front().at_ns + context_.times.lease_ns;
  }

  // Sends a piece over the connection, which stays the same; not if too many wait. Returns whether.
  bool Step(rma::PeerId peer);
  // Sends what these entries, which were just applied, have made of their keys.
  void SendChanges(const LogBatch& entries);
  // The call of this token was answered. False: it is none of this transfer.
  bool HandleReply(uint64_t token);

 private:
  struct Sent {
    uint64_t token;
    uint64_t at_ns;
    bool is_piece;
  };

  void BeginMessage();
  void Send(bool is_piece);

  IndexContext& context_;
  const uint32_t newcomer_;
  StatePieces pieces_;
  rma::PeerId peer_ = 0;
  uint64_t next_token_;
  std::deque<Sent> sent_;   // not acknowledged
  size_t pieces_sent_ = 0;  // of them
  std::string fields_;
};

}  // namespace skep::pool
