#include "pool/item_writer.h"

#include <algorithm>
#include <utility>

#include "pool/fields.h"

namespace skep::pool {
namespace {

constexpr Status kNotKnown(Code::kUnavailable,
                           "the pool does not answer: whether it was done is not known");
constexpr Status kFull(Code::kOutOfMemory, "the pool is full");

void Settle(Write& write, Status status) {
  write.status = status;
  write.is_settled = true;
}

// Those that are not settled yet.
void SettleAll(std::span<Write> writes, Status status) {
  for (Write& write : writes) {
    if (!write.is_settled) Settle(write, status);
  }
}

}  // namespace

void ItemWriter::Run(std::span<Write> writes) {
  for (Write& write : writes) write.is_settled = false;
  const uint64_t now = session_.now_ns();
  // What is left of the time is for the commits.
  const uint64_t until = now + (std::max(session_.deadline_ns(), now) - now) / 2;
  for (Try(writes); may_wait_ && session_.now_ns() < until; Try(writes)) {
    session_.RefreshMap();
    for (Write& write : writes) {
      if (write.status.code() == Code::kOutOfMemory) write.is_settled = false;
    }
  }
}

// Does what needs no room that is not there.
void ItemWriter::Try(std::span<Write> writes) {
  is_full_ = false;
  may_wait_ = false;
  Status written;
  do {
    written = WriteItems(writes);
    if (!written.ok()) SettleAll(writes, written);
  } while (written.ok() && !Commit(writes));
  // In a pool that is full, only a chunk that is sealed makes room.
  if (is_full_ && chunk_) {
    full_.push_back(chunk_->number);
    chunk_.reset();
  }
  SealFull();
}

void ItemWriter::SealUnneeded() {
  if (session_.client() == 0) return;
  if (client_ != session_.client()) StartAnew();
  GiveUpUnneeded();
  SealFull();
}

// The client was forgotten, and what it had leased with it.
void ItemWriter::StartAnew() {
  client_ = session_.client();
  next_sequence_ = 1;
  chunk_.reset();
  full_.clear();
}

// Items that could not be written are written again elsewhere: their units may change yet.
Status ItemWriter::WriteItems(std::span<Write> writes) {
  for (;;) {
    session_.LookAtPlaces();
    if (!session_.Join()) return session_.NoAnswer();
    if (client_ != session_.client()) StartAnew();
    GiveUpUnneeded();
    const uint32_t client = client_;
    Round round;
    buffers_.clear();
    next_item_ = next_sequence_;
    for (Write& write : writes) {
      if (write.is_settled || write.kind != LogEntry::Kind::kPut) continue;
      const Status placed = Place(write, round);
      if (placed.code() == Code::kOutOfMemory) {
        Settle(write, placed);
      } else if (!placed.ok()) {
        return placed;
      }
    }
    // The chunks of those that were placed first may be another's by now.
    if (client != session_.client()) continue;
    if (round.empty() || session_.Run(round)) return {};
    session_.ForgetClient();
    if (session_.IsLate()) return session_.NoAnswer();
    session_.RefreshMap();
  }
}

Status ItemWriter::Place(Write& write, Round& round) {
  const uint32_t units = UnitsOf(write.key.size(), write.value.size());
  if (!chunk_ || chunk_->next_unit + units > kChunkUnits) {
    const Status taken = TakeChunk();
    if (!taken.ok()) return taken;
  }
  const ItemPlace place = {.chunk = chunk_->number, .unit = chunk_->next_unit, .gen = chunk_->gen};
  const size_t bytes = size_t{units} * kUnitBytes;
  std::byte* const at =
      buffers_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(bytes)).get();
  WriteItem(place, client_, next_item_++, write.key, write.value, {at, bytes});
  write.slot = Slot(KeyDigest::SignatureOf(SipHash(session_.keys().index, write.key)), units,
                    chunk_->gen, chunk_->number, chunk_->next_unit);
  for (const FramePlace& lies : chunk_->places) {
    round.WriteMemory(lies, uint64_t{chunk_->next_unit} * kUnitBytes, static_cast<uint32_t>(bytes),
                      at);
  }
  chunk_->next_unit += units;
  return {};
}

void ItemWriter::GiveUpUnneeded() {
  for (const uint32_t chunk : session_.TakeLeasedChunks()) {
    if (!chunk_ || chunk_->number != chunk) full_.push_back(chunk);
  }
  if (!chunk_ || chunk_->places_version >= session_.places_version()) return;
  full_.push_back(chunk_->number);
  chunk_.reset();
}

