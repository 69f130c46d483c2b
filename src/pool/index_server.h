// index_server.h: one of the two index servers of a pool: the hash server, the sorted server, or
// both in one while the other is gone.
//
//   region 0  one page: the applied word (messages.h), then the number of buckets
//   region 1  the table's buckets           region 2  overflow buckets          (hash_index.h)
//
// The roles come from outside, by SetMap: who is what is the coordinator's business (pool_map.h).
// What this server would have them be it says by wanted_roles().
//
//   none --> hash --------> solo   The sorted server is gone. What is under way is applied at once,
//                                  and the tree is built (index_builders.h); until it is whole
//                                  there are no scans.
//   none --> sorted ------> solo   The hash server is gone. When its authority has ended
//                                  (hash_role.h) the log is applied and commits go on; until the
//                                  hash index is built, clients ask for slots by calls.
//   none --> candidate             A solo hash server has given it its state (state_transfer.h).
//   candidate --> sorted           The roles name it. Without the state of another server, a server
//                                  takes roles of epoch 1 alone.
//   candidate --> none             They do not, or the state is given once more.
//   none --> solo                  Its log has the state of a server that had one of the last
//                                  roles, and all of those are gone (index_log.h). When their
//                                  authority has ended it goes on.
//   solo --> hash                  The sorted server is the one that it has given its state to.
//   any ---> none                  Another server has been chosen. This one has no role for ever:
//                                  it keeps its memory until it is destroyed, and refuses
//                                  everything.
// Roles that change in any other way are taken for the last one.
//
// Thread safety: one owner.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/lazy_huge_pages.h"
#include "base/shared_memory.h"
#include "engine/engine.h"
#include "pool/hash_index.h"
#include "pool/hash_role.h"
#include "pool/index_builders.h"
#include "pool/index_context.h"
#include "pool/index_log.h"
#include "pool/index_state.h"
#include "pool/sorted_role.h"
#include "pool/state_receiver.h"

namespace skep::pool {

struct IndexServerOptions {
  uint32_t id = 1;
  Address listen;
  PoolTimes times;
  // How many buckets, and overflow buckets, there may be: 64 bytes each of address space, and of
  // memory as far as they are used.
  uint64_t buckets_max = uint64_t{1} << 28;
  uint64_t overflow_max = uint64_t{1} << 27;
  // An ordered engine without a memory limit, empty; called when a tree is wanted.
  std::function<std::unique_ptr<Engine>()> make_tree;
  // In how many memory servers an item lies, where there are as many; 1 or 2. Of the hash server.
  uint32_t replicas = 2;
  // Whether keys whose items were lost, with all memory servers that had them, are removed; else
  // whoever asks for one gets an error.
  bool removes_lost = false;
  // How many keys of a state are sent at once (state_transfer.h).
  uint32_t keys_per_piece = 4096;
  // How many keys are added to an index that is built before what has come meanwhile is answered
  // (index_builders.h).
  uint32_t keys_per_step = 256;
  // The pool is to have so many free chunks in any case (free_space.h).
  uint32_t free_chunks_min = 0;
  // Whether entries are applied before they are acknowledged (sorted_role.h). Of the sorted server.
  bool applies_first = false;
  // What it keeps on a disk, just opened; null: nothing. It outlives the server.
  IndexLog* log = nullptr;
};

class IndexServer {
 public:
  //   kInvalidArgument  the address
  //   kIo               there is not the address space, or the address is not free
  static Result<std::unique_ptr<IndexServer>> Open(rma::Fabric& fabric, Clock& clock,
                                                   IndexServerOptions options);
  ~IndexServer();

  // Takes the roles that the map gives. An older map is passed over.
  void SetMap(const PoolMap& map);
  // What is to be passed to RoleKeeper::Want after each turn.
  std::optional<PoolRoles> wanted_roles() const;
  // It has lost its role: it refuses everything, and is to be destroyed. Another IndexServer, with
  // a number of its own, may become the pool's.
  bool is_retired() const { return is_retired_; }
  // Why what its log has can be of no use here, so that it takes part in nothing; empty: it does.
  std::string_view problem() const { return problem_; }
  // One turn of its loop: waits up to `timeout_ms` for something to do, and not at all while it
  // builds an index. Returns whether there was.
  bool Turn(int timeout_ms);
  void Wake() { endpoint_->Wake(); }

  Address address() const { return endpoint_->address(); }
  uint32_t id() const { return options_.id; }
  // Null: it has had no role yet.
  IndexState* state() const { return state_.get(); }

 private:
  struct Header {
    std::atomic<uint64_t> applied;
    std::atomic<uint64_t> bucket_count;
  };

  IndexServer(Clock& clock, IndexServerOptions options)
      : clock_(clock), options_(std::move(options)), receiver_(options_.make_tree) {}
  Status Reserve();
  Header& header() const { return *reinterpret_cast<Header*>(header_->begin()); }

  void Handle(const rma::Event& event);
  void HandleRequest(const rma::Event& event);
  void HandlePeer(const rma::Event& event);
  bool IsNew() const;
  bool IsChangeOfRole(const PoolMap& map) const;
  void TakeRoles();
  void Begin(const PoolMap& map);
  void BeginNew(const PoolMap& map);
  void ComeBack(const PoolMap& map);
  Status TakeFound();
  bool AppendOwner(bool goes_on);
  void LookAtFound(const PoolMap& map);
  void DropFound();
  bool LogState();
  void ReceiveState(const rma::Event& event, std::string_view fields);
  bool AppendPiece(StateReceiver::Result result, rma::PeerId peer, std::string_view piece);
  void BecomeCandidate();
  void ForgetState();
  void DropTree();
  void BecomeSorted();
  void BecomeHash();
  void TakeOver();
  void MakeHash(bool is_whole);
  void MakeTree(bool is_whole);
  void Retire();
  // Puts the buckets that have come on huge pages.
  void JoinBuckets();
  bool StepRoles(bool is_idle);
  bool StepBuilders();

  Clock& clock_;
  const IndexServerOptions options_;
  std::optional<SharedMemory> header_;
  std::optional<SharedMemory> buckets_;
  std::optional<SharedMemory> overflow_;
  std::optional<LazyHugePages> bucket_pages_;
  uint64_t joined_buckets_ = 0;  // whose pages were joined to huge ones
  std::unique_ptr<rma::Endpoint> endpoint_;
  std::unique_ptr<HashIndex> hash_;
  std::unique_ptr<Engine> tree_;
  std::unique_ptr<IndexState> state_;
  std::unique_ptr<IndexContext> context_;
  std::unique_ptr<HashRole> hash_role_;
  std::unique_ptr<SortedRole> sorted_role_;
  std::unique_ptr<HashBuilder> hash_builder_;
  std::unique_ptr<TreeBuilder> tree_builder_;
  StateReceiver receiver_;
  std::optional<FoundState> found_;  // what the log has, until it is clear what becomes of it
  std::optional<PoolRoles> claim_;   // the roles by which this server goes on with that
  LoggedUpTo base_;                  // of the log: what is to be there before anything counts
  std::string_view problem_;
  bool is_candidate_ = false;  // it has a state, and no map has given it a role yet
  bool takes_over_ = false;    // the hash server's authority has not ended yet
  bool is_retired_ = false;
};

}  // namespace skep::pool
