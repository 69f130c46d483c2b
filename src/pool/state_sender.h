// state_sender.h: sends the state of an index server to a newcomer, piece by piece
// (state_transfer.h).
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "pool/index_context.h"

namespace skep::pool {

// What a piece of the state has, behind epoch, attempt, number and part. In this order, each part
// in one piece or several. Numbers are varints.
enum class StatePart : uint8_t {
  kBegin,     // the hash server, digest keys 4 x 8
  kKeys,      // to the end: key, slot 8; none: the key is absent
  kServers,   // Chunks::EncodeServers
  kChunks,    // Chunks::EncodeChunks, to the end
  kSessions,  // Sessions::EncodeClient, to the end
  kEnd,       // applied, next client
};

class StateSender {
 public:
  // Pieces, beside what commits have changed.
  static constexpr size_t kUnackedMax = 4;
  // A piece that has so many bytes is full.
  static constexpr size_t kPieceBytes = 256 * 1024;
  // Its calls' tokens, which no role uses.
  static constexpr uint64_t kFirstToken = uint64_t{1} << 62;

  // The context's state keeps both indexes, whole. Of two transfers of an epoch the later one has
  // the higher attempt.
  StateSender(IndexContext& context, uint32_t newcomer, uint64_t attempt)
      : context_(context),
        newcomer_(newcomer),
        epoch_(context.map.epoch + 1),
        attempt_(attempt),
        next_token_(kFirstToken + (attempt << 32)) {}

  uint32_t newcomer() const { return newcomer_; }
  // All keys have been sent: the state may not change before IsDone.
  bool IsHolding() const { return part_ > StatePart::kKeys; }
  // All pieces have been sent.
  bool IsDone() const { return is_done_; }
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

  void AddBegin();
  void AddKeys();
  void AddChunks();
  void AddSessions();
  void AddEnd();
  void BeginPiece(StatePart part);
  void Send(bool is_piece);

  IndexContext& context_;
  const uint32_t newcomer_;
  const uint64_t epoch_;
  const uint64_t attempt_;
  StatePart part_ = StatePart::kBegin;  // of the next piece
  bool is_done_ = false;
  rma::PeerId peer_ = 0;
  uint64_t next_token_;
  uint64_t next_number_ = 0;
  std::deque<Sent> sent_;   // not acknowledged
  size_t pieces_sent_ = 0;  // of them

  std::string next_key_;
  uint32_t next_chunk_ = 0;
  std::vector<uint32_t> clients_;  // not sent yet
  Batch batch_;
  std::string fields_;
};

}  // namespace skep::pool
