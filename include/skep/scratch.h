// scratch.h: bytes that live exactly as long as one batch.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "skep/copy_bytes.h"

namespace skep {

// A bump allocator. Allocation is a pointer increment. Clear() drops all the bytes at once, and
// keeps one block for the next round, so a batch that is reused stops allocating.
//
// Thread safety: none; one owner. Moving a Scratch keeps its bytes where they are.
class Scratch {
 public:
  static constexpr size_t kBlockBytes = 16 * 1024;
  static constexpr size_t kKeptBytesMax = 256 * 1024;

  Scratch() = default;
  Scratch(Scratch&& other) noexcept { Swap(other); }
  Scratch& operator=(Scratch&& other) noexcept {
    Swap(other);
    return *this;
  }

  // `bytes` uninitialised bytes, without alignment. Valid until Clear() or destruction.
  char* Allocate(size_t bytes) {
    if (bytes > left_) Grow(bytes);
    char* at = next_;
    next_ += bytes;
    left_ -= bytes;
    used_ += bytes;
    return at;
  }

  // The place of the next `bytes` bytes that will be allocated, for writing before the size is
  // known. Valid until the next call.
  char* Room(size_t bytes) {
    if (bytes > left_) Grow(bytes);
    return next_;
  }

  // Copies of the given bytes, one after the other.
  std::string_view Copy(std::string_view bytes) {
    char* const at = Allocate(bytes.size());
    CopyBytes(at, bytes.data(), bytes.size());
    return {at, bytes.size()};
  }
  std::string_view Concat(std::string_view first, std::string_view second);

  // Takes over bytes allocated by the caller, until Clear(); used() does not count them.
  std::string_view Adopt(std::unique_ptr<char[]> at, size_t bytes) {
    adopted_.push_back(std::move(at));
    return {adopted_.back().get(), bytes};
  }

  // Bytes handed out since the last Clear().
  size_t used() const { return used_; }

  // Drops all bytes. Keeps at most one block, of at most kKeptBytesMax. Cost: a few instructions if
  // there are no bytes beyond one block.
  void Clear() {
    if (blocks_.size() > 1 || !adopted_.empty()) [[unlikely]]
      return ClearBlocks();
    next_ -= used_;
    left_ += used_;
    used_ = 0;
  }

 private:
  struct Block {
    std::unique_ptr<char[]> at;
    size_t bytes;
  };

  void ClearBlocks();
  void Grow(size_t bytes);
  void AddBlock(size_t bytes);
  void Swap(Scratch& other) noexcept;

  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<char[]>> adopted_;
  char* next_ = nullptr;
  size_t left_ = 0;
  size_t used_ = 0;
};

}  // namespace skep
