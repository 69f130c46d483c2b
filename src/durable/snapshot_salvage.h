// snapshot_salvage.h: what can still be read of a damaged snapshot file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "durable/snapshot_format.h"
#include "skep/status.h"

namespace skep::durable {

struct SnapshotSalvage {
  struct Loss {
    uint64_t offset;
    uint64_t bytes;
  };

  bool has_header = false;
  uint64_t created_ms = 0;  // of the header
  // Of the footer. Without it, what the blocks belong to and whether some are missing at the end is
  // not known.
  bool has_footer = false;
  std::vector<SnapshotKeyspace> keyspaces;

  uint64_t blocks = 0;  // visited
  uint64_t items = 0;
  // Ascending, with gaps between; a lost header or footer is one, too. Of a file that was cut off
  // behind a block, it is the place where it ends, of 0 bytes.
  std::vector<Loss> lost;
};

// Refuses an item to end the salvage.
using SalvageVisit = std::function<Status(uint32_t keyspace, const SnapshotItem& item)>;

// Calls visit for each item of each block whose CRCs are right, in the order of the file. With a
// good footer the blocks are those it lists; else the file is walked, and bytes that are no block
// are searched for the next one. Of a sound file nothing is lost.
//   kNotSupported  a newer Skep wrote it; `detail` is its version. Nothing has been visited.
//   kIo            the file cannot be opened or read
//   others         of visit, which ended it
// Memory: as SnapshotReader. Reads each byte twice at most.
Result<SnapshotSalvage> SalvageBlocks(FileSystem& files, const std::string& path,
                                      const SalvageVisit& visit);

}  // namespace skep::durable
