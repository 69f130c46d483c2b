// state_receiver.h: a newcomer takes the state that a hash server gives it (state_transfer.h).
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "engine/engine.h"
#include "pool/chunks.h"
#include "pool/key_digest.h"
#include "pool/sessions.h"
#include "pool/state_sender.h"
#include "rma/fabric.h"

namespace skep::pool {

// What is for a sorted server of this epoch.
struct ReceivedState {
  uint64_t epoch = 0;
  uint32_t hash_server = 0;
  DigestKeys keys;
  std::unique_ptr<Engine> tree;
  Sessions sessions;
  Chunks chunks;
  uint64_t applied = 0;
  uint32_t next_client = 0;
};

class StateReceiver {
 public:
  // An ordered engine, empty, as often as it is called.
  explicit StateReceiver(std::function<std::unique_ptr<Engine>()> make_tree)
      : make_tree_(std::move(make_tree)) {}

  enum class Result : uint8_t {
    kRefused,  // it does not go on with what has come, or is no piece; nothing is left of that
    kBegun,    // what an earlier transfer gave counts no more
    kTaken,
    kWhole,  // TakeState() has it
  };
  Result Take(rma::PeerId peer, std::string_view fields);
  // Half a state goes with its connection.
  void HandleLeft(rma::PeerId peer) {
    if (peer == peer_) Forget();
  }
  ReceivedState TakeState() { return std::move(state_); }

 private:
  // Orders all transfers to this server: of a later epoch, or of a later attempt.
  using Transfer = std::pair<uint64_t, uint64_t>;

  bool Begin(std::string_view fields);
  bool TakePart(StatePart part, std::string_view fields);
  bool TakeKeys(std::string_view fields);
  bool TakeSessions(std::string_view fields);
  bool TakeEnd(std::string_view fields);
  void Forget();

  const std::function<std::unique_ptr<Engine>()> make_tree_;
  Transfer newest_;       // that has begun
  rma::PeerId peer_ = 0;  // its connection; 0: it is over
  uint64_t next_number_ = 0;
  uint32_t next_chunk_ = 0;
  ReceivedState state_;
  Batch batch_;
};

}  // namespace skep::pool
