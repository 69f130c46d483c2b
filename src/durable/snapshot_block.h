// snapshot_block.h: a block of a snapshot file: from items to its bytes, and back.
//
//   items -- SnapshotBlockBuilder --> raw bytes -- SnapshotBlockEncoder --> block -- SealBlock -->
//            one after the other                   compresses                        knows its
//            place
//
// The three steps share nothing, so that different threads can add to blocks, compress them, and
// write them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "durable/snapshot_format.h"
#include "skep/status.h"

typedef struct ZSTD_CCtx_s ZSTD_CCtx;

namespace skep::durable {

// The items of one block. Thread safety: one owner.
class SnapshotBlockBuilder {
 public:
  bool empty() const { return items_ == 0; }
  uint32_t items() const { return items_; }
  std::string_view raw() const { return raw_; }

  // Whether an item of this size fits. The first one always does.
  bool HasRoom(size_t key_bytes, size_t value_bytes) const;
  // Adds an item, whose bytes are copied. Required: HasRoom, and lengths within the format's
  // limits.
  void Add(const SnapshotItem& item);
  void Clear();

 private:
  std::string raw_;
  std::string last_key_;
  uint32_t items_ = 0;
};

// Compresses blocks. Thread safety: one owner.
class SnapshotBlockEncoder {
 public:
  SnapshotBlockEncoder();
  ~SnapshotBlockEncoder();
  SnapshotBlockEncoder(const SnapshotBlockEncoder&) = delete;
  SnapshotBlockEncoder& operator=(const SnapshotBlockEncoder&) = delete;

  // Encodes the items into `block`, all but the CRC of its header. They are stored as they are if
  // zstd cannot make them smaller. Costs 2 to 10 ms a MiB.
  void Encode(const SnapshotBlockBuilder& items, uint32_t keyspace, std::string* block);

 private:
  size_t Compress(std::string_view raw, char* to);

  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> zstd_;
};

// Completes the header of an encoded block that will lie at `offset`; returns its CRC.
uint32_t SealBlock(uint64_t offset, std::string* block);

// A function that is called for items. If it returns an error the visit ends with it. The views are
// valid in the call only.
using SnapshotVisit = std::function<Status(const SnapshotItem&)>;

// Whether these bytes are the header of a block that may lie at `offset` and ends at `end` or
// before. If so, all its numbers are within their limits.
bool IsBlockHeader(const SnapshotBlockHeader& header, uint64_t offset, uint64_t end);

// Reads and checks the payload of the block at `offset`, whose header IsBlockHeader has accepted.
// Returns the items' bytes. Thread-safe, as File::ReadAt is. Takes memory for the stored and the
// raw bytes.
//   kCorrupt  the payload fails its check; the detail is `offset`
//   kIo       the file cannot be read
Result<std::string> ReadBlockItems(File& file, uint64_t offset, const SnapshotBlockHeader& header);

// Calls visit for each item in a block's bytes, which ReadBlockItems returned for this header. If
// it fails, the items before the fault have been
// visited.
//   kCorrupt  the bytes are not that many items; the detail is `offset`, that of the block
Status VisitItems(std::string_view raw, const SnapshotBlockHeader& header, uint64_t offset,
                  const SnapshotVisit& visit);

// Reads exactly `bytes` bytes at `offset`, in as many calls as it takes.
//   kCorrupt  the file ends before; the detail is `offset`
//   kIo       the file cannot be read
Status ReadExactly(File& file, uint64_t offset, char* to, size_t bytes);

}  // namespace skep::durable
