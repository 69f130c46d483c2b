#include "server/packed_dispatch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/message_task.h"
#include "server/packed_messages.h"
#include "server/portions.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"

namespace skep {
namespace {

using packed::Header;
using packed::Kind;

constexpr uint32_t kMessageBytesMax = 1 << 30;
constexpr uint32_t kStrangerMessageMax = kStrangerBytesMax - sizeof(Header);
constexpr uint32_t kOperationsMax = 64 * 1024;  // operations of a message
// Limits of the ranges of a message, so that other connections go on: its client asks again for the
// rest, at the version it has pinned, if the engine keeps versions. An atomic batch cannot be cut
// like this; its ranges have the limits of a transaction's.
constexpr size_t kRangeBytesMax = 1 << 20;
constexpr size_t kRangeBytesMin = 16 * 1024;
constexpr uint32_t kRangeVisitsMax = 32 * 1024;
constexpr uint32_t kRangeVisitsMin = 512;

// Whether the operation is on one key, so that the batch of a turn may hold it for several
// connections.
// Whether all that the request costs are the bytes that it brings.
bool OnlyStores(const Request& r) {
  const bool stores = r.op == Op::kPut || r.op == Op::kInsert || r.op == Op::kUpdate;
  return stores && r.flags == 0 && r.when == 0;
}

bool IsPoint(Op op) { return (op <= Op::kApply && op != Op::kMove) || op == Op::kSample; }

uint32_t MessageBytesMax(const ServerOptions& options) {
  const uint64_t room = options.client_query_buffer_limit - sizeof(Header);
  return static_cast<uint32_t>(std::min<uint64_t>(room, kMessageBytesMax));
}

// Limits of a range, or of a step of a walk, of such a message.
struct RangeLimits {
  size_t bytes;
  uint32_t visits;
};
RangeLimits LimitsOf(const Header& header, size_t reply_bytes_max) {
  if (header.kind == Kind::kAtomic) return {kTransactionScanBytesMax, kTransactionScanKeysMax};
  const uint32_t share = std::max(header.count, 1u);
  // A range that alone exceeds the reply need not be read further.
  return {
      std::clamp(kRangeBytesMax / share, kRangeBytesMin, std::max(reply_bytes_max, kRangeBytesMin)),
      std::max(kRangeVisitsMax / share, kRangeVisitsMin)};
}

// The error for a marked message that is neither new nor known.
Status RefusalOf(ReplyMemory::Known state, uint64_t first_new) {
  if (state == ReplyMemory::Known::kRunning) {
    return {Code::kUnavailable, "the message is being executed: ask again"};
  }
  if (state == ReplyMemory::Known::kOther) {
    return {Code::kInvalidArgument, "a message of another keyspace or kind has had this id"};
  }
  return {Code::kAborted, "what became of the message is not known any more", first_new};
}

// Whether values in the reply to a message may be sent from where they lie (message_replies.h).
bool MayPin(const Session& session, const Header& header) {
  return session.port == nullptr && !header.has(packed::kRemember);
}

std::optional<uint8_t> CommonVersion(const packed::ClientHello& hello) {
  const bool common =
      hello.version_min <= packed::kVersion && packed::kVersion <= hello.version_max;
  return common ? std::optional(packed::kVersion) : std::nullopt;
}

}  // namespace

std::optional<size_t> PackedDispatch::DecodeHello(Session& session, std::string_view input) {
  const size_t seen = std::min(input.size(), packed::kMagic.size());
  if (input.substr(0, seen) != packed::kMagic.substr(0, seen)) {
    session.begun = true;
    return 0;
  }
  if (input.size() < sizeof(packed::ClientHello)) return std::nullopt;
  session.begun = true;
  const auto hello = packed::Read<packed::ClientHello>(input);
  const auto version = CommonVersion(hello);
  const bool durable = host_.state().persistence() != nullptr;
  session.packed = std::make_unique<PackedSession>(hello.client);
  if (version && turn_.IsAuthenticated(session))
    session.packed->EnterClient(host_.state().replies());
  packed::Append(
      session.out,
      packed::ServerHello{
          .version = version.value_or(0),
          .why = version ? packed::kHelloAccepted : packed::kHelloVersion,
          .keyspaces = static_cast<uint16_t>(host_.state().keyspaces().count()),
          .message_bytes_max = MessageBytesMax(turn_.options()),
          .operations_max = kOperationsMax,
          .instance = host_.state().instance(),
          .features = (turn_.IsAuthenticated(session) ? 0u : packed::kNeedsAuth) |
                      (durable ? packed::kIsDurable : 0u) |
                      (takes_datagrams_ ? packed::kTakesDatagrams : 0u) | packed::kHasTop |
                      packed::kGivesParts,
          .handles_max = PackedSession::kHandlesMax,
          .first_new = hello.client == 0 ? 0 : host_.state().replies().FirstNewId(hello.client)});
  session.info->last_command.store("packed", std::memory_order_relaxed);
  session.closing = !version;
  connections_.Queue(session);
  return sizeof(packed::ClientHello);
}

size_t PackedDispatch::Decode(Session& session, std::string_view input) {
  size_t at = 0;
  session.packed->wanted = 0;
  while (input.size() - at >= sizeof(Header)) {
    batch_.BoundPipeline(session);
    if (session.paused() || session.closing || session.closed) break;
    const auto header = packed::Read<Header>(input.substr(at));
    const uint32_t bytes_max =
        turn_.IsAuthenticated(session) ? MessageBytesMax(turn_.options()) : kStrangerMessageMax;
    if (!packed::IsKind(header.kind) || (header.flags & ~packed::kRequestFlags) != 0) {
      HangUp(session, {Code::kCorrupt, "no message begins so"});
    } else if (header.payload_bytes > bytes_max || header.count > kOperationsMax) {
      HangUp(session, {Code::kTooLarge, "the message exceeds the maximum size", bytes_max});
    }
    if (session.closing) return input.size();
    const std::string_view rest = input.substr(at + sizeof(Header));
    if (rest.size() < header.payload_bytes) {
      session.packed->wanted = header.payload_bytes - rest.size();
      break;
    }
    if (!Dispatch(session, header, rest.substr(0, header.payload_bytes))) break;
    at += sizeof(Header) + header.payload_bytes;
  }
  return at;
}

// Hangs up if the beginning of the next message is not known any more, or the client speaks another
// language.
void PackedDispatch::HangUp(Session& session, const Status& why) {
  turn_.CountError();
  packed::AppendFailure(session.out, {.kind = Kind::kError}, why);
  session.closing = true;
  connections_.Queue(session);
}

bool PackedDispatch::Dispatch(Session& session, const Header& header, std::string_view payload) {
  Status refusal;
  if (!turn_.IsAuthenticated(session) && header.kind != Kind::kAuth && header.kind != Kind::kPing) {
    refusal = {Code::kInvalidArgument, "a password is needed first"};
  } else if (header.keyspace >= host_.state().keyspaces().count()) {
    refusal = {Code::kInvalidArgument, "no such keyspace", header.keyspace};
  } else if (IsBatch(header.kind)) {
    if (!RunBatch(session, header, payload)) return false;
    Bump(turn_.statistics().commands);
    return true;
  }
  Bump(turn_.statistics().commands);
  connections_.Queue(session);
  if (refusal.ok()) {
    RunMessage(host_, session, header, payload);
  } else {
    turn_.CountError();
    packed::AppendFailure(session.out, header, refusal);
  }
  return true;
}

// Executes the message's batch, unless it was executed already. Returns false like Dispatch.
bool PackedDispatch::RunBatch(Session& session, const Header& header, std::string_view payload) {
  if (header.has(packed::kRemember) && session.packed->client() != 0) {
    ReplyMemory::Reply known;
    uint64_t first_new = 0;
    const auto state =
        host_.state().replies().Begin(session.packed->client(), header, &known, &first_new);
    if (state == ReplyMemory::Known::kKnown) {
      messages_.Repeat(session, header, known, host_.state().keyspaces().at(header.keyspace));
      return true;
    }
    if (state != ReplyMemory::Known::kNew) {
      packed::AppendFailure(session.out, header, RefusalOf(state, first_new));
      connections_.Queue(session);
      return true;
    }
  }
  if (!batch_.HasPoints(session) && gets_.Answer(session, header, payload)) {
    if (turn_.HasWorked()) batch_.LetOthersGoFirst(session);
    return true;
  }
  if (GoesAside(session, header, payload)) return RunApart(session, header, payload, true);
  return AddToShared(session, header, payload) || RunApart(session, header, payload, false);
}

// Whether the message is executed beside the worker because it is large. One that reads at a
// snapshot is not: that ends with its connection. Nor is one that is not atomic and does more than
// store what it brings: it has no bound but that of a turn, which divides it.
bool PackedDispatch::GoesAside(const Session& session, const Header& header,
                               std::string_view payload) const {
  const bool is_large = payload.size() >= MessageTask::kBytesMin;
  if (!is_large || header.has(packed::kAtSnapshot) || !host_.MayGoAside(session)) return false;
  if (header.kind == Kind::kAtomic) return true;
  Batch look;
  return packed::TakeSettings(header, payload) &&
         packed::TakeRequests(payload, header.count, kNoLimit, look, turn_.now(), false).ok() &&
         std::ranges::all_of(look.requests(), OnlyStores);
}

// Returns false if the message does not fit into the batch of the turn.
bool PackedDispatch::AddToShared(Session& session, const Header& header, std::string_view payload) {
  constexpr uint8_t kOwn = packed::kAtSnapshot | packed::kHasScanLimits;
  if (header.kind != Kind::kBatch || (header.flags & kOwn) != 0 || payload.empty()) return false;
  if (!IsPoint(static_cast<Op>(static_cast<uint8_t>(payload.front()) & packed::kOpMask))) {
    return false;
  }
  Batch& batch = batch_.Shared(header.keyspace);
  const auto first = static_cast<uint32_t>(batch.size());
  const Status decoded = packed::TakeRequests(payload, header.count, kNoLimit, batch, turn_.now(),
                                              MayPin(session, header));
  const auto added = batch.requests().subspan(first);
  if (!decoded.ok() || batch.part_begins().size() > 0 ||
      !std::ranges::all_of(added, IsPoint, &Request::op)) {
    batch.DropFrom(first);
    return false;
  }
  batch_.AddMessage(session, header, first);
  return true;
}

// Returns false like Dispatch.
bool PackedDispatch::RunApart(Session& session, const Header& header, std::string_view payload,
                              bool goes_aside) {
  const auto kind = header.kind == Kind::kAtomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered;
  Batch* const batch = batch_.BeginExclusive(session, kind);
  Status s;
  if (batch != nullptr && goes_aside) {
    s = RunAside(session, header, payload);
    if (s.ok()) return true;
  } else if (batch != nullptr) {
    s = SetUpApart(session, header, payload, *batch);
    if (s.ok()) {
      const bool may_go = !header.has(packed::kAtSnapshot) && host_.MayGoAside(session);
      if (may_go) batch->set_portion_bytes_max(kPortionBytesMax);
      if (batch_.RunApart(session, header, *batch)) return true;
      // The same bytes were set up a moment ago.
      s = RunAside(session, header, payload);
      if (s.ok()) return true;
    }
  }
  if (header.has(packed::kRemember)) {
    host_.state().replies().Abandon(session.packed->client(), header.id);
  }
  if (batch == nullptr) return false;
  if (s.code() == Code::kCorrupt) {
    HangUp(session, s);
  } else {
    packed::AppendFailure(session.out, header, s);
    connections_.Queue(session);
  }
  batch->Clear();
  return true;
}

// Executes the message's batch beside the worker. Errors: as SetUpApart.
Status PackedDispatch::RunAside(Session& session, const Header& header, std::string_view payload) {
  const auto kind = header.kind == Kind::kAtomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered;
  auto job = std::make_shared<MessageTask::Job>(host_, header, kind);
  // The input that a large message is in is not copied. Its bytes stay where they are.
  const bool takes_input = payload.size() >= MessageTask::kBytesMin && session.IsInput(payload);
  if (!takes_input) payload = job->Keep(host_, std::string(payload));
  if (const Status s = SetUpApart(session, header, payload, job->batch); !s.ok()) return s;
  if (takes_input) job->Keep(host_, session.TakeInput(host_.state().keyspaces().budget()));
  job->batch.set_answer_bytes_max(turn_.AnswerBytesMax(session));
  job->batch.set_returned_bytes_max(turn_.ReturnedBytesMax(session));
  session.task = std::make_unique<MessageTask>(host_, session, messages_, std::move(job));
  batch_.EndExclusive(session);
  return {};
}

// Sets up `batch` for the message.
//   kCorrupt         the payload is malformed
//   kSnapshotTooOld  there is no such snapshot
Status PackedDispatch::SetUpApart(Session& session, const Header& header, std::string_view payload,
                                  Batch& batch) {
  const auto settings = packed::TakeSettings(header, payload);
  if (!settings) return settings.error();
  if (settings->snapshot != 0) {
    const Snapshot* const snapshot = session.packed->Find(header.keyspace, settings->snapshot);
    if (snapshot == nullptr) return {Code::kSnapshotTooOld, "the connection has no such snapshot"};
    batch.set_snapshot(snapshot->ref());
  }
  const RangeLimits limits = LimitsOf(header, session.reply_bytes_max);
  batch.set_scan_bytes_max(std::min<uint64_t>(limits.bytes, settings->scan_bytes_max));
  batch.set_scan_visits_max(
      static_cast<uint32_t>(std::min<uint64_t>(limits.visits, settings->scan_visits_max)));
  return packed::TakeRequests(payload, header.count, limits.visits, batch, turn_.now(),
                              MayPin(session, header));
}

}  // namespace skep
