// access_model.h: hash tables that count how often they go to memory (KV-Direct, sections 3.3.1 and
// 5.1.1, figures 6, 9, 10 and 11).
//
// Each model is the real structure: buckets, slots, chains and slabs at addresses of one memory of
// fixed size, filled by seeded hashes until no pair fits. Only the bytes of keys and values are
// left out: an item is a number and a length. Nothing is deleted.
//
//   memory   +------------------------------+--------------------------------------+
//            | index: index_ratio of memory | heap: records, values, chained ones  |
//            +------------------------------+--------------------------------------+
//
//   utilisation = bytes of all keys and values / bytes of the memory
//
//   MakeChaining   KV-Direct: buckets of 64 B, ten slots; a pair of up to inline_bytes_max lies in
//                  as many slots as it needs, another in a slab, with 2 bytes for its lengths; a
//                  full bucket is followed by another from the heap
//   MakeCuckoo     MemC3: two buckets a key, four slots each; a key that finds both full displaces
//                  another one to that one's other bucket, up to 500 times
//   MakeHopscotch  FaRM, chained associative hopscotch: a key is in its bucket of four slots, in
//                  the next one, or in a chain of its bucket; an insert looks for a free slot up to
//                  64 buckets ahead and moves it near, or chains
//
// As in the paper, these two have keys in the index, compared side by side, and values in slabs: a
// slot is a key and four bytes of address, and their slabs may be as small as 8 B. (MemC3 itself
// has tags instead of keys there, and FaRM values beside small keys.)
//
// Definitions. A request reads or writes adjacent bytes, whatever their number: a DMA, in the
// paper's words a memory access. A line is 64 B of them: the unit for which a CPU waits. Two
// buckets of hopscotch are one request. A bucket that is read and then written is two.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace skep::bench {

struct Accesses {
  uint64_t requests = 0;
  uint64_t lines = 0;

  Accesses& operator+=(const Accesses& more) {
    requests += more.requests;
    lines += more.lines;
    return *this;
  }
  friend Accesses operator+(Accesses a, const Accesses& b) { return a += b; }
};

// Bytes of the key, and of key and value together. 0 < key <= pair <= 510.
struct PairBytes {
  uint32_t key;
  uint32_t pair;
};

class AccessModel {
 public:
  virtual ~AccessModel() = default;
  // Inserts an absent key: what it takes to find that it is absent, and to store it. Nothing: there
  // is no room; the model is then unusable, for the failed insert may have moved other keys.
  virtual std::optional<Accesses> Insert(uint64_t key, PairBytes bytes) = 0;
  // Reads an existing key.
  virtual Accesses Get(uint64_t key) const = 0;
  // Gives an existing key another value of the same length.
  virtual Accesses Replace(uint64_t key) const = 0;
};

struct AccessModelOptions {
  uint64_t memory_bytes = 0;
  double index_ratio = 0.5;        // in (0, 1); the index has at least one bucket
  uint32_t inline_bytes_max = 25;  // of MakeChaining, up to 50
  uint32_t key_bytes = 5;          // of the other models: of all keys
  uint64_t seed = 1;
};

std::unique_ptr<AccessModel> MakeChaining(const AccessModelOptions& options);
std::unique_ptr<AccessModel> MakeCuckoo(const AccessModelOptions& options);
std::unique_ptr<AccessModel> MakeHopscotch(const AccessModelOptions& options);

}  // namespace skep::bench
