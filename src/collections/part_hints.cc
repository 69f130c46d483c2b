#include "collections/part_hints.h"

#include "base/compare_bytes.h"

namespace skep::collections {
namespace {

// Copies a separator with a byte behind it, so that an empty one has an address of its own, too.
std::string_view Keep(std::string_view separator, Scratch& bytes) {
  return bytes.Concat(separator, std::string_view("\0", 1)).substr(0, separator.size());
}

}  // namespace

PartHints::At PartHints::Find(std::string_view place, bool* found) const {
  *found = false;
  if (blocks_.empty()) return {};
  const size_t block = firsts_.FindFloor(place);
  const At at = {.block = block, .index = blocks_[block].names.FindFloor(place)};
  const bool is_first = at.block == 0 && at.index == 0;
  *found = !is_first || CompareBytes(SeparatorAt(at), place) <= 0;
  return at;
}

bool PartHints::IsAt(At at, std::string_view place) const {
  if (blocks_.size() != 1 || at.block != 0) return false;
  const OrderedNames& names = blocks_.front().names;
  return at.index < names.size() && CompareBytes(names[at.index], place) <= 0 &&
         (at.index + 1 == names.size() || CompareBytes(place, names[at.index + 1]) < 0);
}

// Adds an empty block, whose first separator is yet to come.
void PartHints::AddBlock(size_t at) {
  Block& block = *blocks_.emplace(blocks_.begin() + static_cast<ptrdiff_t>(at));
  block.names.Reserve(kBlockNames);
  block.places.reserve(kBlockNames);
}

void PartHints::Add(std::string_view separator, Scratch& bytes) {
  bool has_floor = false;
  At at = Find(separator, &has_floor);
  if (has_floor && SeparatorAt(at) == separator) return;
  if (has_floor) ++at.index;
  if (blocks_.empty()) AddBlock(0);
  if (blocks_[at.block].names.size() == kBlockNames) {
    const bool is_last = at.block + 1 == blocks_.size() && at.index == kBlockNames;
    const size_t middle = is_last ? kBlockNames : kBlockNames / 2;
    AddBlock(at.block + 1);
    Block& full = blocks_[at.block];
    Block& tail = blocks_[at.block + 1];
    full.names.MoveTail(middle, tail.names);
    tail.places.assign(full.places.begin() + static_cast<ptrdiff_t>(middle), full.places.end());
    full.places.resize(middle);
    if (!is_last) firsts_.Insert(at.block + 1, tail.names[0]);
    if (at.index > middle || is_last) at = {.block = at.block + 1, .index = at.index - middle};
  }
  Block& block = blocks_[at.block];
  block.names.Insert(at.index, Keep(separator, bytes));
  block.places.insert(block.places.begin() + static_cast<ptrdiff_t>(at.index), 0);
  if (at.index > 0) return;
  if (firsts_.size() == blocks_.size()) firsts_.Erase(at.block);
  firsts_.Insert(at.block, block.names[0]);
}

void PartHints::Erase(std::string_view separator) {
  bool has_floor = false;
  const At at = Find(separator, &has_floor);
  if (!has_floor || SeparatorAt(at) != separator) return;
  Block& block = blocks_[at.block];
  block.names.Erase(at.index);
  block.places.erase(block.places.begin() + static_cast<ptrdiff_t>(at.index));
  if (at.index > 0) return;
  firsts_.Erase(at.block);
  if (block.names.size() > 0) {
    firsts_.Insert(at.block, block.names[0]);
  } else {
    blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(at.block));
  }
}

void PartHints::Relocate(Scratch& bytes) {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    OrderedNames& names = blocks_[i].names;
    for (size_t j = 0; j < names.size(); ++j) names.Relocate(j, Keep(names[j], bytes));
    firsts_.Relocate(i, names[0]);
  }
}

}  // namespace skep::collections
