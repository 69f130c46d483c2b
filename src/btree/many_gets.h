// many_gets.h: gets of many keys without a batch (PlainGets::GetManyPlain).
//
// A window of keys goes to its leaves side by side, each step fetching the lines that all of them
// need in the next one:
//
//   group of the directory  ->  row of the page table  ->  search line  ->  segment of heads
//                           ->  the item, copied at once
//
// It is what look_ahead.h does for the requests of a batch, for gets that begin at the directory
// and nothing else: no hints, no writes between them, no order to keep. In a tree that is too small
// for a directory each key goes down from the root, through nodes that the core's own caches have.
// A key that this does not lead to its leaf, and one whose answer needs a time, a type or bytes
// outside the leaf, is left to a batch, and so is every key of a large tree without a directory.
//
// A get reads the newest state of its key, by the arguments "Reading the newest state" and "From
// the directory" of reader.h: detached() is asked, then the row is loaded, then the word, which is
// not retired; and the leaf has the key among its sorted items, or covers it. The word is loaded
// once more when the key is read, and a buffer that is dead then is not read.
//
// Wait-free but for the memory of the values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "btree/core.h"
#include "btree/leaf_directory.h"
#include "btree/reader.h"
#include "engine/plain_gets.h"

namespace skep::btree {

// Owner: one call. The thread is outside its epoch.
template <class Layout>
class ManyGets {
 public:
  // Keys of more than `key_bytes_max` bytes are left to a batch. `answers` is as long as `keys`.
  ManyGets(Core& core, ThreadState& thread, size_t key_bytes_max,
           std::span<const std::string_view> keys, std::span<GetAnswer> answers,
           const PlainValues& values)
      : core_(core),
        thread_(thread),
        key_bytes_max_(key_bytes_max),
        keys_(keys),
        answers_(answers),
        values_(values) {}

  // Returns the newest version that was seen.
  Version Do();

 private:
  static constexpr uint32_t kWindow = 32;      // as LookAhead::kWindow
  static constexpr uint32_t kRestEvery = 256;  // as BatchExecutor::kRestEvery

  struct Path {
    NodeHeader* node;  // null: left to a batch
    Link link;
    LeafSpot spot;
  };

  using Keys = std::span<const std::string_view>;

  void DoWindow(Keys keys, std::span<GetAnswer> answers);
  bool FindNodes(Keys keys);
  void AskDirectory(const LeafDirectory& directory, Keys keys);
  void FindSpots(Keys keys);
  void Answer(const Path& path, std::string_view key, GetAnswer* answer);
  void AnswerFromLeaf(const Path& path, uint32_t used, std::string_view key, GetAnswer* answer);

  Core& core_;
  ThreadState& thread_;
  const size_t key_bytes_max_;
  const std::span<const std::string_view> keys_;
  const std::span<GetAnswer> answers_;
  const PlainValues values_;
  Version seen_ = 0;
  std::array<Path, kWindow> paths_;
};

}  // namespace skep::btree
