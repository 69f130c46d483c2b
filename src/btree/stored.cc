#include "btree/stored.h"

#include <algorithm>

#include "btree/pieces.h"

namespace skep::btree {
namespace {

std::string_view WithoutMetadata(const StoredValue& stored) {
  if (!stored.has_metadata) return stored.bytes;
  return stored.bytes.substr(1 + static_cast<unsigned char>(stored.bytes[0]));
}

}  // namespace

void KeepEachOnce(std::vector<OutsideBlock>* blocks) {
  const auto place = [](const OutsideBlock& block) { return block.at.bits; };
  std::ranges::sort(*blocks, {}, place);
  const auto rest = std::ranges::unique(*blocks, {}, place);
  blocks->erase(rest.begin(), rest.end());
}

std::string_view Codec::Whole(const StoredKey& stored, Scratch& scratch) const {
  if (!stored.outside) return stored.bytes;
  return scratch.Concat(OwnBytes(stored), RestOf(stored));
}

std::string_view Codec::Whole(const StoredValue& stored, Scratch& scratch) const {
  if (!IsInPieces(stored)) return Contiguous(stored);
  const Pieces pieces(*arena, stored);
  char* const bytes = scratch.Allocate(pieces.size());
  pieces.Read(0, {bytes, pieces.size()});
  return {bytes, pieces.size()};
}

std::string_view Codec::Contiguous(const StoredValue& stored) const {
  const std::string_view bytes = WithoutMetadata(stored);
  if (!stored.outside) return bytes;
  const Stub stub = StubOf(bytes);
  if (stub.size > kContiguousMax) return {};
  return {OutsideBytes(stub.block), stub.size};
}

size_t Codec::SizeOf(const StoredKey& stored) const {
  return stored.outside ? StubOf(stored.bytes).size : stored.bytes.size();
}

size_t Codec::SizeOf(const StoredValue& stored) const {
  return stored.outside ? StubOf(stored.bytes).size : WithoutMetadata(stored).size();
}

int Codec::CompareOutside(std::string_view key, const StoredKey& stored) const {
  const std::string_view head = OwnBytes(stored);
  const int order = CompareBytes(key.substr(0, head.size()), head);
  if (order != 0) return order;
  if (key.size() <= head.size()) return -1;  // an outside key is more than its head
  return arena == nullptr ? 0 : CompareBytes(key.substr(head.size()), RestOf(stored));
}

int Codec::CompareBothOutside(const StoredKey& a, const StoredKey& b) const {
  const int order = CompareBytes(OwnBytes(a), OwnBytes(b));
  if (order != 0 || arena == nullptr) return order;
  return CompareBytes(RestOf(a), RestOf(b));
}

std::string_view Codec::RestOf(const StoredKey& stored) const {
  const Stub stub = StubOf(stored.bytes);
  return {OutsideBytes(stub.block), stub.size - OwnBytes(stored).size()};
}

const char* Codec::OutsideBytes(ArenaAddress block) const {
  return reinterpret_cast<const char*>(arena->At(block)) + kOutsideHeaderBytes;
}

}  // namespace skep::btree
