// state_transfer.h: a solo hash server makes another index server its sorted server: it gives the
// newcomer its whole state while commits go on, and then asks for the roles.
//
//   hash server H, solo in the epoch e                     newcomer N, no role
//     | begin  H, digest keys ------------------------------> |  forgets an earlier transfer
//     | keys   some thousand and their slots, in order -----> |  puts them into its tree
//     | keys   that a group of commits has changed ---------> |  puts or deletes them
//     |   ... until the cursor is at the end                  |
//     | Hold: what is not acknowledged is not applied.        |
//     | servers, chunks, sessions, end ---------------------> |  has the state: it keeps a log now
//     | ship, as to the sorted server of e + 1 -------------> |  appended
//     | <-------------------------------------- end index     |
//     | Want: the roles {e + 1, H, N}.                        |
//     |                    the coordinator sets them          |
//   hash server                                             sorted server, in the epoch e + 1
//
// Safety
//   T1  A piece of keys says what the index has when it is sent, and one connection's messages come
//       in their order. So the last message about a key has the key's present slot, and a key that
//       no message was about lies behind the cursor. At the hold, no key does.
//   T2  From the hold on the state of H changes only by entries that N has acknowledged. The log
//       begins behind the state that was sent. So when N has acknowledged a first shipment, it has
//       all that a sorted server has, and goes on to have it.
//   T3  Authority. H had it for ever while it was solo. From the moment when it sends that first
//       shipment on it has what its shipments give it (hash_role.h): what it granted before ends no
//       later than lease_ns after that moment, and N, before it takes over, waits for lease_ns from
//       an acknowledgement, which is later. Scans of H need the authority too.
//   T4  Back. Until H wants the roles it may go back to solo by itself: nobody can have a role of a
//       later epoch. From then on the set may be done, whatever H hears of it: only the map of a
//       later epoch ends the hold. If N is lost then, H wants {e + 1, H, nobody}. Both are sets of
//       one version (role_keeper.h), so one of them is done: if it is the first, H has N as its
//       sorted server, and the loss of a sorted server is an old story.
//   T5  What N has counts if the roles of e + 1 name it. Half a state goes with its connection. A
//       whole one stays, as H may want the roles; it goes when the map of e + 1 or of a later epoch
//       gives N no role, or another transfer begins, which says that H did not want them. A begin
//       that was overtaken by a later one (epoch, then attempt) is refused.
//   T6  Operations are done once (H4): the sessions come along, with the verdicts that they keep.
// Progress. H sends one piece a turn, of a bounded number of keys or bytes, and no more than
//   StateSender::kUnackedMax of them are unacknowledged; groups of commits are as large as they
//   are. Whoever does not acknowledge for lease_ns is disconnected, which ends the transfer; after
//   a pause H begins anew with the next newcomer. Commits wait from the hold to the first
//   acknowledgement: for as long as chunks and sessions take, and for lease_ns at most if N stops
//   then. A newcomer that has stopped does not come to the hold again. After the want they wait as
//   they do for any sorted server; and if N is lost, for the coordinator's answer.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "pool/index_context.h"
#include "pool/state_sender.h"

namespace skep::pool {

// At the hash server: whether there is a transfer, and what it has come to. It knows of no
// connection: HashRole has that, and ships the log.
class StateTransfer {
 public:
  // After a transfer has ended, the next one does not begin before.
  static constexpr uint64_t kPauseNs = 100'000'000;

  explicit StateTransfer(IndexContext& context) : context_(context) {}

  // The newcomer; 0: there is no transfer.
  uint32_t newcomer() const { return sender_ == nullptr ? 0 : sender_->newcomer(); }
  // What the newcomer has not acknowledged may not be applied.
  bool Holds() const { return is_wanted_ || (sender_ != nullptr && sender_->IsHolding()); }
  // The newcomer has been sent the whole state, and takes shipments.
  bool TakesLog() const { return sender_ != nullptr && sender_->IsDone(); }
  // The roles to be set; nothing: the present ones.
  std::optional<PoolRoles> wanted() const;

  // This server is solo and holds nothing. Begins, if there is a newcomer and it is time. False:
  // there is no transfer.
  bool Begin();
  // A turn, over the newcomer's connection. Returns whether something was sent.
  bool Step(rma::PeerId peer) { return sender_->Step(peer); }
  // The newcomer lets a piece wait for too long.
  bool IsLate() const { return sender_->IsLate(); }
  // The transfer began a lease ago or earlier: whoever has no connection yet will hardly get one.
  bool IsOld() const { return context_.now_ns() > began_ns_ + context_.times.lease_ns; }
  // These entries were just applied.
  void HandleApplied(const LogBatch& entries) {
    if (sender_ != nullptr) sender_->SendChanges(entries);
  }
  // The newcomer has acknowledged a shipment.
  void HandleAcknowledged() { is_wanted_ |= TakesLog(); }
  enum class Answer : uint8_t { kNotMine, kTaken, kRefused };
  // A reply to a call of this transfer.
  Answer HandleReply(const rma::Event& event);
  // The newcomer is lost.
  void End();
  // The map has another epoch.
  void HandleEpoch();

 private:
  uint32_t NextNewcomer() const;

  IndexContext& context_;
  std::unique_ptr<StateSender> sender_;
  bool is_wanted_ = false;
  uint64_t attempts_ = 0;
  uint32_t last_newcomer_ = 0;
  uint64_t began_ns_ = 0;
  uint64_t retry_ns_ = 0;
};

}  // namespace skep::pool
