#include "client/remote_engine.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/varint.h"
#include "engine/partial_batch.h"
#include "wire/packed_reply.h"

namespace skep::client {
namespace {

// A snapshot's id has its place: connection (8 bits), the low bits of its generation (24), the
// server's number (32).
struct Place {
  size_t connection;
  uint32_t generation;
  uint64_t number;
};
constexpr uint32_t kGenerationMask = (uint32_t{1} << 24) - 1;

uint64_t IdOf(const Place& place) {
  return uint64_t{place.connection} << 56 | uint64_t{place.generation & kGenerationMask} << 32 |
         place.number;
}
Place PlaceOf(uint64_t id) {
  return {.connection = id >> 56,
          .generation = static_cast<uint32_t>(id >> 32) & kGenerationMask,
          .number = id & UINT32_MAX};
}

// All watches use one connection, whichever thread ends them.
constexpr size_t kWatchConnection = 0;

bool OnlyReads(const Batch& batch) {
  return std::ranges::none_of(batch.requests(), IsWrite, &Request::op);
}

// Whether the batch has nothing to ask a server. Even if it has no requests, the server has to say
// whether the snapshot is still there that it is to read at.
bool IsNothing(const Batch& batch) { return batch.empty() && batch.snapshot().id == 0; }

bool AsksForParts(const Batch& batch) {
  return std::ranges::any_of(batch.requests(), [](const Request& r) {
    return r.op == Op::kGet && r.has(Request::kByteRange);
  });
}

// Whether the rest of a range that was cut is smaller than the range, so that going on comes to an
// end. A scan from a floor begins somewhere below its key.
bool Advances(const Request& request, const Outcome& outcome) {
  if (!outcome.more || (request.op != Op::kScan && request.op != Op::kCount)) return true;
  if (request.has(Request::kSeekFloor) || request.limit == 0) return true;
  const std::string_view bound = outcome.value;
  if (!request.has(Request::kReverse)) return bound > request.key;
  return bound > request.key && (request.has(Request::kNoUpperBound) || bound < request.other);
}

// The tree whose leaves a server shares is that of its first keyspace.
bool IsOneSided(Remote& remote, uint32_t keyspace) {
  return keyspace == 0 && remote.leaf_sessions() != nullptr;
}

// Null: there is none. Who reads leaves needs right links: what has a stale one has to be sent.
std::unique_ptr<FatRoot> NewFatRoot(Remote& remote, uint32_t keyspace) {
  constexpr uint32_t kStaleMaxOfReaders = 4;
  if (IsOneSided(remote, keyspace)) return std::make_unique<FatRoot>(kStaleMaxOfReaders);
  return remote.options().fat_root ? std::make_unique<FatRoot>() : nullptr;
}

}  // namespace

RemoteEngine::RemoteEngine(Remote& remote, uint32_t keyspace)
    : remote_(remote),
      keyspace_(keyspace),
      fat_root_(NewFatRoot(remote, keyspace)),
      refresh_(fat_root_ != nullptr ? std::make_unique<FatRootRefresh>(remote, keyspace, *fat_root_)
                                    : nullptr),
      one_sided_(IsOneSided(remote, keyspace)
                     ? std::make_unique<OneSidedReads>(remote, *remote.leaf_sessions(), *fat_root_)
                     : nullptr) {}

// ---- Batches ----

// A batch that was sent.
class RemoteEngine::SentBatch final : public BatchUnderWay {
 public:
  SentBatch(RemoteEngine& engine, Batch& batch);
  ~SentBatch() override {
    if (connection_ != nullptr) connection_->Abandon(message_);
  }
  Version Finish() override;
  // The part of Finish that waits for the reply; ranges that the server has cut stay cut. Errors as
  // Connection::Await; also: the reply is malformed.
  Status Receive();

 private:
  Status WriteMessage(size_t* connection);
  bool TakeReply();
  void UseReply();

