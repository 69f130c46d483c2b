#include "pool/log_entry.h"

#include "base/varint.h"
#include "pool/fields.h"
#include "pool/item.h"

namespace skep::pool {
namespace {

using Kind = LogEntry::Kind;
using Condition = LogEntry::Condition;

bool TakeKey(std::string_view& from, std::string_view* key) {
  return TakeBytes(from, key) && key->size() <= kKeyBytesMax;
}

bool TakeExpected(std::string_view& from, LogEntry* entry) {
  return entry->condition != Condition::kIfSlot ||
         (TakeSlot(from, &entry->expected) && entry->expected);
}

bool TakeChunk(std::string_view& from, uint32_t* chunk) {
  return TakeNumber(from, chunk) && *chunk < kChunksMax;
}

bool DecodeFields(std::string_view& from, LogEntry* entry) {
  switch (entry->kind) {
    case Kind::kPut:
      return TakeKey(from, &entry->key) && TakeSlot(from, &entry->slot) && entry->slot &&
             TakeExpected(from, entry);
    case Kind::kDelete:
      return entry->condition != Condition::kIfAbsent && TakeKey(from, &entry->key) &&
             TakeExpected(from, entry);
    case Kind::kJoin:
    case Kind::kLeave:
      return true;
    case Kind::kLease:
      return TakeChunk(from, &entry->chunk) && TakeFrames(from, &entry->frames);
    case Kind::kSeal:
    case Kind::kRecycle:
    case Kind::kShed:
      return TakeChunk(from, &entry->chunk);
    case Kind::kServer:
      return TakeNumber(from, &entry->range.server) && TakeNumber(from, &entry->range.first) &&
             TakeNumber(from, &entry->range.count) && entry->range.first <= kFramesMax &&
             entry->range.count <= kFramesMax - entry->range.first;
    case Kind::kDrain:
    case Kind::kGone:
      return TakeNumber(from, &entry->range.server);
    case Kind::kAdopt:
      return TakeChunk(from, &entry->chunk) && TakeNumber(from, &entry->gen) &&
             TakeChunk(from, &entry->from);
  }
  return false;
}

}  // namespace

void EncodeEntry(const LogEntry& entry, std::string& to) {
  to.push_back(static_cast<char>(entry.kind));
  to.push_back(static_cast<char>(entry.condition));
  AppendVarint(to, entry.client);
  AppendVarint(to, entry.sequence);
  switch (entry.kind) {
    case Kind::kPut:
    case Kind::kDelete:
      AppendBytes(to, entry.key);
      if (entry.kind == Kind::kPut) AppendSlot(to, entry.slot);
      if (entry.condition == Condition::kIfSlot) AppendSlot(to, entry.expected);
      break;
    case Kind::kJoin:
    case Kind::kLeave:
      break;
    case Kind::kLease:
      AppendVarint(to, entry.chunk);
      AppendFrames(to, entry.frames);
      break;
    case Kind::kSeal:
    case Kind::kRecycle:
    case Kind::kShed:
      AppendVarint(to, entry.chunk);
      break;
    case Kind::kServer:
      AppendVarint(to, entry.range.server);
      AppendVarint(to, entry.range.first);
      AppendVarint(to, entry.range.count);
      break;
    case Kind::kDrain:
    case Kind::kGone:
      AppendVarint(to, entry.range.server);
      break;
    case Kind::kAdopt:
      AppendVarint(to, entry.chunk);
      AppendVarint(to, entry.gen);
      AppendVarint(to, entry.from);
      break;
  }
}

bool DecodeEntry(std::string_view& from, LogEntry* entry) {
  if (from.size() < 2) return false;
  const auto kind = static_cast<uint8_t>(from[0]);
  const auto condition = static_cast<uint8_t>(from[1]);
  if (kind > static_cast<uint8_t>(LogEntry::kLastKind) ||
      condition > static_cast<uint8_t>(LogEntry::kLastCondition)) {
    return false;
  }
  from.remove_prefix(2);
  *entry = {.kind = static_cast<Kind>(kind), .condition = static_cast<Condition>(condition)};
  return TakeNumber(from, &entry->client) && TakeVarint(from, &entry->sequence) &&
         DecodeFields(from, entry);
}

void LogBatch::Add(const LogEntry& entry) {
  Kept& kept = entries_.emplace_back(Kept{.entry = entry,
                                          .key_begin = static_cast<uint32_t>(keys_.size()),
                                          .key_bytes = static_cast<uint32_t>(entry.key.size())});
  kept.entry.key = {};
  keys_.append(entry.key);
}

LogEntry LogBatch::entry(size_t i) const {
  const Kept& kept = entries_[i];
  LogEntry entry = kept.entry;
  entry.key = std::string_view(keys_).substr(kept.key_begin, kept.key_bytes);
  return entry;
}

void LogBatch::EncodeTo(std::string& to) const {
  AppendVarint(to, first_index_);
  AppendVarint(to, entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) EncodeEntry(entry(i), to);
}

bool LogBatch::Decode(std::string_view& from, LogBatch* batch) {
  uint64_t first = 0;
  uint64_t count = 0;
  if (!TakeVarint(from, &first) || !TakeVarint(from, &count) || count > from.size()) return false;
  *batch = LogBatch(first);
  for (uint64_t i = 0; i < count; ++i) {
    LogEntry entry;
    if (!DecodeEntry(from, &entry)) return false;
    batch->Add(entry);
  }
  return true;
}

}  // namespace skep::pool
