#include "skep/scratch.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "skep/copy_bytes.h"

namespace skep {

std::string_view Scratch::Concat(std::string_view first, std::string_view second) {
  char* at = Allocate(first.size() + second.size());
  CopyBytes(at, first.data(), first.size());
  CopyBytes(at + first.size(), second.data(), second.size());
  return {at, first.size() + second.size()};
}

void Scratch::ClearBlocks() {
  // One block as large as all of them together, the unused ends that Room() left included: the next
  // round of this size does not grow.
  size_t wanted = 0;
  if (blocks_.size() > 1 && used_ <= kKeptBytesMax) {
    for (const Block& block : blocks_) wanted += block.bytes;
    blocks_.clear();
  } else if (blocks_.size() > 1) {
    blocks_.resize(1);
  }
  next_ = blocks_.empty() ? nullptr : blocks_[0].at.get();
  left_ = blocks_.empty() ? 0 : blocks_[0].bytes;
  used_ = 0;
  adopted_.clear();
  if (wanted > 0) AddBlock(std::min(std::bit_ceil(wanted), kKeptBytesMax));
}

void Scratch::Swap(Scratch& other) noexcept {
  std::swap(blocks_, other.blocks_);
  std::swap(adopted_, other.adopted_);
  std::swap(next_, other.next_);
  std::swap(left_, other.left_);
  std::swap(used_, other.used_);
}

void Scratch::Grow(size_t bytes) {
  if (blocks_.empty()) AddBlock(kBlockBytes);
  // Later blocks double, so that a large batch costs few of them.
  if (bytes > left_) AddBlock(std::max({used_, kBlockBytes, bytes}));
}

void Scratch::AddBlock(size_t bytes) {
  blocks_.push_back({.at = std::make_unique_for_overwrite<char[]>(bytes), .bytes = bytes});
  next_ = blocks_.back().at.get();
  left_ = bytes;
}

}  // namespace skep
