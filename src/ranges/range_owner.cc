#include "ranges/range_owner.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/decimal.h"
#include "engine/batch_writer.h"
#include "engine/partial_batch.h"
#include "ranges/foreign_floor.h"

namespace skep::ranges {
namespace {

constexpr Status kNoLease(Code::kUnavailable,
                          "this server has no lease of its ranges: it does not hear ZooKeeper");
constexpr Status kLostLease(Code::kUnavailable,
                            "the lease of the ranges has ended meanwhile: a write may be done");

// A scan from the floor of its key may have found it below the ranges that are this server's.
void DropForeignFloors(const Ownership& ownership, Batch& batch) {
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Request& request = batch.requests()[slot];
    if (!request.has(Request::kSeekFloor) || batch.outcome(slot).item_count == 0) continue;
    DropFloorBelow(batch, slot, ownership.FloorOf(request.key));
  }
}

}  // namespace

RangeOwner::RangeOwner(RangeOwnerOptions options, Coordinator& coordinator, Clock& clock,
                       Engine& engine, BeginRangeCopy begin_copy)
    : options_(std::move(options)),
      clock_(clock),
      engine_(engine),
      begin_copy_(std::move(begin_copy)),
      session_(coordinator, clock, {.timeout_ms = options_.session_ms},
               [this](CoordinatorSession* session) { FollowSession(session); }) {}

RangeOwner::~RangeOwner() { delete current_.load(std::memory_order_relaxed); }

Version RangeOwner::Execute(Batch& batch) {
  const Epochs::Guard guard(epochs_);
  const Ownership* const own = current_.load(std::memory_order_seq_cst);
  if (own == nullptr || !own->IsLeasedAt(clock_.MonotonicNs())) {
    BatchWriter(batch).RefuseAll(kNoLease);
    return 0;
  }
  const Version ticket = ExecutePartly(
      engine_, batch, [&](uint32_t slot) { return own->WhyNot(batch.requests()[slot]); });
  DropForeignFloors(*own, batch);
  if (!own->IsLeasedAt(clock_.MonotonicNs())) BatchWriter(batch).RefuseAll(kLostLease);
  return ticket;
}

// Without memory an answer may be lost, so all is begun anew.
void RangeOwner::Turn() {
  try {
    DoTurn();
  } catch (const std::bad_alloc&) {
    FollowSession(session_.get());
  }
}

void RangeOwner::DoTurn() {
  const bool is_due = session_.Turn();
  CoordinatorSession* const session = session_.get();
  if (session != nullptr) {
    for (const CoordinatorEvent& event : session->TakeEvents()) Handle(event);
  }
  if (session_.is_connected()) {
    if (!registration_->is_done()) {
      if (is_due) registration_->Want();
    } else {
      Renew();
      TellVersion();
      Move();
    }
  }
  if (copy_ != nullptr && !copy_result_) copy_result_ = copy_->Poll();
}

// ---- The session ----

void RangeOwner::FollowSession(CoordinatorSession* session) {
  Publish(nullptr);
  registration_.reset();
  if (session == nullptr) return;
  registration_ = std::make_unique<pool::Registration>(
      *session, ServerPathOf(options_.name, options_.self), "-1", kRegister);
  map_ = {.entries = {}, .version = -1};
  copy_.reset();
  confirm_ns_ = renew_ns_ = 0;
  is_map_stale_ = true;
  own_node_version_ = 0;
  told_version_ = -1;
  telling_.reset();
  is_changing_map_ = is_asking_peer_ = false;
  peer_.clear();
}

void RangeOwner::Handle(const CoordinatorEvent& event) {
  registration_->Handle(event);
  if (event.kind == CoordinatorEvent::Kind::kConnected) is_map_stale_ = true;
  if (event.kind == CoordinatorEvent::Kind::kChanged) is_map_stale_ = true;
  if (event.kind != CoordinatorEvent::Kind::kAnswer) return;
  switch (event.token) {
    case kConfirm:
      is_confirmed_ = event.outcome == CoordinatorOutcome::kDone;
      break;
    case kMap:
      HandleMap(event);
      break;
    case kChangeMap:
      is_changing_map_ = false;
      is_map_stale_ = true;
      break;
    case kOwn:
      HandleOwn(event);
      break;
    case kPeer:
      HandlePeer(event);
      break;
    default:
      break;
  }
}

