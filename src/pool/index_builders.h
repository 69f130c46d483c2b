// index_builders.h: an index that a server has not, built from the one that it has, while commits
// go on.
//
// Commits change both indexes from the beginning on (IndexState), the one that is whole judges, and
// a builder adds what there was before, piece by piece between commits. All is done by one thread,
// so what a builder reads of the whole index is so at the moment when it adds it to the other.
//
//   HashBuilder   from the tree alone, which has keys and slots (HStore, section 3.2: "the hash
//                 table is rebuilt by scanning the skiplist")
//   TreeBuilder   from the hash index, which has no keys: they are read with their items from the
//                 memory servers. The reads take time, in which a key may change: what comes is
//                 added only if the hash index has that slot still. Where a memory server does not
//                 answer the other replica is read. A key whose item is lost is found in no other
//                 way: it is removed.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pool/dialer.h"
#include "pool/index_context.h"

namespace skep::pool {

class HashBuilder {
 public:
  // The state keeps the hash index, not whole.
  HashBuilder(IndexContext& context, HashIndex& hash) : context_(context), hash_(hash) {}

  // Adds some thousand keys. False: there is no room, and the state does not keep the index any
  // more.
  bool Step(bool* is_whole);

 private:
  IndexContext& context_;
  HashIndex& hash_;
  std::string next_;  // where to go on
  Batch batch_;
};

class TreeBuilder {
 public:
  // The state keeps the tree, not whole.
  TreeBuilder(IndexContext& context, Engine& tree);

  // Posts reads, if few are under way. True: the tree is whole now.
  bool Step();
  // A post of this builder has ended. False: it is none.
  bool HandleDone(const rma::Event& event);
  void HandlePeer(const rma::Event& event) { servers_.Handle(event); }

 private:
  // Tokens that no role uses.
  static constexpr uint64_t kFirstToken = uint64_t{1} << 63;

  // An item whose key is wanted.
  struct Wanted {
    Slot slot;
    uint32_t index = 0;  // the lowest bits of its index word
    uint64_t tag = 0;
    std::byte* bytes = nullptr;
    uint32_t size = 0;
    uint32_t attempt = 0;
  };
  // Of one server, read together.
  struct Post {
    uint64_t token = 0;
    uint32_t server = 0;
    uint64_t sent_ns = 0;
    std::vector<Wanted> wanted;
    std::unique_ptr<std::byte[]> bytes;
  };

  static KeyDigest DigestOf(const Wanted& wanted);
  std::optional<FramePlace> PlaceOf(const Wanted& wanted) const;
  // Its server was found not to answer a moment ago.
  bool IsLeftAlone(const Wanted& wanted) const;
  void EndOldPosts();
  void Enumerate();
  // To be read, by server; and removes the keys of those that are lost.
  void Enqueue(std::vector<Wanted> found);
  // In the other frames; the server that they were to be read in is left alone for a while.
  void TryElsewhere(std::vector<Wanted> wanted);
  bool Send(std::vector<Wanted>& wanted);
  void Add(const Post& post);

  IndexContext& context_;
  Engine& tree_;
  Dialer servers_;
  uint64_t next_bucket_ = 0;
  uint64_t next_token_ = kFirstToken;
  std::deque<std::vector<Wanted>> waiting_;       // to be sent; of one server each, and few
  std::map<uint32_t, uint64_t> paused_until_ns_;  // by server
  std::deque<Post> posts_;                        // under way
  Batch batch_;
};

}  // namespace skep::pool
