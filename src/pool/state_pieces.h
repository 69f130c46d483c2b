// state_pieces.h: the state of an index server as a sequence of pieces, as a newcomer is given it
// (state_transfer.h) and as a log keeps it (index_log.h).
//
//   epoch varint, attempt varint, number varint, part 1, fields of the part
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pool/index_state.h"

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

class StatePieces {
 public:
  // A piece that has so many bytes is full.
  static constexpr size_t kPieceBytes = 256 * 1024;

  struct Options {
    uint64_t epoch = 0;  // of the roles that the state is for
    uint64_t attempt = 0;
    uint32_t hash_server = 0;
    uint32_t keys_per_piece = 4096;
  };

  // The state keeps a whole tree, or has no keys.
  StatePieces(IndexState& state, const Options& options) : state_(state), options_(options) {}

  // The part of the next piece.
  StatePart part() const { return part_; }
  // All keys are in pieces: from now on the state may not change before IsDone().
  bool HasAllKeys() const { return part_ > StatePart::kKeys; }
  bool IsDone() const { return is_done_; }

  // Appends the next piece.
  void Next(std::string& to);
  // Appends a piece with what these entries, which were just applied, have made of their keys.
  // False: it needs none.
  bool AddChanges(const LogBatch& entries, std::string& to);

 private:
  void BeginPiece(StatePart part, std::string& to);
  void AddBegin(std::string& to);
  void AddKeys(std::string& to);
  void AddChunks(std::string& to);
  void AddSessions(std::string& to);
  void AddEnd(std::string& to);

  IndexState& state_;
  const Options options_;
  StatePart part_ = StatePart::kBegin;
  bool is_done_ = false;
  uint64_t next_number_ = 0;
  std::string next_key_;
  uint32_t next_chunk_ = 0;
  std::vector<uint32_t> clients_;  // in no piece yet
  Batch batch_;
};

}  // namespace skep::pool
