// index_builders.h: an index that a server has not, built from the one that it has, while commits
// go on.
//
//   a turn of the server:  all that has come is answered  |  one step of the builder  |  ...
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
// Progress. A server with a builder does not sleep: each turn first answers all that has come, then
// does one step. A step adds up to keys_per_step keys, so a request waits for the requests before
// it and for one step, about a tenth of a millisecond; and the builder, whatever there is to
// answer, gets so many keys further with each turn that finds them there. It ends, since all keys
// that it misses while it goes through the whole index are those of commits, which add themselves.
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
  // A step that adds no keys makes so many empty buckets.
  static constexpr uint32_t kBucketsPerStep = 1024;

  // The state keeps the hash index, not whole, and a whole tree.
  HashBuilder(IndexContext& context, HashIndex& hash)
      : context_(context), hash_(hash), items_(context.state.items()) {}

  // At first the table gets buckets for all keys, so that hardly any is split that has some. False:
  // there is no room, and the state does not keep the index any more.
  bool Step(bool* is_whole);

 private:
  bool AddKeys();

  IndexContext& context_;
  HashIndex& hash_;
  const uint64_t items_;  // of the tree when it began
  std::string next_;      // where to go on
  Batch batch_;
  std::vector<KeyDigest> digests_;  // of one step's keys
};

class TreeBuilder {
 public:
  // The state keeps the tree, not whole.
  TreeBuilder(IndexContext& context, Engine& tree);

  // Adds the keys of one post that has ended, and posts the next one if few are under way. True:
  // the tree is whole now.
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
  // Sends the next one whose server is not left alone.
  void SendNext();
  void Add(const Post& post);

  IndexContext& context_;
  Engine& tree_;
  Dialer servers_;
  uint64_t next_bucket_ = 0;
  uint64_t next_token_ = kFirstToken;
  std::deque<std::vector<Wanted>> waiting_;       // to be sent; of one server each, and few
  std::map<uint32_t, uint64_t> paused_until_ns_;  // by server
  std::deque<Post> posts_;                        // under way
  std::deque<Post> done_;                         // whose keys are to be added
  std::vector<KeyDigest> digests_;                // of one post
  Batch batch_;
};

}  // namespace skep::pool
