// What a node of PaperLayout names outside itself.

#include "btree/paper_layout.h"

namespace skep::btree {
namespace {

void AddKey(const Codec& codec, const StoredKey& key, std::vector<OutsideBlock>* blocks) {
  if (!key.outside) return;
  const Stub stub = StubOf(key.bytes);
  const size_t rest = stub.size - codec.geometry.long_key_head_bytes();
  blocks->push_back({.at = stub.block, .bytes = static_cast<uint32_t>(rest + kOutsideHeaderBytes)});
}

void AddValue(const StoredValue& value, std::vector<OutsideBlock>* blocks) {
  if (!value.outside) return;
  const Stub stub = StubOf(value.bytes);
  blocks->push_back(
      {.at = stub.block, .bytes = static_cast<uint32_t>(stub.size + kOutsideHeaderBytes)});
}

}  // namespace

void PaperLayout::BlocksOf(const Codec& codec, const NodeHeader* node, uint32_t used,
                           std::vector<OutsideBlock>* blocks) {
  const Fences fences = FencesOf(codec, node);
  AddKey(codec, fences.lower, blocks);
  if (!fences.unbounded) AddKey(codec, fences.upper, blocks);
  for (paper::SortedPosition at(codec, node); !at.at_end(); at.Next()) {
    AddKey(codec, at.key(), blocks);
    if (node->is_leaf()) AddValue(paper::ValueAt(node, at.payload()), blocks);
  }
  for (uint32_t at = node->log_begin; at < used;) {
    const paper::LogItem item(node, at);
    AddKey(codec, item.key(), blocks);
    if (!item.deleted()) AddValue(item.value(), blocks);
    at = item.end();
  }
}

}  // namespace skep::btree