  RemoteEngine& engine_;
  Remote& remote_;
  Batch& batch_;
  Message message_;
  std::vector<Hint> hints_;           // of the fat root; empty: the requests' own were sent
  size_t index_ = 0;                  // of the connection
  Connection* connection_ = nullptr;  // null: refused at once, or empty, or the reply is there
};

RemoteEngine::SentBatch::SentBatch(RemoteEngine& engine, Batch& batch)
    : engine_(engine), remote_(engine.remote_), batch_(batch) {
  index_ = remote_.IndexForThread();
  const Status refusal = WriteMessage(&index_);
  // Makes room for the outcomes before anything is sent.
  BatchWriter writer(batch_);
  if (!refusal.ok()) writer.RefuseAll(refusal);
  if (!refusal.ok() || IsNothing(batch_)) return;
  connection_ = &remote_.connection(index_);
  connection_->Begin(message_);
}

// Encodes the message. Returns why the batch is refused, if it is. Changes the connection if the
// batch needs another one.
Status RemoteEngine::SentBatch::WriteMessage(size_t* connection) {
  Status refusal = CheckBatch(batch_, {});
  uint64_t snapshot = 0;
  if (const uint64_t id = batch_.snapshot().id; id != 0) {
    const Place place = PlaceOf(id);
    *connection = place.connection;
    snapshot = place.number;
    const uint32_t generation = place.connection < remote_.connections()
                                    ? remote_.connection(place.connection).generation()
                                    : 0;
    if ((generation & kGenerationMask) != place.generation) refusal = kSnapshotGone;
    message_.generation = generation;
  }
  if (batch_.size() > remote_.operations_max()) {
    refusal = {Code::kTooLarge, "the batch has more operations than a message",
               remote_.operations_max()};
  }
  if (!remote_.gives_parts() && AsksForParts(batch_)) {
    refusal = {Code::kNotSupported, "the server does not know reads of parts of values"};
  }
  if (!refusal.ok() || IsNothing(batch_)) return refusal;
  const ConnectOptions& options = remote_.options();
  message_.may_repeat = OnlyReads(batch_);
  message_.remembered = !message_.may_repeat && options.remembers_writes;
  const bool syncs = !message_.may_repeat && options.syncs_writes;
  if (engine_.fat_root_ != nullptr && batch_.kind() == Batch::Kind::kUnordered) {
    engine_.fat_root_->FillIn(batch_, &hints_);
  }
  packed::AppendBatch(
      message_.bytes,
      {.flags = static_cast<uint8_t>(
           packed::kWantDeadlines | (options.wants_versions ? packed::kWantVersions : 0) |
           (message_.remembered ? packed::kRemember : 0) | (syncs ? packed::kSync : 0)),
       .keyspace = static_cast<uint16_t>(engine_.keyspace_)},
      batch_, snapshot, hints_);
  if (message_.bytes.size() > remote_.message_bytes_max()) {
    return {Code::kTooLarge, "the batch is larger than a message", remote_.message_bytes_max()};
  }
  return {};
}

Version RemoteEngine::SentBatch::Finish() {
  if (connection_ == nullptr) return 0;
  const bool only_reads = message_.may_repeat;
  try {
    if (const Status s = Receive(); !s.ok()) {
      BatchWriter(batch_).RefuseAll(s);
    } else if (batch_.kind() == Batch::Kind::kUnordered) {
      engine_.CompleteRanges(batch_);
    }
  } catch (const std::bad_alloc&) {
    BatchWriter(batch_).RefuseAll(only_reads ? kNoMemory : kNoMemoryOfWrite);
  }
  return 0;
}

Status RemoteEngine::SentBatch::Receive() {
  if (connection_ == nullptr) return {};
  const Status s = std::exchange(connection_, nullptr)->Await(message_);
  if (!s.ok()) return s;
  if (TakeReply()) {
    UseReply();
    return s;
  }
  return message_.may_repeat ? kMalformed : kMalformedOfWrite;
}

// False: the reply is not one to this batch.
bool RemoteEngine::SentBatch::TakeReply() {
  if (!packed::ReadReply(message_.header, message_.payload(), batch_).ok()) return false;
  // The outcomes are views of the reply.
  BatchWriter(batch_, BatchWriter::KeepOutcomes())
      .scratch()
      .Adopt(std::move(message_.reply), message_.header.payload_bytes);
  for (uint32_t slot = 0; slot < batch_.size(); ++slot) {
    if (!Advances(batch_.requests()[slot], batch_.outcome(slot))) return false;
  }
  return true;
}

// Tells the fat root what the reply says of the hints that it gave.
void RemoteEngine::SentBatch::UseReply() {
  if (engine_.fat_root_ == nullptr) return;
  for (uint32_t slot = 0; slot < hints_.size(); ++slot) {
    const Request& request = batch_.requests()[slot];
    const bool is_own = request.hint.bits != 0;
    if (!is_own && FatRoot::IsStale(hints_[slot], batch_.outcome(slot).hint)) {
      engine_.fat_root_->NoteStale(request.key);
    }
  }
  engine_.refresh_->Step(index_);
}

// A batch of which a part was read one-sided, and the rest is sent.
class RemoteEngine::PartlySentBatch final : public BatchUnderWay {
 public:
  PartlySentBatch(RemoteEngine& engine, Batch& batch);
  Version Finish() override;
  bool is_sent() const { return sent_.has_value(); }

