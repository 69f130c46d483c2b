// lookup.h: GETs: keys found in the hash server's memory and their items in the memory servers',
// many side by side, without a server's code (HStore, section 4.2).
//
//   round 1   every key's bucket; with a slot that is known from before, its item too
//   round 2   the items of the slots that have the key's signature
//   further   what a split, an overflow bucket, an item of another key, or a long item asks for
//
// An answer counts if its reads took at most read_ns_max and the lease lasts still when they have
// ended (rule R4 of bucket_reader.h; H2, H10): else the key is looked up again. An item that does
// not check (H9) is looked up again, too, and after kTornMax times the hash server is asked for the
// slot: it is never taken for an absent key. So it is asked for the slot of a key whose item may be
// one of a lost chunk: if that is so, the key is there, and nobody can tell its value. In a pool
// that removes what is lost, the lookup is made again until that has been done.
//
// Progress. A lookup is made again only because a connection ended, time has passed, or another
// client has changed the key or its bucket meanwhile; each time something else in the system has
// moved. It ends with the session's deadline at the latest. The lookup that has waited longest is
// in each round.
//
// Thread safety: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "pool/bucket_reader.h"
#include "pool/client_session.h"
#include "pool/item.h"
#include "pool/slot_cache.h"

namespace skep::pool {

inline constexpr Status kItemLost(Code::kCorrupt, "the item was lost with its memory server");

// One key. The caller fills in the key.
struct Lookup {
  enum class Result : uint8_t {
    kFailed,  // the deadline has passed
    kFound,
    kAbsent,
    kLost,  // the key is there, and its item was lost with its memory server
  };

  std::string_view key;
  Result result = Result::kFailed;
  Slot slot = {};               // kFound
  std::string_view value = {};  // kFound: valid until the finder is used again
};

class ItemFinder {
 public:
  static constexpr uint32_t kTornMax = 3;
  // A round that has so many bytes takes no more lookups, and the others wait for the next one: a
  // connection has to carry it within read_ns_max.
  static constexpr uint64_t kRoundBytes = uint64_t{4} << 20;
  // How many lookups are asked of the hash server by one call.
  static constexpr size_t kAsksMax = 1024;

  // With a cache of so many slots. `session` outlives it.
  ItemFinder(ClientSession& session, size_t cache_entries)
      : session_(session), cache_(cache_entries) {}

  // Looks all of them up.
  void Find(std::span<Lookup> lookups);
  // Reads the items of slots that a commit or a scan has told, and with them, if it is wanted, the
  // hash server's applied word. A slot whose item does not check gets nothing: its chunk was
  // recycled meanwhile, or is lost. The items are valid until the finder is used again. False: a
  // connection has ended, or the deadline has passed.
  bool ReadItems(std::span<const Slot> slots, std::vector<std::optional<ItemView>>* items,
                 std::vector<bool>* lost, uint64_t* applied_word);
  // The client itself has changed the key, or may have.
  void Forget(std::string_view key) { cache_.Drop(SipHash(session_.keys().index, key)); }
  // The client itself has put the key: an item with this slot.
  void Remember(std::string_view key, Slot slot);

 private:
  // The bytes of an item, or at first of its first unit, if its slot does not tell how long it is.
  struct ItemRead {
    Slot slot;
    uint32_t units;
    std::byte* bytes;
    bool is_to_read;
    bool is_lost;

    std::span<const std::byte> span() const { return {bytes, size_t{units} * kUnitBytes}; }
  };
  struct Task;

  // An item that cannot be read is not to be read any more.
  void PlanItem(ItemRead& item, Round& round);
  // True if only now it is known how long the item is, which is to be read again.
  bool IsToReadWhole(ItemRead& item);
  void MakeTasks(std::span<Lookup> lookups);
  void PlanAll();
  void RunRound();
  // Takes the session's hint; forgets what is of another table than the session's, and returns
  // whether there was any.
  bool FollowTable();
  void Begin(Task& task);
  void Plan(Task& task);
  void Proceed(Task& task);
  void TakeCached(Task& task);
  void TakeBucket(Task& task);
  void TakeItems(Task& task);
  // False: it does not count.
  bool Found(Task& task, Slot slot, const ItemView& item);
  void TryAgain(Task& task, uint64_t* reason);
  bool Counts(Task& task);
  void AskForSlots();
  // False: there was no good answer.
  bool CallForSlots(std::span<Task* const> asked, std::vector<Slot>* slots);
  // As ReadItems, but what was read before stays.
  bool ReadMoreItems(std::span<const Slot> slots, std::vector<std::optional<ItemView>>* items,
                     std::vector<bool>* lost, uint64_t* applied_word);
  void FreeAll();
  std::byte* Allocate(size_t bytes) {
    if (block_ == blocks_.size() || used_ + bytes > blocks_[block_].size) NextBlock(bytes);
    used_ += bytes;
    return blocks_[block_].bytes.get() + used_ - bytes;
  }
  void NextBlock(size_t bytes);

  ClientSession& session_;
  SlotCache cache_;
  uint64_t table_ = 0;       // the session's, which cache and hint are of
  uint64_t buckets_ = 1;     // the hint
  uint64_t planned_ns_ = 0;  // before the reads of the last round began
  uint64_t now_ns_ = 0;      // when the last round ended
  Round round_;
  std::vector<Task> tasks_;     // used again and again
  std::vector<Task*> waiting_;  // those of the present lookups that are not done
  size_t planned_ = 0;          // so many of these, from the first on, are in the round

  // What was allocated since the finder was last used.
  static constexpr size_t kBlockBytes = 256 * 1024;
  static constexpr size_t kBlocksKept = 16;
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
  };
  std::vector<Block> blocks_;
  size_t block_ = 0;  // the one in use
  size_t used_ = 0;   // bytes of it
};

// One lookup on its way.
struct ItemFinder::Task {
  enum class Stage : uint8_t {
    kCached,  // the bucket and the item of a cached slot are read
    kBucket,  // the chain's next bucket
    kItems,   // the items of a bucket's candidates
    kAsk,     // the hash server is asked
    kDone,
  };

  Lookup* lookup = nullptr;
  uint64_t index = 0;
  Stage stage = Stage::kBucket;
  bool has_next = false;  // the chain goes on behind the image
  uint32_t item_count = 0;
  uint32_t torn = 0;
  uint64_t begin_ns = 0;  // of the read of the main bucket
  BucketAddress at;       // of the image
  ChainReader reader = {0, 1};
  CachedSlot cached;
  BucketImage image;
  std::array<ItemRead, kBucketSlots> items;
};

}  // namespace skep::pool
