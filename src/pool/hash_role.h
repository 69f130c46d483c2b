// hash_role.h: what the hash server of a pool does: takes commits, orders, ships and applies them,
// and grants what clients need to read and write by themselves.
//
//   client            hash server                          sorted server
//     | commit ---------> |  one group of entries a turn         |
//     |                   |  ship ------------------------------> |  appended to its log
//     |                   |  <------------------------ end index  |
//     |                   |  applied to the hash index           |  applied to the tree, later
//     |                   |  `applied` published                 |
//     | <------- verdicts |                                      |
//
// Where the pool is kept on disks, an entry is applied only when this server's log has it, too, and
// the sorted server acknowledges what its log has (index_log.h).
// Order. A slot is stored only after the sorted server has acknowledged its entry, `applied` is
//   published only after the slots up to it, and a reply leaves only after that. So whatever a
//   reader of the hash index has seen, the log of the sorted server has, and a server that takes
//   over applies all of that log (holes H5, H6); and whatever a client was told, `applied` tells
//   (H1, rule A in pool_engine.h).
// Shipping. Up to kShippedMax groups are under way; the sorted server acknowledges by the index of
//   its log's end, and passes over what it has. When the connection breaks, all that is not
//   acknowledged is shipped again.
// Authority (H10). The hash server may grant reads, and answer by itself, only until lease_ns after
//   it has sent the last shipment that was acknowledged. The sorted server, before it takes over,
//   waits for lease_ns from its last acknowledgement, which is later than that; what was granted to
//   clients ends no later. A shipment without entries goes out after a quarter of that time without
//   one. No clocks are compared, only durations; their rates may differ by one per cent.
//   A solo hash server has no one who could take over, and has authority until its map changes, or
//   it makes itself another sorted server (state_transfer.h).
// Clients. One that is silent for silence_ns_max is forgotten, and its chunks are sealed. A join
//   whose answer is lost is sent again and not recognized: it makes one more client, which nobody
//   is. That one has no chunks and no verdicts, takes a place in two maps, and is forgotten as any
//   other that is silent, so there are at most as many of them as joins in that time.
// Chunks. chunk_upkeep.h says when one may be written to again, placement.h where it lies,
//   free_space.h who gets the last ones, and memory_watch.h which memory servers there are.
// Progress. The hash server waits for the sorted server alone. While that does not answer,
//   nothing is applied, and after lease_ns there is no authority: no GETs either. That lasts until
//   the map changes: when the sorted server's session has ended, or, where it lives and the two are
//   parted, since the hash server wants to be solo after kPartedLeases leases without authority, as
//   its own turns have seen them. Of that set and one of the sorted server one is done. A turn's
//   work is what its requests ask for, and at most every 20 ms a look at all clients and empty
//   chunks.
//
// Thread safety: one owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pool/chunk_upkeep.h"
#include "pool/copy_plan.h"
#include "pool/dialer.h"
#include "pool/free_space.h"
#include "pool/index_context.h"
#include "pool/memory_calls.h"
#include "pool/memory_watch.h"
#include "pool/placement.h"
#include "pool/state_transfer.h"

namespace skep::pool {

// It has some 30 methods: a handler for each message, and what makes one log of all they enter.
class HashRole {
 public:
  // `applied` is the word that clients read, in the header region. The context's state keeps a hash
  // index, or, as long as it is built again, a tree.
  HashRole(IndexContext& context, std::atomic<uint64_t>& applied);

  // The map has changed, and this server is the hash server in it.
  void MapChanged();
  // A request whose kind and fields have been read. False: it is none of this role.
  bool Handle(const rma::Event& event, MessageKind kind, std::string_view fields);
  // A reply to a call of this role. False: it is none.
  bool HandleReply(const rma::Event& event);
  // A connection of this endpoint, which this role may have made, has come about or has ended.
  void HandlePeer(const rma::Event& event);
  // What is due: shipments, applying, recycling, clients that were silent. Returns whether anything
  // was done.
  bool Turn();

  // Refuses what waits for an answer: this server has not the role any more.
  void RefuseWaiting();

  // The sorted server has not acknowledged anything for too long, although its session lives.
  bool IsParted() const;
  // It may answer by itself now.
  bool HasAuthority() const { return context_.now_ns() < authority_until_ns_; }
  // The roles to be set, in the version that has the present ones; nothing: these.
  std::optional<PoolRoles> wanted_roles() const;

  // Entries that are not applied yet.
  uint64_t pending() const { return next_index_ - 1 - context_.state.applied(); }

 private:
  static constexpr size_t kShippedMax = 4;
  // A hash server without authority for so many leases wants to be solo.
  static constexpr uint64_t kPartedLeases = 8;
  static constexpr size_t kGroupEntriesMax = 16 * 1024;
  static constexpr size_t kGroupBytesMax = 4 << 20;
  // More are refused while the sorted server does not answer.
  static constexpr uint64_t kPendingMax = 1 << 20;