 private:
  Batch& batch_;
  std::vector<uint32_t> left_;  // the slots that are sent
  Batch rest_;                  // their requests, if they are not the whole batch
  CallsUnderWay::Entry entry_;
  std::optional<SentBatch> sent_;  // of rest_, or the whole batch
};

RemoteEngine::PartlySentBatch::PartlySentBatch(RemoteEngine& engine, Batch& batch)
    : batch_(batch), entry_(engine.one_sided_->calls()) {
  engine.one_sided_->Answer(batch, engine.remote_.IndexForThread(), &left_);
  if (left_.empty() && !batch.empty()) return;
  const bool is_whole = left_.size() == batch.size();
  if (!is_whole) {
    rest_.set_scan_bytes_max(batch.scan_bytes_max());
    rest_.set_scan_visits_max(batch.scan_visits_max());
    for (const uint32_t slot : left_) rest_.Add(batch.requests()[slot]);
  }
  Batch& sent = is_whole ? batch_ : rest_;
  entry_.Enter(sent);
  sent_.emplace(engine, sent);
}

Version RemoteEngine::PartlySentBatch::Finish() {
  if (!sent_) return 0;
  const Version ticket = sent_->Finish();
  entry_.Leave();
  if (rest_.empty()) return ticket;
  BatchWriter writer(batch_, BatchWriter::KeepOutcomes());
  try {
    for (uint32_t i = 0; i < left_.size(); ++i) CopyOutcome(rest_, i, writer, left_[i]);
  } catch (const std::bad_alloc&) {
    writer.RefuseAll(OnlyReads(batch_) ? kNoMemory : kNoMemoryOfWrite);
  }
  return ticket;
}

// Whether the request names a type of values, which the packed protocol does not.
static bool AsksForType(const Request& r) {
  return r.type != kPlainType ||
         (r.op == Op::kApply && r.function != nullptr && r.function->type != kPlainType);
}
static bool AsksForTypes(const Batch& batch) {
  return std::ranges::any_of(batch.requests(), AsksForType);
}

BegunBatch RemoteEngine::Begin(Batch& batch) {
  if (AsksForTypes(batch)) return {.ticket = Execute(batch), .under_way = nullptr};
  if (one_sided_ != nullptr) {
    auto partly_sent = std::make_unique<PartlySentBatch>(*this, batch);
    if (!partly_sent->is_sent()) return {};
    return {.ticket = 0, .under_way = std::move(partly_sent)};
  }
  return {.ticket = 0, .under_way = std::make_unique<SentBatch>(*this, batch)};
}

Version RemoteEngine::Execute(Batch& batch) {
  if (!AsksForTypes(batch)) {
    if (one_sided_ != nullptr) return PartlySentBatch(*this, batch).Finish();
    return SentBatch(*this, batch).Finish();
  }
  if (const Status s = CheckBatch(batch, {}); !s.ok()) {
    BatchWriter(batch).RefuseAll(s);
    return 0;
  }
  return ExecutePartly(*this, batch, [&](uint32_t slot) {
    constexpr Status kNoTypes(Code::kNotSupported, "a server's values are plain here: strings");
    return AsksForType(batch.requests()[slot]) ? kNoTypes : Status();
  });
}

// ---- Ranges that the server has cut ----

// Whether the server has cut the range although the batch's own limits allow more.
bool RemoteEngine::WasCut(const Batch& batch, uint32_t slot) const {
  const Request& request = batch.requests()[slot];
  const Outcome& outcome = batch.outcome(slot);
  if (outcome.verdict != Verdict::kDone || !outcome.more) return false;
  if (request.op == Op::kCount) {
    return request.limit == kNoLimit || static_cast<uint64_t>(outcome.integer) < request.limit;
  }
  const bool limited = batch.scan_bytes_max() != SIZE_MAX || batch.scan_visits_max() != kNoLimit;
  return request.op == Op::kScan && !limited && outcome.item_count < request.limit;
}

void RemoteEngine::CompleteRanges(Batch& batch) {
  std::vector<uint32_t> cut;
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    if (WasCut(batch, slot)) cut.push_back(slot);
  }
  if (cut.empty()) return;
  SnapshotRef at = batch.snapshot();
  // An engine that keeps one version of a key has nothing to pin: its ranges are read piece by
  // piece.
  const bool owns = at.id == 0 && traits().snapshots;
  BatchWriter writer(batch, BatchWriter::KeepOutcomes());
  if (owns) {
    const auto opened = OpenSnapshot(batch.now_ms());
    if (!opened) {
      for (const uint32_t slot : cut) writer.Refuse(slot, opened.error());
      return;
    }
    at = *opened;
  }
  const auto close = [&](const SnapshotRef* opened) { CloseSnapshot(*opened); };
  const std::unique_ptr<SnapshotRef, decltype(close)> closed_at_last(owns ? &at : nullptr, close);
  for (const uint32_t slot : cut) Complete(batch.requests()[slot], at, writer, slot);
}

