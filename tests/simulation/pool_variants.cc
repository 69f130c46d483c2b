#include "tests/simulation/pool_variants.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "pool/fields.h"
#include "pool/messages.h"
#include "rma/testing/sim_endpoint.h"

namespace skep::simulation {
namespace {

using pool::MessageKind;
using pool::SimPool;
using rma::SimMessage;

bool IsRequest(const SimMessage& message, MessageKind kind) {
  return !message.is_reply && !message.bytes.empty() && message.bytes[0] == static_cast<char>(kind);
}

// The index in the word that the hash server publishes; 0: there is no hash server.
uint64_t AppliedOf(SimPool& pool) {
  rma::SimEndpoint* const hash =
      pool.fabric().FindListener(SimPool::AddressOf(pool.map().hash_server));
  if (hash == nullptr) return 0;
  const auto* const word = reinterpret_cast<const std::atomic<uint64_t>*>(hash->RegionBegin(0));
  return pool::AppliedWord(word->load()).index();
}

// Says of each scan that it is of another index than that which it has seen.
class ScanTamper : public rma::SimTamper {
 public:
  void OnArrival(SimMessage& message) override {
    if (IsRequest(message, MessageKind::kScan)) told_[message.call] = Told();
  }
  void OnSend(SimMessage& message) override {
    const auto scan = message.is_reply ? told_.extract(message.call) : decltype(told_)::node_type();
    if (scan.empty() || message.bytes[0] != static_cast<char>(pool::ReplyCode::kOk)) return;
    std::string_view fields = std::string_view(message.bytes).substr(1);
    pool::ScanReply reply;
    if (!pool::DecodeScanReply(fields, &reply)) return;
    reply.applied = std::min(reply.applied, scan.mapped());
    std::string changed(1, message.bytes[0]);
    pool::EncodeScanReply(reply, changed);
    message.bytes = std::move(changed);
  }

 private:
  // The index for a scan that arrives now.
  virtual uint64_t Told() = 0;

  std::map<uint64_t, uint64_t> told_;  // by call
};

class PaperScan final : public ScanTamper {
 public:
  explicit PaperScan(SimPool&) {}

 private:
  uint64_t Told() override { return 0; }
};

class AppliedAtStart final : public ScanTamper {
 public:
  explicit AppliedAtStart(SimPool& pool) : pool_(pool) {}

 private:
  uint64_t Told() override { return AppliedOf(pool_); }

  SimPool& pool_;
};

class CommitIndex final : public ScanTamper {
 public:
  explicit CommitIndex(SimPool& pool) : pool_(pool) {}

  void OnSend(SimMessage& message) override {
    if (IsRequest(message, MessageKind::kShip)) shipped_[message.call] = AppliedOf(pool_);
    ScanTamper::OnSend(message);
  }
  void OnArrival(SimMessage& message) override {
    const auto ship = shipped_.find(message.call);
    if (!message.is_reply && ship != shipped_.end()) heard_ = ship->second;
    ScanTamper::OnArrival(message);
  }

 private:
  uint64_t Told() override { return heard_; }

  SimPool& pool_;
  std::map<uint64_t, uint64_t> shipped_;  // the index, by call
  uint64_t heard_ = 0;
};

// Numbers all commits of a client in the order in which they arrive.
class NoDeduplication final : public rma::SimTamper {
 public:
  explicit NoDeduplication(SimPool&) {}

  void OnArrival(SimMessage& message) override {
    if (!IsRequest(message, MessageKind::kCommit)) return;
    std::string_view fields = std::string_view(message.bytes).substr(1);
    uint64_t epoch = 0;
    uint32_t client = 0;
    if (!TakeVarint(fields, &epoch) || !pool::TakeNumber(fields, &client)) return;
    std::string changed = message.bytes.substr(0, message.bytes.size() - fields.size());
    for (pool::LogEntry entry; pool::DecodeEntry(fields, &entry);) {
      entry.sequence = ++last_[client];
      pool::EncodeEntry(entry, changed);
    }
    message.bytes = std::move(changed);
  }

 private:
  std::map<uint32_t, uint64_t> last_;  // by client
};

// Makes each move of a cleaner a plain put.
class UnconditionalMoves final : public rma::SimTamper {
 public:
  explicit UnconditionalMoves(SimPool&) {}

  void OnArrival(SimMessage& message) override {
    const bool is_lease = IsRequest(message, MessageKind::kLease);
    if (!is_lease && !IsRequest(message, MessageKind::kCommit)) return;
    std::string_view fields = std::string_view(message.bytes).substr(1);
    uint64_t epoch = 0;
    uint32_t client = 0;
    if (!TakeVarint(fields, &epoch) || !pool::TakeNumber(fields, &client)) return;
    if (is_lease) {
      if (fields.back() == static_cast<char>(pool::LeaseFor::kCleaning)) cleaners_.insert(client);
      return;
    }
    if (!cleaners_.contains(client)) return;
    std::string changed = message.bytes.substr(0, message.bytes.size() - fields.size());
    for (pool::LogEntry entry; pool::DecodeEntry(fields, &entry);) {
      entry.condition = pool::LogEntry::Condition::kNone;
      pool::EncodeEntry(entry, changed);
    }
    message.bytes = std::move(changed);
  }

 private:
  std::set<uint32_t> cleaners_;
};

template <typename Tamper>
PoolVariant With(PoolPlan::Kind kind) {
  return {.kind = kind,
          .make_tamper = [](SimPool& pool) { return std::make_unique<Tamper>(pool); }};
}

// The sorted server waits for as long as if the hash server were like itself.
PoolVariant NoReadLeases() {
  return {.kind = PoolPlan::Kind::kDeposed, .change_times = [](uint32_t id, auto& times) {
            if (id == 1) times.lease_ns *= 100;
          }};
}

}  // namespace

std::vector<NamedVariant> FaultyVariants() {
  using Kind = PoolPlan::Kind;
  return {{"Paper", With<PaperScan>(Kind::kScans)},
          {"CommitIndex", With<CommitIndex>(Kind::kScans)},
          {"AppliedAtStart", With<AppliedAtStart>(Kind::kScans)},
          {"NoReadLeases", NoReadLeases()},
          {"NoDeduplication", With<NoDeduplication>(Kind::kLostReplies)},
          {"UnconditionalMoves", With<UnconditionalMoves>(Kind::kCleaned)}};
}

}  // namespace skep::simulation
