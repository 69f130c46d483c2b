// snapshot_block.h: a block of a snapshot file: from items to its bytes, and back.
//
//   items -- SnapshotBlockBuilder --> raw bytes -- SnapshotBlockEncoder --> block -- SealBlock -->
//            one after the other                   compresses                        knows its
//            place
//
// The three steps share nothing, so that blocks can be compressed by another thread than adds to
// them or writes them.
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

  // Whether an item of this size goes in; always if there is none yet.
  bool HasRoom(size_t key_bytes, size_t value_bytes) const;
  // Copies the bytes. Required: HasRoom, lengths within the format's limits.
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

  // Makes `block` the block of these items, all but the CRC of its header. They are stored as they
  // are if zstd cannot make them smaller. Costs 2 to 10 ms a MiB.
  void Encode(const SnapshotBlockBuilder& items, uint32_t keyspace, std::string* block);

 private:
  size_t Compress(std::string_view raw, char* to);

  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> zstd_;
};

// Completes the header of an encoded block that will lie at `offset`; returns its CRC.
uint32_t SealBlock(uint64_t offset, std::string* block);

// An item that the function refuses ends the visit, with its Status. The views are valid in the
// call only.
using SnapshotVisit = std::function<Status(const SnapshotItem&)>;

// Whether these bytes are the header of a block that may lie at `offset` and ends at `end` or
// before. All its numbers are within their limits then.
bool IsBlockHeader(const SnapshotBlockHeader& header, uint64_t offset, uint64_t end);

// The items' bytes of the block at `offset`, whose header IsBlockHeader accepted. Reads and checks
// the payload. Thread-safe, as File::ReadAt is. Takes memory for the stored and the raw bytes.
//   kCorrupt  the payload is not what was written; the detail is `offset`
//   kIo       the file cannot be read
Result<std::string> ReadBlockItems(File& file, uint64_t offset, const SnapshotBlockHeader& header);

// Calls visit for each of the items. Items before a fault have been visited.
//   kCorrupt  these bytes are not that many items; the detail is `offset`, the block's
Status VisitItems(std::string_view raw, uint32_t items, uint64_t offset,
                  const SnapshotVisit& visit);

// Reads exactly `bytes` bytes at `offset`, in as many calls as it takes.
//   kCorrupt  the file ends before; the detail is `offset`
//   kIo       the file cannot be read
Status ReadExactly(File& file, uint64_t offset, char* to, size_t bytes);

}  // namespace skep::durable
