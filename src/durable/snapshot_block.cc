#include "durable/snapshot_block.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/varint.h"

namespace skep::durable {
namespace {

constexpr int kZstdLevel = 1;
// Begins a frame that decompressors skip: this number, the length of the rest, the rest.
constexpr uint32_t kSkippedFrameMagic = 0x184d2a50;
constexpr size_t kSkippedFrameHeadBytes = 8;

// Takes the length of a value, its deadline and its type off the front.
bool TakeValueHead(std::string_view& from, bool has_types, uint64_t* value_bytes,
                   SnapshotItem* item) {
  if (!TakeVarint(from, value_bytes) || !TakeVarint(from, &item->deadline_ms)) return false;
  if (!has_types) return true;
  const bool is_typed = *value_bytes % 2 == 1;
  *value_bytes /= 2;
  if (!is_typed) return true;
  if (from.empty()) return false;
  item->type = static_cast<uint8_t>(from[0]);
  from.remove_prefix(1);
  return item->type != kPlainType;
}

// Takes one item off the front. `key` is the key of the item before, and is made that of this one.
bool TakeItem(std::string_view& from, bool has_types, std::string* key, SnapshotItem* item) {
  uint64_t shared;
  uint64_t key_bytes;
  uint64_t value_bytes;
  if (!TakeVarint(from, &shared) || !TakeVarint(from, &key_bytes) ||
      !TakeValueHead(from, has_types, &value_bytes, item)) {
    return false;
  }
  if (shared > key->size() || key_bytes > kSnapshotKeyBytesMax - shared) return false;
  if (value_bytes > kSnapshotValueBytesMax || from.size() < key_bytes + value_bytes) return false;
  key->resize(shared);
  key->append(from.substr(0, key_bytes));
  item->key = *key;
  item->value = from.substr(key_bytes, value_bytes);
  from.remove_prefix(key_bytes + value_bytes);
  return true;
}

size_t StoredBytesMin(size_t raw_bytes) {
  return (raw_bytes + kSnapshotExpansionMax - 1) / kSnapshotExpansionMax;
}

}  // namespace

bool SnapshotBlockBuilder::HasRoom(size_t key_bytes, size_t value_bytes) const {
  const size_t more = kSnapshotItemHeadBytesMax + key_bytes + value_bytes;
  return empty() || raw_.size() + more <= kSnapshotBlockBytes;
}

void SnapshotBlockBuilder::Add(const SnapshotItem& item) {
  SKEP_DCHECK(HasRoom(item.key.size(), item.value.size()));
  const auto [end, _] = std::ranges::mismatch(item.key, last_key_);
  const auto shared = static_cast<size_t>(end - item.key.begin());
  const std::string_view rest = item.key.substr(shared);
  AppendVarint(raw_, shared);
  AppendVarint(raw_, rest.size());
  const bool is_typed = item.type != kPlainType;
  AppendVarint(raw_, 2 * item.value.size() + (is_typed ? 1 : 0));
  AppendVarint(raw_, item.deadline_ms);
  if (is_typed) raw_.push_back(static_cast<char>(item.type));
  raw_ += rest;
  raw_ += item.value;
  last_key_.resize(shared);
  last_key_ += rest;
  ++items_;
}

void SnapshotBlockBuilder::Clear() {
  raw_.clear();
  last_key_.clear();
  items_ = 0;
}

SnapshotBlockEncoder::SnapshotBlockEncoder() : zstd_(ZSTD_createCCtx(), &ZSTD_freeCCtx) {}
SnapshotBlockEncoder::~SnapshotBlockEncoder() = default;

void SnapshotBlockEncoder::Encode(const SnapshotBlockBuilder& items, uint32_t keyspace,
                                  std::string* block) {
  constexpr size_t kHeaderBytes = sizeof(SnapshotBlockHeader);
  const std::string_view raw = items.raw();
  auto encoding = SnapshotEncoding::kZstd;
  block->resize_and_overwrite(kHeaderBytes + raw.size(), [&](char* bytes, size_t) {
    size_t stored = Compress(raw, bytes + kHeaderBytes);
    if (stored == 0) {
      encoding = SnapshotEncoding::kRaw;
      stored = raw.copy(bytes + kHeaderBytes, raw.size());
    }
    return kHeaderBytes + stored;
  });
  const std::string_view payload = std::string_view(*block).substr(kHeaderBytes);
  const SnapshotBlockHeader header = {.magic = kSnapshotBlockMagic,
                                      .stored_bytes = static_cast<uint32_t>(payload.size()),
                                      .raw_bytes = static_cast<uint32_t>(raw.size()),
                                      .items = items.items(),
                                      .keyspace = keyspace,
                                      .encoding = encoding,
                                      .payload_crc = Crc32c(payload),
                                      .crc = 0};
  block->replace(0, kHeaderBytes, BytesOf(header));
}

// Compresses the bytes to `to`, into no more bytes than they are. Returns how many it has written;
// 0 if it cannot make them fewer.
size_t SnapshotBlockEncoder::Compress(std::string_view raw, char* to) {
  if (zstd_ == nullptr) return 0;
  const size_t bytes =
      ZSTD_compressCCtx(zstd_.get(), to, raw.size() - 1, raw.data(), raw.size(), kZstdLevel);
  if (ZSTD_isError(bytes) != 0) return 0;
  const size_t wanted = StoredBytesMin(raw.size());
  if (bytes >= wanted) return bytes;

  const size_t padding = std::max(wanted - bytes, kSkippedFrameHeadBytes);
  if (bytes + padding >= raw.size()) return 0;
  const auto padding_rest = static_cast<uint32_t>(padding - kSkippedFrameHeadBytes);
  BytesOf(kSkippedFrameMagic).copy(to + bytes, sizeof(uint32_t));
  BytesOf(padding_rest).copy(to + bytes + sizeof(uint32_t), sizeof(uint32_t));
  std::memset(to + bytes + kSkippedFrameHeadBytes, 0, padding_rest);
  return bytes + padding;
}

uint32_t SealBlock(uint64_t offset, std::string* block) {
  constexpr size_t kCrcAt = offsetof(SnapshotBlockHeader, crc);
  const uint32_t crc = CrcAt(offset, std::string_view(*block).substr(0, kCrcAt));
  block->replace(kCrcAt, sizeof(crc), BytesOf(crc));
  return crc;
}

bool IsBlockHeader(const SnapshotBlockHeader& header, uint64_t offset, uint64_t end) {
  constexpr size_t kCrcAt = offsetof(SnapshotBlockHeader, crc);
  if (header.magic != kSnapshotBlockMagic ||
      header.crc != CrcAt(offset, BytesOf(header).substr(0, kCrcAt))) {
    return false;
  }
  const uint64_t stored = header.stored_bytes;
  const uint64_t raw = header.raw_bytes;
  const bool is_whole = offset + sizeof(header) + stored <= end;
  const bool is_bounded = raw <= kSnapshotRawBytesMax && raw <= stored * kSnapshotExpansionMax;
  const bool is_known = header.encoding <= SnapshotEncoding::kZstd &&
                        (IsCompressed(header.encoding) || stored == raw);
  return is_whole && is_bounded && is_known && header.items > 0;
}

Result<std::string> ReadBlockItems(File& file, uint64_t offset, const SnapshotBlockHeader& header) {
  // No resize_and_overwrite(): GCC 12 passes the capacity to the function instead of the size.
  std::string stored;
  Status status;
  stored.resize_and_overwrite(header.stored_bytes, [&](char* bytes, size_t) {
    status = ReadExactly(file, offset + sizeof(header), bytes, header.stored_bytes);
    return status.ok() ? header.stored_bytes : 0;
  });
  if (!status.ok()) return Fail(status);
  if (Crc32c(stored) != header.payload_crc) {
    return Fail(Code::kCorrupt, "a block of a snapshot file is damaged", offset);
  }
  if (!IsCompressed(header.encoding)) return stored;

  std::string raw;
  raw.resize_and_overwrite(header.raw_bytes, [&](char* bytes, size_t) {
    const size_t got = ZSTD_decompress(bytes, header.raw_bytes, stored.data(), stored.size());
    return ZSTD_isError(got) != 0 ? 0 : got;
  });
  if (raw.size() != header.raw_bytes) {
    return Fail(Code::kCorrupt, "a block of a snapshot file cannot be decompressed", offset);
  }
  return raw;
}

Status VisitItems(std::string_view raw, const SnapshotBlockHeader& header, uint64_t offset,
                  const SnapshotVisit& visit) {
  const Status malformed(Code::kCorrupt, "a block of a snapshot file has malformed items", offset);
  std::string key;
  const bool has_types = HasTypes(header.encoding);
  for (uint32_t i = 0; i < header.items; ++i) {
    SnapshotItem item;
    if (!TakeItem(raw, has_types, &key, &item)) return malformed;
    if (const Status status = visit(item); !status.ok()) return status;
  }
  return raw.empty() ? Status() : malformed;
}

Status ReadExactly(File& file, uint64_t offset, char* to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const Result<size_t> got = file.ReadAt(offset + done, to + done, bytes - done);
    if (!got) return got.error();
    if (*got == 0) return Status(Code::kCorrupt, "a snapshot file ends too early", offset);
    done += *got;
  }
  return {};
}

}  // namespace skep::durable
