// commit_client_test.h: a client of a CoordinatedPool that does one operation at a time, knows what
// each of them must come to, and sends it again until it hears.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "pool/coordinated_pool_test.h"
#include "pool/dialer.h"
#include "pool/fields.h"
#include "pool/item.h"

namespace skep::pool {

class CommitClient {
 public:
  CommitClient(CoordinatedPool& pool, uint64_t seed)
      : pool_(pool),
        random_(seed),
        endpoint_(pool.fabric().Open({}).value()),
        index_servers_(*endpoint_),
        memory_servers_(*endpoint_) {}

  // No operation is begun any more.
  void Rest(bool rests) { rests_ = rests; }
  bool HasJoined() const { return client_ != 0; }
  bool IsIdle() const { return !is_busy_ && again_.empty(); }
  // How many operations were answered.
  uint64_t done() const { return done_; }
  // Returns the items that the pool must have once the client is idle.
  const std::map<std::string, Slot>& items() const { return items_; }
  // Sends the last operations once more; each must come to what it came to before.
  void SendOldOnesAgain() { again_ = old_; }

  void Turn() {
    for (const rma::Event& event : endpoint_->Poll(0)) Handle(event);
    if (pool_.clock().MonotonicNs() < retry_ns_) return;
    if (client_ == 0) {
      Call(MessageKind::kJoin, "");
    } else if (is_busy_) {
      Send();
    } else if (!again_.empty()) {
      operation_ = again_.front();
      is_busy_ = is_written_ = true;
    } else if (rests_ || pool_.map().epoch == 0) {
      return;
    } else if (!has_chunk_) {
      Call(MessageKind::kLease, std::string_view("\1\0", 2));
    } else if (next_unit_ == kUnitsUsed) {
      Seal();
    } else {
      Begin();
    }
  }

 private:
  static constexpr uint64_t kRetryNs = 300'000'000;
  static constexpr size_t kOld = 20;
  static constexpr uint32_t kKeys = 60;
  // A chunk is left early, so that some are sealed and recycled in a test.
  static constexpr uint32_t kUnitsUsed = 30;

  struct Operation {
    LogEntry entry;  // without its key
    std::string key;
    CommitVerdict verdict;  // that it must have; the version only of old ones
  };

  void Call(MessageKind kind, std::string_view fields) {
    const auto at = pool_.map().index_servers.find(pool_.map().hash_server);
    if (at == pool_.map().index_servers.end()) return;
    const uint64_t now = pool_.clock().MonotonicNs();
    const rma::PeerId peer = index_servers_.Find(at->first, at->second, now);
    if (peer == 0) return;
    std::string request(1, static_cast<char>(kind));
    if (kind != MessageKind::kJoin) {
      AppendVarint(request, pool_.map().epoch);
      AppendVarint(request, client_);
    }
    request.append(fields);
    kind_ = kind;
    token_ = next_token_++;
    retry_ns_ = now + kRetryNs;
    endpoint_->Call(peer, token_, request);
  }
  void Seal() {
    std::string chunk;
    AppendVarint(chunk, chunk_);
    Call(MessageKind::kSeal, chunk);
  }

  // An operation of the next key: a delete, or a put under one of the conditions.
  void Begin() {
    is_busy_ = true;
    operation_ = {.entry = {.client = client_, .sequence = next_sequence_++},
                  .key = "key" + std::to_string(100 + random_.Below(kKeys)),
                  .verdict = {}};
    LogEntry& entry = operation_.entry;
    const auto at = items_.find(operation_.key);
    const Slot before = at == items_.end() ? Slot() : at->second;
    const auto choice = random_.Below(4);
    if (choice == 0) {
      entry.kind = LogEntry::Kind::kDelete;
    } else if (choice == 1) {
      entry.condition = LogEntry::Condition::kIfAbsent;
    } else if (choice == 2 && before) {
      entry.condition = LogEntry::Condition::kIfSlot;
      entry.expected = before;
    }
    const bool is_met = choice > 1 || (choice == 0) == static_cast<bool>(before);
    operation_.verdict = {
        .kind = is_met ? CommitVerdict::Kind::kDone : CommitVerdict::Kind::kNotMet,
        .before = before};
    is_written_ = entry.kind == LogEntry::Kind::kDelete;
    if (is_written_) return;
    const uint8_t signature = DigestOf(pool_.map().keys, operation_.key).signature();
    entry.slot = Slot(signature, 1, gen_, chunk_, next_unit_++);
  }
  void Send() {
    if (!is_written_) return Write();
    std::string fields;
    LogEntry entry = operation_.entry;
    entry.key = operation_.key;
    EncodeEntry(entry, fields);
    Call(MessageKind::kCommit, fields);
  }
  void Write() {
    const auto at = pool_.map().memory_servers.find(CoordinatedPool::kMemoryServer);
    if (at == pool_.map().memory_servers.end()) return;
    const uint64_t now = pool_.clock().MonotonicNs();
    const rma::PeerId peer = memory_servers_.Find(at->first, at->second, now);
    if (peer == 0) return;
    const Slot slot = operation_.entry.slot;
    WriteItem(PlaceOf(slot), client_, operation_.entry.sequence, operation_.key, "v", item_);
    const rma::Operation write = {.kind = rma::Operation::Kind::kWrite,
                                  .region = 0,
                                  .offset = uint64_t{slot.chunk()} * kChunkBytes + slot.offset(),
                                  .bytes = kUnitBytes,
                                  .local = item_.data()};
    endpoint_->Post(peer, next_token_++, {&write, 1});
  }