void RangeOwner::Renew() {
  const uint64_t now = clock_.MonotonicNs();
  if (confirm_ns_ != 0 || (!is_map_stale_ && now < renew_ns_)) return;
  confirm_ns_ = now;
  is_confirmed_ = is_map_stale_ = false;
  session_.get()->Confirm(kConfirm);
  session_.get()->Get(kMap, MapPathOf(options_.name), CoordinatorWatch::kWatch);
}

void RangeOwner::HandleMap(const CoordinatorEvent& event) {
  const uint64_t confirm_ns = std::exchange(confirm_ns_, 0);
  const uint64_t lease_ns = uint64_t{session_.get()->timeout_ms()} * 1'000'000 * kLeaseQuarters / 4;
  renew_ns_ = confirm_ns + lease_ns / 3;
  RangeMap map;
  const bool is_read = event.outcome == CoordinatorOutcome::kDone && is_confirmed_;
  if (!is_read || !RangeMap::Decode(event.bytes, &map)) {
    renew_ns_ = confirm_ns + pool::KeptSession::kRetryNs;
    return;
  }
  map.version = event.version;
  Ownership* const current = current_.load(std::memory_order_relaxed);
  if (current != nullptr && current->version() == map.version) {
    return current->Extend(confirm_ns + lease_ns);
  }
  Publish(std::make_unique<Ownership>(map, options_.self, confirm_ns + lease_ns));
  Adopt(std::move(map));
}

void RangeOwner::Publish(std::unique_ptr<Ownership> ownership) {
  Epochs::Garbage garbage;
  Ownership* const old = current_.load(std::memory_order_relaxed);
  if (old != nullptr) garbage.emplace_back().free = [old] { delete old; };
  current_.store(ownership.release(), std::memory_order_seq_cst);
  epochs_.Retire(garbage);
  drain_ticket_.reset();
}

void RangeOwner::Adopt(RangeMap map) {
  const RangeMap before = std::exchange(map_, std::move(map));
  if (map_.version != before.version + 1) copy_.reset();  // M1
  peer_.clear();
  is_asking_peer_ = false;
  DeleteLeftovers(before);
}

// ---- Versions ----

// Nothing goes by an older version of the map any more, and what was written by one can be read.
bool RangeOwner::IsDrained() {
  if (epochs_.Reclaim()) return false;
  if (!drain_ticket_) drain_ticket_ = engine_.Latest();
  engine_.Release();
  return engine_.gate().IsReleased(*drain_ticket_);
}

void RangeOwner::TellVersion() {
  if (telling_ || told_version_ >= map_.version || !IsDrained()) return;
  telling_ = map_.version;
  session_.get()->Set(kOwn, ServerPathOf(options_.name, options_.self),
                      std::to_string(map_.version), own_node_version_);
}

// Of the node's version only this session's sets make a new one, so a set whose answer was lost is
// made again with the version after it.
void RangeOwner::HandleOwn(const CoordinatorEvent& event) {
  const auto told = std::exchange(telling_, std::nullopt);
  if (event.outcome == CoordinatorOutcome::kDone && told) {
    own_node_version_ = event.version;
    told_version_ = *told;
  } else if (event.outcome == CoordinatorOutcome::kStale) {
    ++own_node_version_;
  }
}

bool RangeOwner::HasFollowed(std::string_view peer, bool counts_if_gone) {
  const bool is_known = peer_ == peer && peer_version_ >= map_.version;
  if (is_known && (counts_if_gone || peer_version_ != kGone)) return true;
  if (is_asking_peer_) return false;
  peer_ = peer;
  peer_version_ = -1;
  is_asking_peer_ = true;
  session_.get()->Get(kPeer, ServerPathOf(options_.name, peer), CoordinatorWatch::kNone);
  return false;
}

void RangeOwner::HandlePeer(const CoordinatorEvent& event) {
  if (!std::exchange(is_asking_peer_, false)) return;
  if (event.outcome == CoordinatorOutcome::kAbsent) peer_version_ = kGone;
  if (event.outcome != CoordinatorOutcome::kDone) return;
  peer_version_ = ParseDecimal<int32_t>(event.bytes).value_or(-1);
}

// ---- Moves ----

