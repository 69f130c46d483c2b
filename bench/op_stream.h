// op_stream.h: the operations of a benchmark, made before the clock starts.
//
// An operation takes two bytes for its kind, and its key's bytes, laid out one behind the other:
// the stream is read sequentially, so the hardware prefetches it and it disturbs the measurement by
// about key size / 64 cache lines an operation.
//
//   code  0 read, 1 update, 2 insert, 3 read-modify-write, 4 delete,
//         4 + n scan of n items (n = 1..kScanItemsMax)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "bench/record_format.h"
#include "bench/ycsb_workload.h"

namespace skep::bench {

struct YcsbOp {
  OpKind kind;
  uint32_t scan_items;  // number of items of a kScan
  std::string_view key;
};

// Thread safety: none; one owner.
class OpStream {
 public:
  explicit OpStream(KeyFormat format) : format_(format) {}

  static size_t BytesPerOp(KeyFormat format) { return sizeof(Code) + format.bytes(); }

  size_t size() const { return codes_.size(); }

  // Removes all operations and keeps the memory.
  void Clear() {
    codes_.clear();
    keys_.clear();
  }

  void Add(OpKind kind, uint64_t key_number, uint32_t scan_items = 0) {
    SKEP_DCHECK(kind != OpKind::kScan || (scan_items >= 1 && scan_items <= kScanItemsMax));
    codes_.push_back(static_cast<Code>(kind == OpKind::kScan ? kScanBase + scan_items
                                                             : static_cast<uint32_t>(kind)));
    const size_t at = keys_.size();
    keys_.resize(at + format_.bytes());
    format_.Render(key_number, keys_.data() + at);
  }

  // `index` < size(). The key is valid until the stream changes.
  YcsbOp at(size_t index) const {
    const Code code = codes_[index];
    return {.kind = code > kScanBase ? OpKind::kScan : static_cast<OpKind>(code),
            .scan_items = code > kScanBase ? code - kScanBase : 0u,
            .key = format_.KeyAt(keys_.data() + index * format_.bytes())};
  }

 private:
  using Code = uint16_t;
  static constexpr uint32_t kScanBase = static_cast<uint32_t>(OpKind::kDelete);
  static_assert(kScanBase + kScanItemsMax <= UINT16_MAX);

  KeyFormat format_;
  std::vector<Code> codes_;
  std::string keys_;
};

// Makes the operations of a thread. Thread safety: none; one owner.
class OpSource {
 public:
  virtual ~OpSource() = default;
  // Appends the next `count` operations.
  virtual void Fill(OpStream& stream, size_t count) = 0;
};

}  // namespace skep::bench