// Reads the range again, from its beginning.
void RemoteEngine::Complete(const Request& request, SnapshotRef at, BatchWriter& writer,
                            uint32_t slot) {
  Batch piece;
  std::string bound;
  Request left = request;
  Outcome& outcome = writer.outcome(slot);
  outcome.integer = 0;
  writer.BeginItems(slot);
  while (true) {
    piece.Clear();
    piece.set_snapshot(at);
    piece.Add(left);
    if (const Status s = SentBatch(*this, piece).Receive(); !s.ok()) return writer.Refuse(slot, s);
    const Outcome& got = piece.outcome(0);
    if (got.verdict == Verdict::kRefused) return writer.Refuse(slot, got.status);
    const auto found =
        request.op == Op::kCount ? static_cast<uint64_t>(got.integer) : got.item_count;
    if (found > left.limit) return writer.Refuse(slot, kMalformed);
    for (const Item& item : piece.items(0)) writer.AddItem(slot, item);
    outcome.integer += got.integer;
    if (left.limit != kNoLimit) left.limit -= static_cast<uint32_t>(found);
    bound.assign(got.value);
    outcome.more = got.more;
    if (!got.more || left.limit == 0) break;
    if (request.has(Request::kReverse)) {
      left.other = bound;
      left.flags = static_cast<uint8_t>(left.flags & ~Request::kNoUpperBound);
    } else {
      left.key = bound;
      left.flags = static_cast<uint8_t>(left.flags & ~Request::kSeekFloor);
    }
  }
  outcome.value = outcome.more ? writer.scratch().Copy(bound) : std::string_view();
}

// ---- Requests that are no batches ----

