// index_state.h: the state that the entries of the log make, as either index server keeps it.
//
//                      hash server    sorted server    solo
//   hash_index.h           yes                          yes     key digest -> slot
//   an ordered engine                     yes           yes     key -> slot, 8 bytes
//   sessions.h             yes            yes           yes
//   chunks.h               yes            yes           yes
//
// Apply is a function of the state and the entry alone: both servers come to the same verdicts. A
// whole index judges, and where both are whole they have the same keys. What a server has no memory
// for it cannot leave out: the caller sees to it before (HashIndex::Reserve), and a server that
// fails all the same stops the process, whose place the other one takes.
//
// Thread safety: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "pool/chunks.h"
#include "pool/hash_index.h"
#include "pool/key_digest.h"
#include "pool/log_entry.h"
#include "pool/sessions.h"

namespace skep::pool {

class IndexState {
 public:
  explicit IndexState(const DigestKeys& keys) : keys_(keys) {}

  // The state begins where another one has ended (state_receiver.h), beside its indexes.
  void Resume(Sessions sessions, Chunks chunks, uint64_t applied, uint32_t next_client) {
    sessions_ = std::move(sessions);
    chunks_ = std::move(chunks);
    applied_ = applied;
    next_client_ = next_client;
  }

  // An index is kept from now on: whole, with the state as it is now, or being built: commits go to
  // it, and others add what there was before. One of the two is whole at every time. They stay as
  // long as they are kept.
  void set_hash(HashIndex* hash, bool is_whole) {
    hash_ = hash;
    hash_is_whole_ = is_whole;
  }
  void set_tree(Engine* tree, bool is_whole) {
    tree_ = tree;
    tree_is_whole_ = is_whole;
  }
  // Null: it is not kept, or not whole.
  HashIndex* hash() const { return hash_is_whole_ ? hash_ : nullptr; }
  // False if one that was being built had no room: it is not kept any more.
  bool keeps_hash() const { return hash_ != nullptr; }
  Engine* tree() const { return tree_is_whole_ ? tree_ : nullptr; }

  // The entries of a batch in their order; its first index is applied() + 1. Appends a verdict for
  // each entry, kDone for those that get none.
  void Apply(const LogBatch& batch, std::vector<CommitVerdict>* verdicts);
  // The index of the last entry that was applied.
  uint64_t applied() const { return applied_; }

  // Removes a key whose item is lost, and that nobody can find out, if it has that slot still. Only
  // of a server that is alone: nobody else learns of it.
  void RemoveUnknowable(const KeyDigest& digest, Slot slot);
  // The key's slot; none: it is absent.
  Slot Find(std::string_view key);
  // The keys' slots, in their order. The cache misses of all of them overlap.
  void Find(std::span<const std::string_view> keys, std::vector<Slot>* slots);

  uint64_t items() const { return hash_is_whole_ ? hash_->items() : tree_->Statistics().items; }
  const Sessions& sessions() const { return sessions_; }
  const Chunks& chunks() const { return chunks_; }
  const DigestKeys& keys() const { return keys_; }
  // Above every client that has joined.
  uint32_t next_client() const { return next_client_; }

 private:
  using Slots = std::array<Slot, 2>;  // an entry's slot, and the one that it expects

  void Commit(const LogBatch& batch, size_t i);
  // The verdict of an entry that is not to be done: it was done before, or may not be.
  std::optional<CommitVerdict> Refusal(const LogEntry& entry);
  CommitVerdict CommitToHash(const LogEntry& entry);
  void ChangeHash(const LogEntry& entry, const KeyDigest& digest);
  // The entry as an operation of the tree, which judges it if `judges`.
  void AddToTree(const LogEntry& entry, bool judges);
  // Executes the operations that were added, and settles the entries that the tree judges.
  void FlushTree(const LogBatch& batch);
  CommitVerdict VerdictOfTree(const LogEntry& entry, const Outcome& outcome) const;
  // What a verdict makes of sessions and chunks.
  void Settle(const LogEntry& entry, const CommitVerdict& verdict);
  void Administer(const LogEntry& entry, uint64_t index);
  void FindInHash(std::span<const std::string_view> keys, std::vector<Slot>* slots);

  const DigestKeys keys_;
  HashIndex* hash_ = nullptr;
  Engine* tree_ = nullptr;
  bool hash_is_whole_ = false;
  bool tree_is_whole_ = false;
  Sessions sessions_;
  Chunks chunks_;
  uint64_t applied_ = 0;
  uint32_t next_client_ = 1;

  // Of the batch that is being applied, and of a question.
  std::vector<CommitVerdict>* verdicts_ = nullptr;
  size_t first_verdict_ = 0;
  Batch operations_;            // of the tree
  std::vector<Slots> slots_;    // one for each of them; they do not move
  std::vector<size_t> judged_;  // the entries whose verdicts the tree gives, one an operation
};

}  // namespace skep::pool
