// outside.h: puts long keys and values outside the nodes; stored.h has the layout.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "btree/core.h"
#include "btree/edited_pieces.h"
#include "btree/pieces.h"
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
  // Whether the limit of memory lets something be stored now.
  bool has_room() const { return limit_ == Arena::Limit::kExceed || core_.budget.HasRoomFor(0); }

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

  // Makes of an outside value that a node holds the same value with another deadline. Its blocks
  // stay as they are.
  void Carry(const StoredValue& before, uint64_t deadline_ms, StoredValue* stored);
  // Makes a copy of a value in pieces. False: no memory.
  bool CopyPieces(const StoredValue& before, uint64_t deadline_ms, StoredValue* stored);
  // Makes of a value in pieces what an effect makes of it: new pieces where bytes change, and the
  // old ones elsewhere. False: no memory.
  bool Edited(const StoredValue& before, const PartsEffect& effect, uint64_t deadline_ms,
              StoredValue* stored);
  // Likewise, of what an atomic batch has made of the value.
  bool Edited(const StoredValue& before, const EditedPieces& after, uint64_t deadline_ms,
              StoredValue* stored);

  // Sets the version at which the blocks made so far are born. Called before anybody can see them.
  // Pieces of values have an earlier one, that was the last one when they were made: so the leaf is
  // not locked while they are visited.
  void SetBorn(Version version);
  // The blocks belong to the tree from now on.
  void Keep() {
    blocks_.clear();
    pieces_.clear();
  }
  // Frees the blocks made so far.
  void Drop() {
    if (scratch_.used() != 0) DropCopies();
  }

 private:
  bool LongKey(std::string_view key, StoredKey* stored);
  bool CopyValue(std::string_view value, uint64_t deadline_ms, uint8_t type, StoredValue* stored);
  void DropCopies();
  bool AddValue(std::string_view value, char* stub);
  char* AddBlock(size_t bytes, std::vector<OutsideBlock>& blocks, ArenaAddress* at);
  char* AddPiece(size_t bytes, ArenaAddress* at);
  bool CopyPiece(std::string_view bytes, ArenaAddress* at);
  bool Add(std::string_view bytes, uint32_t whole_size, char* stub);
  template <typename Fill>
  bool AddPieces(size_t size, char* stub, Fill fill);
  char* MetadataAndStub(uint64_t deadline_ms, uint8_t type, StoredValue* stored);

  Core& core_;
  ThreadState& thread_;
  Arena::Limit limit_;
  std::vector<OutsideBlock> blocks_;  // named by stubs in scratch_
  std::vector<OutsideBlock> pieces_;  // named by tables in blocks_
  Scratch scratch_;
};

}  // namespace skep::btree
