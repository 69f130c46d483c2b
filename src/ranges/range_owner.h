// range_owner.h: a server that knows the map of ranges: it does what its ranges allow, while it has
// a lease, and moves ranges to itself when the map says so.
//
//     Execute(batch)   any thread: Ownership says what may be done; the engine does it
//     Turn()           one thread: the session of the coordinator, the lease, moves
//
// Registration. The server has an ephemeral node, ServerPathOf(). It holds the version of the map
//   by which the server goes: it is written once nothing goes by an older one any more (drained).
//
// Lease. A server that is cut off from the coordinator must stop before another one serves its
//   ranges. It confirms its session (base/coordinator.h) and then reads the map; the map counts
//   from the making of the confirmation for kLeaseQuarters/4 of the session's time-out. So
//
//   L1  a server that goes by version v at an instant t has read it after its session was confirmed
//       at t - 3/4 time-out or later. If version v + 1 was there before that, it would have been
//       read; and if the session has ended by t, that was a whole time-out after the confirmation.
//   L2  The lease is looked at before a batch is executed, and again afterwards: an answer that was
//       made under no lease is not given. (A write may have been done then: kUnavailable.)
//
// A move of a range from A to B, by the steps of range_map.h:
//
//   A copying B   A refuses writes. When no write is under way any more and all are released, A
//                 writes the version into its node. B, which has seen that, deletes what it has of
//                 the range, reads it from A, and writes "B opening A" once it is released at B.
//   B opening A   A refuses everything; it writes the version into its node when nothing is under
//                 way. B, which has seen that, or that A's node is gone, writes "B".
//   B             B serves the range. A deletes what it has of it.
//
// Why each operation on a key stays linearizable
//   M1  Between the read-only version at A and the opening at B nobody writes: B's copy is whole.
//       A copy is used only if B has seen each version of the map from its beginning on; else the
//       range may have been given back to A meanwhile, and B begins anew.
//   M2  Nobody answers reads by an older version than "B opening A" once B serves. If A has written
//       the version, nothing of A goes by an older one. If A's node is gone, so is its session, and
//       by L1 its leases are over. B has read of the node after it had read of the version, and the
//       coordinator shows nothing older than what it has shown before, so it is not a node that A
//       has yet to make.
//
// Progress. Reads of a range that is moved wait for nobody, but for the instant of the opening:
//   there they are refused with kMoved, as long as A needs for what is under way, or, if A is gone,
//   the coordinator to end its session. A copy that fails is begun again after a second, for ever;
//   RangeMap::CancelMove ends it. A thread of A that stalls within a batch holds the move up, and
//   nothing else. If the coordinator does not answer, ranges are served to the end of the lease.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/coordinator.h"
#include "base/epochs.h"
#include "engine/engine.h"
#include "pool/kept_session.h"
#include "pool/registration.h"
#include "ranges/ownership.h"
#include "ranges/range_map.h"

namespace skep::ranges {

// A copy of a range that is under way. Its destruction ends it.
class RangeCopy {
 public:
  virtual ~RangeCopy() = default;
  // Whether it is done, and how; nothing: it is not.
  virtual std::optional<Status> Poll() = 0;
};
struct RangeToCopy {
  std::string from;  // the server's address
  std::string lower;
  std::optional<std::string> upper;  // nothing: all keys from `lower` on
  friend bool operator==(const RangeToCopy&, const RangeToCopy&) = default;
};
using BeginRangeCopy = std::function<std::unique_ptr<RangeCopy>(const RangeToCopy&)>;

struct RangeOwnerOptions {
  std::string name;  // of the map
  std::string self;  // the server's address, as the map has it
  uint32_t session_ms = 10'000;
};

class RangeOwner {
 public:
  static constexpr uint64_t kLeaseQuarters = 3;
  static constexpr uint64_t kCopyAgainNs = 1'000'000'000;

  // Of the engine, into which `begin_copy` copies. All of them outlive it.
  RangeOwner(RangeOwnerOptions options, Coordinator& coordinator, Clock& clock, Engine& engine,
             BeginRangeCopy begin_copy);
  // Nobody is in Execute, nor will be.
  ~RangeOwner();
  RangeOwner(const RangeOwner&) = delete;
  RangeOwner& operator=(const RangeOwner&) = delete;

  Engine& engine() { return engine_; }
  // As Engine::Execute, for what is this server's. Thread-safe. Cost: that of the engine, two looks
  // at the clock, and a search among the ranges for each request.
  //   kMoved, kUnavailable  as Ownership::WhyNot; kUnavailable also if there is no lease
  Version Execute(Batch& batch);
  // Does what there is to do, and does not wait. One thread calls it every few milliseconds.
  void Turn();
  // Thread-safe.
  void Describe(const Engine::StatsVisitor& visit) const;

 private:
  enum Token : uint64_t { kRegister, kRegistered, kConfirm, kMap, kChangeMap, kOwn, kPeer };
  // The version at a server that has no node: greater than all.
  static constexpr int32_t kGone = INT32_MAX;

  void DoTurn();
  void FollowSession(CoordinatorSession* session);
  void Handle(const CoordinatorEvent& event);
  void HandleMap(const CoordinatorEvent& event);
  void HandleOwn(const CoordinatorEvent& event);
  void HandlePeer(const CoordinatorEvent& event);
  void Renew();
  void Adopt(RangeMap map);
  void Publish(std::unique_ptr<Ownership> ownership);
  void DeleteLeftovers(const RangeMap& before);
  void DeleteRange(std::string_view lower, std::optional<std::string_view> upper);
  bool IsDrained();
  void TellVersion();
  void Move();
  void Open(size_t index);
  void Copy(size_t index);
  // Whether the server at this address goes by the map's version; asks it if that is not known.
  bool HasFollowed(std::string_view peer, bool counts_if_gone);
  void ChangeMap(RangeMap map);

  const RangeOwnerOptions options_;
  Clock& clock_;
  Engine& engine_;
  const BeginRangeCopy begin_copy_;

  // Execute has it within a Guard.
  mutable Epochs epochs_;
  std::atomic<Ownership*> current_{nullptr};
  // For Describe.
  std::atomic<uint64_t> copies_begun_{0}, copies_failed_{0};

  // Of the thread that calls Turn.
  pool::KeptSession session_;
  std::unique_ptr<pool::Registration> registration_;
  RangeMap map_ = {.entries = {}, .version = -1};
  uint64_t confirm_ns_ = 0;  // when the confirmation under way was made; 0: there is none
  bool is_confirmed_ = false;
  bool is_map_stale_ = true;
  uint64_t renew_ns_ = 0;
  int32_t own_node_version_ = 0;
  int32_t told_version_ = -1;            // what the own node says
  std::optional<int32_t> telling_;       // being written into it
  std::optional<Version> drain_ticket_;  // all writes of older versions are up to it
  bool is_changing_map_ = false;
  std::string peer_;  // of whom peer_version_ is known
  int32_t peer_version_ = -1;
  bool is_asking_peer_ = false;
  RangeToCopy copied_;
  std::unique_ptr<RangeCopy> copy_;
  std::optional<Status> copy_result_;
  uint64_t copy_ns_ = 0;  // not to be begun before
};

}  // namespace skep::ranges