const EngineTraits& RemoteEngine::traits() const {
  // Acquire: a thread that sees knows_traits_ also sees the traits.
  if (knows_traits_.load(std::memory_order_acquire)) return traits_;
  // Each caller has a timeout of its own, so every caller asks until there is an answer.
  auto reply = remote_.Ask(packed::Kind::kKeyspace, keyspace_, {}, remote_.IndexForThread());
  const MutexLock lock(mutex_);
  if (!reply || knows_traits_.load(std::memory_order_relaxed)) return traits_;
  name_ = std::move(*reply);
  const bool is_read = packed::ReadTraits(name_, &traits_);
  // A long range is read in pieces (CompleteRanges).
  if (!traits_.snapshots) traits_.whole_ranges = false;
  if (is_read) knows_traits_.store(true, std::memory_order_release);
  return traits_;
}

Result<SnapshotRef> RemoteEngine::OpenSnapshot(uint64_t) {
  Place place{.connection = remote_.IndexForThread(), .generation = 0, .number = 0};
  const auto reply =
      remote_.Ask(packed::Kind::kOpenSnapshot, keyspace_, {}, place.connection, &place.generation);
  if (!reply) return Fail(reply.error());
  std::string_view left = *reply;
  SnapshotRef ref;
  if (!TakeVarint(left, &place.number) || !TakeVarint(left, &ref.version) ||
      !TakeVarint(left, &ref.now_ms) || place.number > UINT32_MAX) {
    return Fail(kMalformed);
  }
  ref.id = IdOf(place);
  return ref;
}

void RemoteEngine::CloseSnapshot(SnapshotRef snapshot) {
  const Place place = PlaceOf(snapshot.id);
  if (place.connection >= remote_.connections()) return;
  const uint32_t generation = remote_.connection(place.connection).generation();
  if ((generation & kGenerationMask) != place.generation) return;
  remote_.Tell(packed::Kind::kCloseSnapshot, keyspace_, place.number, place.connection);
}

Result<uint64_t> RemoteEngine::Watch(std::string_view key, uint64_t) {
  const auto reply = remote_.Ask(packed::Kind::kWatch, keyspace_, key, kWatchConnection);
  if (!reply) return Fail(reply.error());
  std::string_view left = *reply;
  uint64_t number = 0;
  if (!TakeVarint(left, &number)) return Fail(kMalformed);
  return number;
}

void RemoteEngine::Unwatch(uint64_t watch) {
  remote_.Tell(packed::Kind::kUnwatch, keyspace_, watch, kWatchConnection);
}

packed::KeyspaceStatistics RemoteEngine::Ask() const {
  packed::KeyspaceStatistics statistics;
  const auto reply =
      remote_.Ask(packed::Kind::kStatistics, keyspace_, {}, remote_.IndexForThread());
  if (reply && !packed::ReadStatistics(*reply, &statistics)) statistics = {};
  return statistics;
}

EngineStatistics RemoteEngine::Statistics() const { return Ask().engine; }

void RemoteEngine::Describe(uint64_t, const StatsVisitor& visit) const {
  for (const auto& [name, value] : Ask().details) visit(name, value);
  if (fat_root_ == nullptr) return;
  const FatRootStatistics root = fat_root_->Statistics();
  visit("fat_root_links", root.links);
  visit("fat_root_bytes", root.bytes);
  visit("fat_root_pages", root.pages);
  visit("fat_root_hinted", root.hinted);
  visit("fat_root_stale", root.stale);
  if (one_sided_ == nullptr) return;
  const leaves::LeafReaderStatistics reads = one_sided_->Statistics();
  visit("one_sided_answered", reads.answered);
  visit("one_sided_asked", reads.asked);
  visit("one_sided_unreleased", reads.unreleased);
  visit("one_sided_tries", reads.tries);
  visit("one_sided_round_trips", reads.posts);
  visit("one_sided_bytes", reads.bytes);
}

Version RemoteEngine::Latest() const { return Ask().released; }

Result<std::unique_ptr<PairIterator>> RemoteEngine::OpenPairIterator(uint64_t) {
  return Fail(Code::kNotSupported, "a server's keyspace is read by scans or walks");
}

}  // namespace skep::client
