// snapshot_salvage.h: reads the good parts of a damaged snapshot file.
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
  uint64_t created_ms = 0;  // as the header says
  // Whether the footer is good. Without it the engines of the keyspaces are not known, nor whether
  // blocks are missing at the end.
  bool has_footer = false;
  std::vector<SnapshotKeyspace> keyspaces;

  uint64_t blocks = 0;  // visited
  uint64_t items = 0;
  // The lost parts, ascending, with good ones between them; a lost header or footer is one, too. If
  // a file was cut off behind a block, the place where it ends is a part of 0 bytes.
  std::vector<Loss> lost;
};

// Is called for each item. An error ends the salvage.
using SalvageVisit = std::function<Status(uint32_t keyspace, const SnapshotItem& item)>;

// Calls visit for each item of each block whose CRCs are right, in the order of the file. With a
// good footer the blocks are those it lists. Otherwise the file is read from the front, and bytes
// that are no block are searched for the next one. A sound file has no lost parts.
//   kNotSupported  a newer Skep wrote it; `detail` is its version. Nothing has been visited.
//   kIo            the file cannot be opened or read
//   others         of visit, which ended it
// Memory: as SnapshotReader. Reads each byte twice at most.
Result<SnapshotSalvage> SalvageBlocks(FileSystem& files, const std::string& path,
                                      const SalvageVisit& visit);

}  // namespace skep::durable