  // A call that is answered when its entries are applied.
  struct WaitingCall {
    rma::PeerId peer = 0;
    uint64_t token = 0;
    MessageKind kind = MessageKind::kCommit;
    size_t begin = 0, end = 0;  // of its group
  };
  // What is shipped as one. It was shipped once: nothing is added to it any more, also if it is
  // shipped again, since the sorted server may have it.
  struct Group {
    LogBatch entries;
    std::vector<WaitingCall> calls;
    bool is_closed = false;    // it was shipped, or is in the log
    bool is_appended = false;  // to the log of this server
    LoggedUpTo needed;         // of the log, before it may be applied
    bool is_shipped = false;   // and is under way, or acknowledged
  };
  struct Shipment {
    uint64_t token;
    uint64_t sent_ns;
  };

  bool is_paired() const { return context_.map.sorted_server != 0; }
  // Nobody has to acknowledge what is applied.
  bool is_solo() const { return !is_paired() && !transfer_.Holds(); }
  // The server to which the log is shipped, or the newcomer to which it will be; 0: none.
  uint32_t sorted_server() const {
    return is_paired() ? context_.map.sorted_server : transfer_.newcomer();
  }

  void Join(const rma::Event& event);
  void Commit(const rma::Event& event, std::string_view fields);
  void Renew(const rma::Event& event, std::string_view fields);
  void LeaseChunks(const rma::Event& event, std::string_view fields);
  // Returns the chunk.
  uint32_t EnterLease(Group& group, uint32_t client, const ChunkFrames& frames);
  void OfferCopy(const rma::Event& event, std::string_view fields);
  void Adopt(const rma::Event& event, std::string_view fields);
  void Drain(const rma::Event& event, std::string_view fields);
  void TellServers(const rma::Event& event);
  void EncodeCopy(const LogEntry& lease);
  void ShedDrained();
  void SealChunks(const rma::Event& event, std::string_view fields);
  void TellPlaces(const rma::Event& event, std::string_view fields);
  void Find(const rma::Event& event, std::string_view fields);
  void TellStatus(const rma::Event& event);
  void TellVictims(const rma::Event& event, std::string_view fields);
  // Refuses what would only wait, if this server's log takes nothing.
  bool CanLog(const rma::Event& event);
  // Reads the epoch and the client that most requests begin with; refuses if it must.
  bool TakeClient(const rma::Event& event, std::string_view* fields, uint32_t* client);
  bool TakeEpoch(const rma::Event& event, std::string_view* fields);

  // The group for so many entries more, which are of one call, with so many bytes.
  Group& OpenGroup(size_t entries, size_t bytes);
  void Enter(const LogEntry& entry);
  void Enter(Group& group, const LogEntry& entry);
  // The call that is answered when the group's entries from `begin` on are applied.
  void Await(Group& group, const rma::Event& event, MessageKind kind, size_t begin);
  void LogGroups();
  bool ShipGroups();
  void ShipAgain();
  void Ship(rma::PeerId peer, const LogBatch& entries);
  // 0: there is no connection now.
  rma::PeerId SortedPeer();
  void Acknowledge(uint64_t sent_ns, uint64_t end_index);
  bool StepTransfer();
  void EndTransfer();
  bool MayApply(const Group& group) const;
  bool ApplyGroups();
  void ApplyFront();
  void AnswerCall(const Group& group, const WaitingCall& call);
  void EncodeLeases(const Group& group, const WaitingCall& call);

  void ForgetSilentClients();

  IndexContext& context_;
  std::atomic<uint64_t>& applied_;
  std::deque<Group> groups_;  // the first ones shipped
  std::deque<Shipment> shipments_;
  uint64_t acknowledged_ = 0;  // end index, by the present sorted server
  uint64_t next_index_;
  uint32_t next_client_;
  // Chunks and frames whose lease is entered and not applied.
  std::set<uint32_t> leasing_;
  std::set<uint32_t> leasing_frames_;
  std::set<uint32_t> shedding_;  // chunks whose shedding is entered and not applied
  Placement placement_;
  CopyPlan copies_;
  uint64_t authority_until_ns_ = 0;
  uint64_t last_sent_ns_ = 0;
  uint64_t without_authority_ns_ = 0;  // since when, as a turn has seen it; 0: it has authority
  uint64_t next_token_ = 1;

  uint64_t epoch_ = 0;  // of the last map
  StateTransfer transfer_;

  Dialer sorted_servers_;
  MemoryCalls memory_calls_;
  MemoryWatch memory_watch_;
  ChunkUpkeep chunks_;
  FreeSpace free_space_;
  std::map<uint32_t, uint64_t> seen_ns_;  // by client
  uint64_t upkeep_ns_ = 0;
  // Scratch.
  std::vector<CommitVerdict> verdicts_;
  std::vector<std::string_view> asked_;
  std::vector<Slot> found_;
  std::string fields_;
};

}  // namespace skep::pool
