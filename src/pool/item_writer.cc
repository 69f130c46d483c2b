#include "pool/item_writer.h"

#include <algorithm>
#include <utility>

#include "pool/fields.h"

namespace skep::pool {
namespace {

constexpr Status kNotKnown(Code::kUnavailable,
                           "the pool does not answer: whether it was done is not known");
constexpr Status kFull(Code::kOutOfMemory, "the pool is full");

std::string RequestOf(MessageKind kind, const ClientSession& session) {
  std::string request(1, static_cast<char>(kind));
  AppendVarint(request, session.epoch());
  AppendVarint(request, session.client());
  return request;
}

void SetAll(std::span<Write> writes, Status status) {
  for (Write& write : writes) write.status = status;
}

}  // namespace

void ItemWriter::Run(std::span<Write> writes) {
  Status written;
  do {
    written = WriteItems(writes);
    if (!written.ok()) SetAll(writes, written);
  } while (written.ok() && !Commit(writes));
  // In a pool that is full, too: only a chunk that is sealed makes room.
  SealFull();
}

void ItemWriter::SealOld() {
  if (client_ == 0 || client_ != session_.client()) return;
  GiveUpOldChunk();
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
    GiveUpOldChunk();
    const uint32_t client = client_;
    Round round;
    buffers_.clear();
    next_item_ = next_sequence_;
    for (Write& write : writes) {
      if (write.kind != LogEntry::Kind::kPut) continue;
      const Status placed = Place(write, round);
      if (!placed.ok()) return placed;
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

void ItemWriter::GiveUpOldChunk() {
  if (!chunk_ || chunk_->places_version == session_.places_version()) return;
  full_.push_back(chunk_->number);
  chunk_.reset();
}

Status ItemWriter::TakeChunk() {
  if (chunk_) full_.push_back(chunk_->number);
  chunk_.reset();
  while (!chunk_) {
    const Status leased = Lease();
    if (!leased.ok()) return leased;
  }
  return {};
}

Status ItemWriter::Lease() {
  request_ = RequestOf(MessageKind::kLease, session_);
  AppendVarint(request_, 1);
  for (const uint32_t server : session_.suspects()) AppendVarint(request_, server);
  ReplyCode code;
  auto fields = session_.Call(ClientSession::To::kHashServer, request_, &code);
  if (code == ReplyCode::kPoolFull) return kFull;
  if (code == ReplyCode::kUnknownClient) session_.ForgetClient();
  uint64_t count = 0;
  if (!fields || !TakeVarint(*fields, &count) || count != 1) {
    if (session_.IsLate()) return session_.NoAnswer();
    session_.RefreshMap();
    if (!session_.Join()) return session_.NoAnswer();
    if (client_ != session_.client()) StartAnew();
    return {};
  }
  Chunk leased = {.places_version = session_.places_version()};
  ChunkFrames frames;
  if (!TakeNumber(*fields, &leased.number) || !TakeNumber(*fields, &leased.gen) ||
      !TakeFrames(*fields, &frames) ||
      !session_.Locate(leased.number, leased.gen, frames, &leased.places)) {
    return session_.NoAnswer();
  }
  chunk_ = std::move(leased);
  return {};
}

bool ItemWriter::Commit(std::span<Write> writes) {
  const uint64_t first = next_sequence_;
  next_sequence_ += writes.size();
  for (bool is_first = true;; is_first = false) {
    switch (Send(writes, first)) {
      case Answer::kVerdicts:
        return true;
      case Answer::kForgotten:
        session_.ForgetClient();
        if (is_first) return false;
        SetAll(writes, kNotKnown);
        return true;
      case Answer::kFull:
        SetAll(writes, is_first ? kFull : kNotKnown);
        return true;
      case Answer::kLost:
        break;
    }
    if (session_.IsLate()) {
      SetAll(writes, kNotKnown);
      return true;
    }
    session_.RefreshMap();
  }
}

ItemWriter::Answer ItemWriter::Send(std::span<Write> writes, uint64_t first_sequence) {
  request_ = RequestOf(MessageKind::kCommit, session_);
  uint64_t sequence = first_sequence;
  for (const Write& write : writes) {
    EncodeEntry({.kind = write.kind,
                 .condition = write.condition,
                 .client = client_,
                 .sequence = sequence++,
                 .key = write.key,
                 .slot = write.slot,
                 .expected = write.expected},
                request_);
  }
  ReplyCode code;
  auto fields = session_.Call(ClientSession::To::kHashServer, request_, &code);
  if (code == ReplyCode::kUnknownClient) return Answer::kForgotten;
  if (code == ReplyCode::kPoolFull) return Answer::kFull;
  if (!fields) return Answer::kLost;
  for (Write& write : writes) {
    if (!TakeVerdict(*fields, &write.verdict)) return Answer::kLost;
    write.status = {};
    if (write.verdict.kind == CommitVerdict::Kind::kUnknown) write.status = kNotKnown;
  }
  return Answer::kVerdicts;
}

// Not waited for longer than a call; a chunk whose sealing is lost is sealed when the client ends.
void ItemWriter::SealFull() {
  if (full_.empty()) return;
  request_ = RequestOf(MessageKind::kSeal, session_);
  for (const uint32_t chunk : full_) AppendVarint(request_, chunk);
  full_.clear();
  ReplyCode code;
  session_.Call(ClientSession::To::kHashServer, request_, &code);
}

}  // namespace skep::pool
