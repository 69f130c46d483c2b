#include "pool/repairer.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "pool/fields.h"

namespace skep::pool {
namespace {

constexpr uint32_t kPieceBytes = 64 * 1024;

std::string RequestOf(MessageKind kind, const ClientSession& session) {
  std::string request(1, static_cast<char>(kind));
  AppendVarint(request, session.epoch());
  AppendVarint(request, session.client());
  return request;
}

}  // namespace

bool Repairer::Step() {
  session_.LookAtPlaces();
  return session_.Join() && (CopyOne() || RemoveSomeLost());
}

bool Repairer::AskForCopy(Copy* copy) {
  ReplyCode code;
  auto fields =
      session_.Call(ClientSession::To::kHashServer, RequestOf(MessageKind::kCopy, session_), &code);
  if (code == ReplyCode::kUnknownClient) session_.ForgetClient();
  uint32_t from = 0;
  uint32_t to = 0;
  if (!fields || !TakeNumber(*fields, &copy->chunk) || !TakeNumber(*fields, &copy->gen) ||
      !TakeNumber(*fields, &from) || !TakeNumber(*fields, &copy->to) || !TakeNumber(*fields, &to)) {
    return false;
  }
  const auto from_place = session_.PlaceOf(from);
  const auto to_place = session_.PlaceOf(to);
  if (!from_place || !to_place) return false;
  copy->from_place = *from_place;
  copy->to_place = *to_place;
  return true;
}

bool Repairer::CopyBytes(const Copy& copy) {
  if (bytes_ == nullptr) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
  Round reads;
  Round writes;
  for (uint32_t at = 0; at < kChunkBytes; at += kPieceBytes) {
    reads.ReadMemory(copy.from_place, at, kPieceBytes, bytes_.get() + at);
    writes.WriteMemory(copy.to_place, at, kPieceBytes, bytes_.get() + at);
  }
  while (!session_.Run(reads)) {
    if (session_.IsLate()) return false;
    session_.RefreshMap();
  }
  if (session_.Run(writes)) return true;
  // It may arrive yet, and nobody else may have that chunk before.
  session_.ForgetClient();
  return false;
}

bool Repairer::Tell(MessageKind kind, std::initializer_list<uint64_t> fields) {
  std::string request = RequestOf(kind, session_);
  for (const uint64_t field : fields) AppendVarint(request, field);
  ReplyCode code;
  return session_.Call(ClientSession::To::kHashServer, request, &code).has_value();
}

bool Repairer::CopyOne() {
  Copy copy;
  if (!AskForCopy(&copy)) return false;
  const bool is_copied =
      CopyBytes(copy) && Tell(MessageKind::kAdopt, {copy.chunk, copy.gen, copy.to});
  if (is_copied) ++figures_.chunks_copied;
  // Of a chunk that was not adopted, or whose answer was lost.
  if (session_.client() != 0) Tell(MessageKind::kSeal, {copy.to});
  return is_copied;
}

bool Repairer::RemoveSomeLost() {
  const uint64_t version = session_.places_version();
  if (removed_version_ == version) return false;
  std::string request(1, static_cast<char>(MessageKind::kLost));
  AppendVarint(request, session_.epoch());
  AppendBytes(request, next_key_);
  ReplyCode code;
  auto fields = session_.Call(ClientSession::To::kSortedServer, request, &code);
  std::string_view next;
  if (!fields || !TakeBytes(*fields, &next)) return false;
  // The view is of the session's next call.
  const std::string told(*fields);
  next_key_.assign(next);
  std::vector<Write> writes;
  for (std::string_view left = told; !left.empty();) {
    Write write = {.kind = LogEntry::Kind::kDelete, .condition = LogEntry::Condition::kIfSlot};
    if (!TakeBytes(left, &write.key) || !TakeSlot(left, &write.expected)) return false;
    writes.push_back(write);
  }
  for (size_t begin = 0; begin < writes.size(); begin += ItemWriter::kWritesMax) {
    const size_t count = std::min(ItemWriter::kWritesMax, writes.size() - begin);
    const auto some = std::span(writes).subspan(begin, count);
    writer_.Run(some);
    for (const Write& write : some) {
      if (!write.status.ok()) return false;
      if (write.verdict.kind == CommitVerdict::Kind::kDone) ++figures_.keys_removed;
    }
  }
  if (next_key_.empty()) removed_version_ = version;
  return true;
}

}  // namespace skep::pool