  void Handle(const rma::Event& event) {
    index_servers_.Handle(event);
    memory_servers_.Handle(event);
    if (event.kind == rma::Event::Kind::kDone && event.status.ok()) is_written_ = true;
    if (event.kind != rma::Event::Kind::kReply || event.token != token_) return;
    retry_ns_ = 0;
    if (!event.status.ok() || event.bytes.empty()) return;
    const auto code = static_cast<ReplyCode>(event.bytes[0]);
    ASSERT_TRUE(code == ReplyCode::kOk || code == ReplyCode::kNotServing ||
                code == ReplyCode::kWrongEpoch || code == ReplyCode::kCannotLog)
        << static_cast<int>(code);
    if (code == ReplyCode::kOk) Take(event.bytes.substr(1));
  }
  void Take(std::string_view fields) {
    uint32_t count = 0;
    switch (kind_) {
      case MessageKind::kJoin:
        ASSERT_TRUE(TakeNumber(fields, &client_));
        break;
      case MessageKind::kLease:
        ASSERT_TRUE(TakeNumber(fields, &count) && TakeNumber(fields, &chunk_) &&
                    TakeNumber(fields, &gen_));
        has_chunk_ = true;
        next_unit_ = 1;
        break;
      case MessageKind::kSeal:
        has_chunk_ = false;
        break;
      default:
        Settle(fields);
    }
  }
  void Settle(std::string_view fields) {
    CommitVerdict verdict;
    ASSERT_TRUE(TakeVerdict(fields, &verdict));
    is_busy_ = false;
    ASSERT_EQ(verdict.kind, operation_.verdict.kind) << operation_.key;
    ASSERT_EQ(verdict.before, operation_.verdict.before) << operation_.key;
    if (!again_.empty()) {
      ASSERT_EQ(verdict.version, operation_.verdict.version) << operation_.key;
      return again_.pop_front();
    }
    ++done_;
    operation_.verdict = verdict;
    old_.push_back(operation_);
    if (old_.size() > kOld) old_.pop_front();
    if (verdict.kind != CommitVerdict::Kind::kDone) return;
    if (operation_.entry.kind == LogEntry::Kind::kDelete) items_.erase(operation_.key);
    if (operation_.entry.kind == LogEntry::Kind::kPut) {
      items_[operation_.key] = operation_.entry.slot;
    }
  }

  CoordinatedPool& pool_;
  SeededRandom random_;
  const std::unique_ptr<rma::Endpoint> endpoint_;
  Dialer index_servers_;
  Dialer memory_servers_;
  uint32_t client_ = 0;  // 0: it has not joined yet
  bool has_chunk_ = false;
  uint32_t chunk_ = 0;
  uint8_t gen_ = 0;
  uint32_t next_unit_ = 1;
  uint64_t next_sequence_ = 1;

  // The call that is under way.
  uint64_t next_token_ = 1;
  uint64_t token_ = 0;
  MessageKind kind_ = MessageKind::kJoin;
  uint64_t retry_ns_ = 0;

  // The operation that is under way.
  bool is_busy_ = false;
  bool is_written_ = false;  // its item is in memory
  Operation operation_;
  std::vector<std::byte> item_ = std::vector<std::byte>(kUnitBytes);

  bool rests_ = false;
  uint64_t done_ = 0;
  std::map<std::string, Slot> items_;
  std::deque<Operation> old_;
  std::deque<Operation> again_;
};

}  // namespace skep::pool
