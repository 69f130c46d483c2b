// word_memory.h: aligned memory for what one-sided reads bring, which stays where it is until it is
// all dropped at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace skep::leaves {

// Owner: one thread.
class WordMemory {
 public:
  // Uninitialised; aligned to words. Valid until Clear().
  std::byte* Allocate(size_t bytes) {
    const size_t words = (bytes + 7) / 8;
    if (words > kBlockWords - used_) NextBlock();
    std::byte* const at = reinterpret_cast<std::byte*>(blocks_[block_ - 1].get() + used_);
    used_ += words;
    return at;
  }
  // Keeps some of the memory for the next round.
  void Clear() {
    if (blocks_.size() > kBlocksKept) blocks_.resize(kBlocksKept);
    block_ = 0;
    used_ = kBlockWords;
  }

 private:
  // A buffer of a node fits: it has 32 KiB at most.
  static constexpr size_t kBlockWords = 8192;
  static constexpr size_t kBlocksKept = 16;

  void NextBlock() {
    if (block_ == blocks_.size()) blocks_.push_back(std::make_unique<uint64_t[]>(kBlockWords));
    ++block_;
    used_ = 0;
  }

  std::vector<std::unique_ptr<uint64_t[]>> blocks_;
  size_t block_ = 0;  // the blocks before this one are in use
  size_t used_ = kBlockWords;
};

}  // namespace skep::leaves
