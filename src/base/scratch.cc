#include "skep/scratch.h"

#include <algorithm>
#include <utility>

namespace skep {

std::string_view Scratch::Concat(std::string_view first, std::string_view second) {
  char* at = Allocate(first.size() + second.size());
  std::copy(first.begin(), first.end(), at);
  std::copy(second.begin(), second.end(), at + first.size());
  return {at, first.size() + second.size()};
}

void Scratch::Clear() {
  if (blocks_.size() > 1) blocks_.resize(1);
  next_ = blocks_.empty() ? nullptr : blocks_[0].get();
  left_ = blocks_.empty() ? 0 : kBlockBytes;
  used_ = 0;
}

void Scratch::Swap(Scratch& other) noexcept {
  std::swap(blocks_, other.blocks_);
  std::swap(next_, other.next_);
  std::swap(left_, other.left_);
  std::swap(used_, other.used_);
}

void Scratch::Grow(size_t bytes) {
  // Later blocks double, so that a large batch costs few of them; the first is the one kept.
  const size_t wanted = blocks_.empty() ? kBlockBytes : std::max(used_, kBlockBytes);
  if (blocks_.empty() && bytes > kBlockBytes) {
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlockBytes));
  }
  const size_t block = blocks_.empty() ? kBlockBytes : std::max(wanted, bytes);
  blocks_.push_back(std::make_unique_for_overwrite<char[]>(block));
  next_ = blocks_.back().get();
  left_ = block;
}

}  // namespace skep