// If there is none, the present one stays for now: a shorter item may fit.
Status ItemWriter::TakeChunk() {
  if (is_full_) return kFull;
  const uint32_t client = client_;
  const std::optional<Chunk> before = chunk_;
  std::optional<Chunk> leased;
  while (!leased) {
    const Status status = Lease(&leased);
    if (status.code() == Code::kOutOfMemory) is_full_ = true;
    if (!status.ok()) return status;
  }
  if (before && client == client_) full_.push_back(before->number);
  // It was sealed, and the answer to that was lost.
  std::erase(full_, leased->number);
  chunk_ = leased;
  return {};
}

Status ItemWriter::Lease(std::optional<Chunk>* chunk) {
  request_ = session_.RequestOf(MessageKind::kLease);
  AppendVarint(request_, 1);
  request_.push_back(static_cast<char>(purpose_));
  for (const uint32_t server : session_.suspects()) AppendVarint(request_, server);
  ReplyCode code;
  auto fields = session_.Call(ClientSession::To::kHashServer, request_, &code);
  may_wait_ = code == ReplyCode::kCleaning;
  if (code == ReplyCode::kPoolFull || may_wait_) return kFull;
  if (code == ReplyCode::kCannotLog) return kCannotBeLogged;
  if (code == ReplyCode::kUnknownClient) session_.ForgetClient();
  uint64_t count = 0;
  if (!fields || !TakeVarint(*fields, &count) || count != 1) {
    if (session_.IsLate()) return session_.NoAnswer();
    session_.RefreshMap();
    if (!session_.Join()) return session_.NoAnswer();
    if (client_ != session_.client()) StartAnew();
    return {};
  }
  Chunk leased;
  ChunkFrames frames;
  if (!TakeNumber(*fields, &leased.number) || !TakeNumber(*fields, &leased.gen) ||
      !TakeFrames(*fields, &frames) || !TakeVarint(*fields, &leased.places_version)) {
    return session_.NoAnswer();
  }
  if (!session_.LearnLease(leased.number, leased.gen, frames, leased.places_version,
                           &leased.places)) {
    return session_.NoAnswer();
  }
  *chunk = std::move(leased);
  return {};
}

bool ItemWriter::Commit(std::span<Write> writes) {
  if (std::ranges::all_of(writes, &Write::is_settled)) return true;
  const uint64_t first = next_sequence_;
  next_sequence_ += writes.size();
  for (bool is_first = true;; is_first = false) {
    switch (Send(writes, first)) {
      case Answer::kVerdicts:
        return true;
      case Answer::kForgotten:
        session_.ForgetClient();
        if (is_first) return false;
        SettleAll(writes, kNotKnown);
        return true;
      case Answer::kFull:
        SettleAll(writes, is_first ? kFull : kNotKnown);
        return true;
      case Answer::kNotLogged:
        SettleAll(writes, is_first ? kCannotBeLogged : kNotKnown);
        return true;
      case Answer::kLost:
        break;
    }
    if (session_.IsLate()) {
      SettleAll(writes, kNotKnown);
      return true;
    }
    session_.RefreshMap();
  }
}

ItemWriter::Answer ItemWriter::Send(std::span<Write> writes, uint64_t first_sequence) {
  request_ = session_.RequestOf(MessageKind::kCommit);
  uint64_t sequence = first_sequence;
  for (const Write& write : writes) {
    ++sequence;
    if (write.is_settled) continue;
    EncodeEntry({.kind = write.kind,
                 .condition = write.condition,
                 .client = client_,
                 .sequence = sequence - 1,
                 .key = write.key,
                 .slot = write.slot,
                 .expected = write.expected},
                request_);
  }
  ReplyCode code;
  auto fields = session_.Call(ClientSession::To::kHashServer, request_, &code);
  if (code == ReplyCode::kUnknownClient) return Answer::kForgotten;
  if (code == ReplyCode::kPoolFull) return Answer::kFull;
  if (code == ReplyCode::kCannotLog) return Answer::kNotLogged;
  if (!fields) return Answer::kLost;
  for (Write& write : writes) {
    if (!write.is_settled && !TakeVerdict(*fields, &write.verdict)) return Answer::kLost;
  }
  for (Write& write : writes) {
    if (write.is_settled) continue;
    Settle(write, write.verdict.kind == CommitVerdict::Kind::kUnknown ? kNotKnown : Status());
  }
  return Answer::kVerdicts;
}

// Not waited for longer than a call. What was not sealed, as far as is known, is sealed another
// time; a client that is not known has nothing to be sealed.
void ItemWriter::SealFull() {
  if (full_.empty()) return;
  request_ = session_.RequestOf(MessageKind::kSeal);
  for (const uint32_t chunk : full_) AppendVarint(request_, chunk);
  ReplyCode code;
  session_.Call(ClientSession::To::kHashServer, request_, &code);
  if (code == ReplyCode::kOk || code == ReplyCode::kUnknownClient) full_.clear();
}

}  // namespace skep::pool
