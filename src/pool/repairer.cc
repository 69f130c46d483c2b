#include "pool/repairer.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "pool/fields.h"

namespace skep::pool {
namespace {

constexpr uint32_t kPieceBytes = 64 * 1024;

}  // namespace

bool Repairer::Step() {
  session_.LookAtPlaces();
  return session_.Join() && (CopyOne() || (!session_.IsLate() && RemoveSomeLost()));
}

bool Repairer::AskForCopy(Copy* copy) {
  ReplyCode code;
  auto fields =
      session_.Call(ClientSession::To::kHashServer, session_.RequestOf(MessageKind::kCopy), &code);
  if (code == ReplyCode::kUnknownClient) session_.ForgetClient();
  uint32_t to_frame = 0;
  if (!fields || !TakeNumber(*fields, &copy->chunk) || !TakeNumber(*fields, &copy->gen) ||
      !TakeNumber(*fields, &copy->to) || !TakeNumber(*fields, &to_frame)) {
    return false;
  }
  const auto to_place = session_.PlaceOf(to_frame);
  if (!to_place) return false;
  copy->to_place = *to_place;
  return true;
}

bool Repairer::CopyBytes(const Copy& copy) {
  if (bytes_ == nullptr) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
  if (!session_.ReadChunk(copy.chunk, copy.gen, bytes_.get())) return false;
  Round writes;
  for (uint32_t at = 0; at < kChunkBytes; at += kPieceBytes) {
    writes.WriteMemory(copy.to_place, at, kPieceBytes, bytes_.get() + at);
  }
  if (session_.Run(writes)) return true;
  // It may arrive yet, and nobody else may have that chunk before.
  session_.ForgetClient();
  return false;
}

std::optional<std::string_view> Repairer::Tell(MessageKind kind,
                                               std::initializer_list<uint64_t> fields) {
  std::string request = session_.RequestOf(kind);
  for (const uint64_t field : fields) AppendVarint(request, field);
  ReplyCode code;
  return session_.Call(ClientSession::To::kHashServer, request, &code);
}

bool Repairer::CopyOne() {
  Copy copy;
  if (!AskForCopy(&copy)) return false;
  bool is_adopted = false;
  if (CopyBytes(copy)) {
    const auto told = Tell(MessageKind::kAdopt, {copy.chunk, copy.gen, copy.to});
    is_adopted = told == std::string_view("\1", 1);
  }
  if (is_adopted) ++figures_.chunks_copied;
  // A chunk that was not adopted, as far as is known, is of no use.
  if (!is_adopted && session_.client() != 0) Tell(MessageKind::kSeal, {copy.to});
  return is_adopted;
}

bool Repairer::RemoveSomeLost() {
  const uint64_t version = session_.places_version();
  if (removed_version_ == version) return false;
  if (pass_version_ != version) next_key_.clear();
  pass_version_ = version;
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
