// outside.h: puts long keys and values outside the nodes; stored.h has the layout.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "btree/core.h"
#include "btree/stored.h"
#include "btree/versions.h"
#include "skep/scratch.h"

namespace skep::btree {

// The keys and values that one operation stores. Outside blocks made here are freed by the
// destructor unless Keep() was called. Owner: one operation.
class Storing {
 public:
  Storing(Core& core, ThreadState& thread, Arena::Limit limit)
      : core_(core), thread_(thread), limit_(limit) {}
  Storing(const Storing&) = delete;
  Storing& operator=(const Storing&) = delete;
  ~Storing() { Drop(); }
  Arena::Limit limit() const { return limit_; }
  void set_limit(Arena::Limit limit) { limit_ = limit; }

  // Makes of a key or a value what a node holds: a view of it if it is short, else a new block and
  // a stub, which is valid as long as this object. False: no memory.
  bool Key(std::string_view key, StoredKey* stored) {
    if (key.size() > core_.codec.geometry.key_inline_max()) return LongKey(key, stored);
    stored->bytes = key;
    stored->outside = false;
    return true;
  }
  // A short value with metadata is copied, to stand behind them.
  bool Value(std::string_view value, uint64_t deadline_ms, uint8_t type, StoredValue* stored) {
    if (deadline_ms != 0 || type != kPlainType ||
        value.size() > core_.codec.geometry.value_inline_max()) {
      return CopyValue(value, deadline_ms, type, stored);
    }
    stored->bytes = value;
    stored->outside = stored->has_metadata = false;
    return true;
  }

  // Sets the version at which the blocks made so far are born. Called before anybody can see them.
  void SetBorn(Version version);
  // The blocks belong to the tree from now on.
  void Keep() { blocks_.clear(); }
  // Frees the blocks made so far.
  void Drop() {
    if (scratch_.used() != 0) DropCopies();
  }

 private:
  bool LongKey(std::string_view key, StoredKey* stored);
  bool CopyValue(std::string_view value, uint64_t deadline_ms, uint8_t type, StoredValue* stored);
  void DropCopies();
  bool Add(std::string_view bytes, uint32_t whole_size, char* stub);

  Core& core_;
  ThreadState& thread_;
  Arena::Limit limit_;
  std::vector<OutsideBlock> blocks_;  // named by stubs in scratch_
  Scratch scratch_;
};

}  // namespace skep::btree
