// index_recovery.h: reads the log of an index server (index_log.h, disk_index_log.h).
//
// The log is read twice. The first time tells where the last whole state begins, and who has owned
// it; the second time makes that state, and does the entries behind it. So only one state is in
// memory, and a damaged record anywhere is found.
//
//   state begin ... entries ... state end ... entries ...
//                      |           |             +-- done, in their order
//                      |           +-- the state, which tells the last entry that it has
//                      +-- those that the state does not have are done once it is whole
//
// A state that was made out of the log (disk_index_log.h) has what lies before a position that it
// tells, so it is read from there on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "pool/index_log.h"

namespace skep::pool {

// In front of the first piece of a state that was made out of the log: it has what the log has
// before the position, and these are its owners.
struct StateSince {
  uint64_t position = 0;
  std::vector<uint32_t> owners;

  void EncodeTo(std::string& to) const;
  // Takes it from the front. False: the bytes are none.
  bool DecodeFrom(std::string_view& from);
};

struct RecoveredLog {
  FoundState found;
  // Where the log ends. What is torn behind is overwritten.
  uint64_t end = 0;
};

// On an error *problem is a line for a person.
//   kCorrupt          damage, with the offset in the file; or entries are missing
//   kInvalidArgument  the log is of keyspaces, or of a newer format
//   kIo
// Reads the records before `end`, or all; the log may be written to behind it meanwhile.
// `make_tree` makes an ordered engine, empty.
Result<RecoveredLog> RecoverIndexLog(FileSystem& files, const std::string& directory, uint64_t end,
                                     const std::function<std::unique_ptr<Engine>()>& make_tree,
                                     std::string* problem);

}  // namespace skep::pool
