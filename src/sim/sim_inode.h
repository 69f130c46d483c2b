// sim_inode.h: the bytes of one simulated file, and what a power loss leaves of them.
//
//   durable ----change----change----change----> content
//           \___ since the last Sync that succeeded ___/
//
// A process reads `content`. A power loss leaves the durable bytes and, by the seed, some of the
// changes since:
//   I1  changes survive up to a seeded one, which itself survives as a prefix of its bytes: so of
//       bytes appended without a sync, a prefix survives, perhaps torn inside a record;
//   I2  before that one, an overwrite of existing bytes survives or not on its own: the disk writes
//       pages in any order;
//   I3  a change that a failed Sync gave up is never durable, whatever Sync returns later: where it
//       made the file longer there are zeroes. Until a power loss the process reads it from its
//       cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace skep {

class SimInode {
 public:
  uint64_t size() const { return content_.size; }
  // The file must have that many bytes from the offset on.
  void Read(uint64_t offset, char* to, size_t bytes) const;

  void Write(uint64_t offset, std::string_view bytes);
  void Truncate(uint64_t bytes);
  void Sync();
  void FailSync(Random& random);
  void LosePower(Random& random);

 private:
  struct Change {
    enum class Kind : uint8_t { kWrite, kTruncate };
    Kind kind;
    bool given_up = false;   // I3
    uint64_t offset;         // kTruncate: the new size
    std::string bytes = {};  // kWrite
  };

  // The bytes of a file; behind `bytes` there are zeroes up to the size, so that a large file of
  // few written bytes takes little memory.
  struct Content {
    std::string bytes;
    uint64_t size = 0;
  };

  void Do(Change change);
  static void Apply(const Change& change, Content& to);

  Content content_;
  Content durable_;
  std::vector<Change> unsynced_;
};

}  // namespace skep
