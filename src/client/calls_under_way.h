// calls_under_way.h: which keys have operations that were sent to the server and are not finished.
//
//   cell   of the hash of a key: how many such operations there are on keys of this hash
//   range  how many writes of ranges are under way
//
// Keys whose hashes share a cell are not told apart, which costs a call and nothing else. 256 KiB.
// Thread-safe; nobody waits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "skep/batch.h"

namespace skep::client {

inline uint64_t KeyHash(std::string_view key) { return std::hash<std::string_view>()(key); }

class CallsUnderWay {
 public:
  // The entry of a batch, which begins with Enter, before the batch is sent, and ends with Leave or
  // with this object, when the batch is finished or given up.
  class Entry {
   public:
    explicit Entry(CallsUnderWay& calls) : calls_(calls) {}
    ~Entry() { Leave(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    void Enter(const Batch& batch) {
      cells_.reserve(2 * batch.size());
      for (const Request& request : batch.requests()) {
        range_writes_ += IsRangeWrite(request.op) ? 1 : 0;
        if (IsRange(request.op)) continue;
        cells_.push_back(CellOf(KeyHash(request.key)));
        if (request.op == Op::kMove) cells_.push_back(CellOf(KeyHash(request.other)));
      }
      for (const uint32_t cell : cells_)
        calls_.cells_[cell].fetch_add(1, std::memory_order_relaxed);
      calls_.range_writes_.fetch_add(range_writes_, std::memory_order_relaxed);
    }
    // Release: whoever sees that the batch has left begins a read after its reply has come.
    void Leave() {
      for (const uint32_t cell : cells_)
        calls_.cells_[cell].fetch_sub(1, std::memory_order_release);
      cells_.clear();
      calls_.range_writes_.fetch_sub(std::exchange(range_writes_, 0), std::memory_order_release);
    }

   private:
    CallsUnderWay& calls_;
    std::vector<uint32_t> cells_;
    uint32_t range_writes_ = 0;
  };

  // Whether an operation on a key of this hash may be under way.
  bool Have(uint64_t hash) const {
    return cells_[CellOf(hash)].load(std::memory_order_acquire) != 0;
  }
  bool HaveRangeWrite() const { return range_writes_.load(std::memory_order_acquire) != 0; }

  static bool IsRangeWrite(Op op) {
    return op == Op::kDeleteRange || op == Op::kDeleteAll || op == Op::kExpireRange;
  }

 private:
  static constexpr uint32_t kCells = 1 << 16;

  static uint32_t CellOf(uint64_t hash) { return static_cast<uint32_t>(hash % kCells); }

  std::array<std::atomic<uint32_t>, kCells> cells_{};
  std::atomic<uint32_t> range_writes_ = 0;
};

}  // namespace skep::client
