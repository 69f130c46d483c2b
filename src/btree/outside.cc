#include "btree/outside.h"

#include <cstring>

#include "base/reserve_more.h"

namespace skep::btree {

bool Storing::LongKey(std::string_view key, StoredKey* stored) {
  const size_t head = core_.codec.geometry.long_key_head_bytes();
  char* const bytes = scratch_.Allocate(head + kStubBytes);
  std::memcpy(bytes, key.data(), head);
  if (!Add(key.substr(head), static_cast<uint32_t>(key.size()), bytes + head)) return false;
  *stored = {.bytes = {bytes, head + kStubBytes}, .outside = true};
  return true;
}

// Stores a value that is long or has metadata.
bool Storing::CopyValue(std::string_view value, uint64_t deadline_ms, uint8_t type,
                        StoredValue* stored) {
  const size_t metadata = MetadataBytes(deadline_ms, type);
  const bool outside = metadata + value.size() > core_.codec.geometry.value_inline_max();
  const size_t size = metadata + (outside ? kStubBytes : value.size());
  char* const bytes = scratch_.Allocate(size);
  if (metadata > 0) WriteMetadata(bytes, deadline_ms, type);
  if (!outside) {
    value.copy(bytes + metadata, value.size());  // the data() of an empty value may be null
  } else if (!Add(value, static_cast<uint32_t>(value.size()), bytes + metadata)) {
    return false;
  }
  *stored = {.bytes = {bytes, size}, .outside = outside, .has_metadata = metadata > 0};
  return true;
}

bool Storing::Add(std::string_view bytes, uint32_t whole_size, char* stub) {
  const auto size = static_cast<uint32_t>(bytes.size() + kOutsideHeaderBytes);
  ReserveMore(blocks_, 1);
  const ArenaAddress at = core_.arena.Allocate(thread_.cache, size, limit_);
  if (!at) return false;
  core_.has_blocks.store(true, std::memory_order_relaxed);
  std::memcpy(core_.arena.At(at) + kOutsideHeaderBytes, bytes.data(), bytes.size());
  blocks_.push_back({.at = at, .bytes = size});
  WriteStub(stub, {.size = whole_size, .block = at});
  return true;
}

void Storing::SetBorn(Version version) {
  for (const OutsideBlock& block : blocks_) {
    std::memcpy(core_.arena.At(block.at), &version, sizeof version);
  }
}

void Storing::DropCopies() {
  for (const OutsideBlock& block : blocks_) {
    core_.arena.Free(thread_.cache, block.at, block.bytes);
  }
  blocks_.clear();
  scratch_.Clear();
}

}  // namespace skep::btree
