// sorted_role.h: what the sorted server of a pool does: keeps the log, applies it to an ordered
// index in its own time, and answers scans.
//
// An entry is acknowledged as soon as it is in the log (HStore, section 3.2), of a pool that is
// kept on disks also in that on this server's disk (index_log.h), and applied when nothing else is
// to do or a scan needs it. A scan that arrives is of the state R, the end of the log at that
// moment: whatever a client can have seen through the hash index before was acknowledged before, so
// it is in R (rule A in pool_engine.h). It says R, and the client sees to it that R is applied at
// the hash server before it gives an answer.
// With applies_first an entry is acknowledged after it was applied: "HStore (sync)" of the paper's
// section 5.1, which is there for its figures. Nothing else depends on it.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "pool/index_context.h"

namespace skep::pool {

class SortedRole {
 public:
  // Of one scan: a longer one says that there is more.
  static constexpr uint32_t kSlotsMax = 1 << 18;
  static constexpr size_t kKeyBytesScanned = 64 << 20;
  // Keys that are looked at by one question for lost ones.
  static constexpr uint32_t kKeysForLost = 16 * 1024;
  static constexpr size_t kKeyBytesForLost = 4 << 20;
  // Entries that wait, above which the log is applied whatever else there is to do.
  static constexpr uint64_t kWaitingMax = 64 * 1024;

  // The context's state keeps a tree.
  explicit SortedRole(IndexContext& context);

  // A request whose kind and fields have been read. False: it is none of this role.
  bool Handle(const rma::Event& event, MessageKind kind, std::string_view fields);
  // Acknowledges what is logged by now. Returns whether there was any.
  bool AcknowledgeLogged();
  // Whether this server's log has all entries.
  bool IsLogged() const { return needed_.IsReached(context_.log); }
  // What the log of this server is to have before anything is acknowledged.
  void Require(const LoggedUpTo& needed) { needed_ = needed; }
  // Applies a bounded part of the log, if there is nothing else to do, and what is needed so that
  // no more than kWaitingMax entries wait. Returns whether there was any.
  bool Turn(bool is_idle);
  // Applies all of it.
  void ApplyAll();
  // The index of the last entry that has come.
  uint64_t log_end() const { return log_end_; }
  // Before this instant the hash server may still have authority (hash_role.h), also if its clock
  // is slower by one per cent.
  uint64_t authority_ends_ns() const {
    return last_answer_ns_ + context_.times.lease_ns + context_.times.lease_ns / 64;
  }

 private:
  // A shipment that was taken and not acknowledged.
  struct Shipment {
    rma::PeerId peer;
    uint64_t token;
    LoggedUpTo needed;
    uint64_t log_end;
  };

  bool IsBehind() const { return log_end_ > context_.state.applied() + kWaitingMax; }
  // False: there is nothing.
  bool ApplyFront();
  void Append(const rma::Event& event, std::string_view fields);
  void Scan(const rma::Event& event, std::string_view fields);
  void AnswerScan(const rma::Event& event, const ScanRequest& scan);
  void TellLost(const rma::Event& event, std::string_view fields);

  IndexContext& context_;
  std::deque<LogBatch> log_;  // what is not applied yet
  uint64_t log_end_;
  LoggedUpTo needed_;  // of this server's log, up to log_end_
  std::deque<Shipment> shipments_;
  uint64_t last_answer_ns_ = 0;
  std::vector<CommitVerdict> verdicts_;
  Batch batch_;
  std::string fields_;  // scratch
};

}  // namespace skep::pool