void RangeOwner::Move() {
  const auto is_mine = [this](const RangeMap::Entry& entry) {
    if (entry.phase == RangeMap::Phase::kOpening) return entry.target == options_.self;
    return entry.phase == RangeMap::Phase::kCopying && entry.peer == options_.self;
  };
  const auto mine = std::ranges::find_if(map_.entries, is_mine);
  if (mine == map_.entries.end()) {
    copy_.reset();
  } else if (!is_changing_map_ && !is_map_stale_ && confirm_ns_ == 0) {
    const auto index = static_cast<size_t>(mine - map_.entries.begin());
    mine->phase == RangeMap::Phase::kOpening ? Open(index) : Copy(index);
  }
}

void RangeOwner::Open(size_t index) {
  if (!HasFollowed(map_.entries[index].peer, true)) return;
  RangeMap map = map_;
  map.entries[index].phase = RangeMap::Phase::kServed;
  map.entries[index].peer.clear();
  map.Merge();
  ChangeMap(std::move(map));
}

void RangeOwner::Copy(size_t index) {
  const RangeMap::Entry& entry = map_.entries[index];
  const auto upper = map_.UpperOf(index);
  RangeToCopy range = {.from = entry.target,
                       .lower = entry.lower,
                       .upper = upper ? std::optional(std::string(*upper)) : std::nullopt};
  if (copy_ != nullptr && copied_ != range) copy_.reset();
  if (copy_ == nullptr) {
    if (clock_.MonotonicNs() < copy_ns_ || !HasFollowed(entry.target, false)) return;
    DeleteRange(range.lower, range.upper);
    copied_ = range;
    copy_result_.reset();
    copies_begun_.fetch_add(1, std::memory_order_relaxed);
    copy_ = begin_copy_(range);
    return;
  }
  if (!copy_result_) return;
  if (!copy_result_->ok()) {
    copies_failed_.fetch_add(1, std::memory_order_relaxed);
    copy_ns_ = clock_.MonotonicNs() + kCopyAgainNs;
    copy_.reset();
    return;
  }
  RangeMap map = map_;
  map.entries[index] = {.lower = entry.lower,
                        .target = options_.self,
                        .phase = RangeMap::Phase::kOpening,
                        .peer = entry.target};
  ChangeMap(std::move(map));
}

void RangeOwner::ChangeMap(RangeMap map) {
  is_changing_map_ = true;
  session_.get()->Set(kChangeMap, MapPathOf(options_.name), map.Encode(), map.version);
}

// Ranges that were being moved to or from this server, and are not its own now.
void RangeOwner::DeleteLeftovers(const RangeMap& before) {
  const auto concerns = [this](const RangeMap::Entry& entry) {
    return entry.target == options_.self || entry.peer == options_.self;
  };
  for (size_t i = 0; i < before.entries.size(); ++i) {
    const RangeMap::Entry& old = before.entries[i];
    if (old.phase == RangeMap::Phase::kServed || !concerns(old)) continue;
    const auto end = before.UpperOf(i);
    for (size_t j = map_.IndexOf(old.lower); j < map_.entries.size(); ++j) {
      const std::string_view lower = std::max<std::string_view>(old.lower, map_.entries[j].lower);
      if (end && lower >= *end) break;
      if (concerns(map_.entries[j])) continue;
      auto upper = map_.UpperOf(j);
      if (end && (!upper || *end < *upper)) upper = end;
      DeleteRange(lower, upper);
    }
  }
}

void RangeOwner::DeleteRange(std::string_view lower, std::optional<std::string_view> upper) {
  Batch batch;
  batch.DeleteRange(upper ? Range::Between(lower, *upper) : Range::From(lower));
  engine_.Execute(batch);
}

void RangeOwner::Describe(const Engine::StatsVisitor& visit) const {
  const Epochs::Guard guard(epochs_);
  const Ownership* const ownership = current_.load(std::memory_order_seq_cst);
  const uint64_t now = clock_.MonotonicNs();
  const uint64_t end = ownership == nullptr ? 0 : ownership->lease_end_ns();
  visit("map_version", ownership == nullptr ? 0 : static_cast<uint64_t>(ownership->version()));
  visit("ranges", ownership == nullptr ? 0 : ownership->ranges());
  visit("lease_ms_left", end > now ? (end - now) / 1'000'000 : 0);
  visit("copies_begun", copies_begun_.load(std::memory_order_relaxed));
  visit("copies_failed", copies_failed_.load(std::memory_order_relaxed));
}

}  // namespace skep::ranges
