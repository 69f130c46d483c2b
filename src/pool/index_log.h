// index_log.h: what an index server of a pool keeps on a disk, so that a pool comes back that has
// lost both of its index servers.
//
// A log is one stream of records, of one server after the other:
//   owner    number, 1 or 0    the server of this number goes on with the state before (1), or what
//                              is before counts no more (0)
//   state    pieces            as a newcomer is given them (state_pieces.h); the last one makes the
//                              state whole, and what is before the first one is not needed any more
//                              One that was made out of the log itself, to bound it, tells in
//                              front of its first piece up to where it has that log, and who its
//                              owners are
//   entries  a batch           of the pool's log (log_entry.h)
// The state is the last whole one, with the entries behind its last one. The owners are the numbers
// that were written since the last 0: servers that had this state, one after the other.
//
//   client          hash server H                         sorted server S
//     | commit ------> |                                      |
//     |                | append to H's log    ship ---------> | append to S's log
//     |                |                                      | ... until it is logged
//     |                | <------------------------- end index |
//     |                | ... until it is acknowledged, and logged here
//     | <----- answer  | apply                                |
//
//   both are gone; a server N begins in the directory of one of them, X
//     1  It locks the directory, reads it, and takes a number that was never used.
//     2  The roles {e, H, S} name an owner of its log, and neither H nor S has a node any more: it
//        appends itself as an owner, and syncs that.
//     3  It sets the roles {e + 1, N, nobody}, in the version that it has read.
//     4  It waits for lease_ns from then on, builds the hash index, and serves.
//   The other directory's server, and any other, is a newcomer and gets the state from N.
//
// Safety
//   D1  What was answered, or read, is in the logs of all servers that the roles name. H applies an
//       entry only when it is in its own log and S has acknowledged it, which S does only when it
//       is in S's. A server that is alone applies what is in its own log. A newcomer that the roles
//       come to name has acknowledged a shipment, and does so only when the state before is in its
//       log. A sorted server that takes over has all entries that it applies in its log.
//       So whichever of the roles' servers X is, its directory has all that the pool has promised.
//       It may have more: entries that nobody was answered for, which count as done late.
//   D2  A server that was none of the last roles may not come back: its log may lack entries. The
//       roles are one node, of which every change is a versioned set, so of several that want to
//       come back one does, and the others find the roles changed. If N dies after 3 was done, or
//       before the answer came, the roles name N or X. Both are owners of its log, and no server of
//       another log ever had either number.
//       A server that is none of the last roles appends itself with 0 before it takes anything: the
//       old state can never be taken for one of the new number.
//   D3  X is dead, as the directory was locked. The other server of the last roles may live, cut
//       off from the coordinator. It does nothing that counts any more: H applies nothing without
//       S, S has nothing shipped without H, and either may only change the roles, which D2 settles.
//       What H granted, also a dead one whose memory is still mapped, ends lease_ns after it
//       granted it: H granted last when it lived, or lease_ns after S did. So N waits for lease_ns
//       from an instant when X was dead (authority_ends_ns() of sorted_role.h).
//       Therefore a directory is never copied while the server that has it may live.
//   D4  A power loss may take what was not synced: with everysec the commits of the last second, if
//       all directories that count have lost it. It takes the end of the log, never its middle. It
//       must not take more than puts and deletes: a client whose joining is forgotten would share
//       its number with another one, and a chunk that is leased twice is written by two. So entries
//       that join a client or lease a chunk, a whole state and an owner are synced before they
//       count, under every policy (MustBeSynced below).
//   D5  What a chunk has is in the memory servers, which live. What had happened to a chunk before
//       is in the state; what is due by time, recycling and fences, begins anew, as at any takeover
//       (chunk_upkeep.h).
// A log that cannot be written takes nothing: a ticket 0 says so, and the entry waits or is
//   refused. A sorted server then acknowledges nothing, and the hash server goes on without it
//   (hash_role.h); a hash server, alone or not, refuses commits until its log is mended.
// Progress. Nobody waits for a disk: appending copies, and what is logged is seen by a later turn.
//   The coming back waits for the sessions of both servers to end, for one sync, and for lease_ns.
//   If only the directory of a server that is none of the last roles is there, it waits for ever,
//   and says so.
//
// Thread safety: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "pool/index_state.h"
#include "skep/status.h"

namespace skep::pool {

// What a log was found to have when it was opened.
struct FoundState {
  std::vector<uint32_t> owners;
  // Null: there is none. Its tree is whole.
  std::unique_ptr<IndexState> state;
  std::unique_ptr<Engine> tree;

  bool IsOwner(uint32_t server) const {
    return server != 0 && std::ranges::find(owners, server) != owners.end();
  }
};

class IndexLog {
 public:
  // Of a record; ascending. 0: nothing was appended.
  using Ticket = uint64_t;
  enum class Kind : uint8_t {
    kOwner = 1,
    kStateBegin,  // the first piece of a state
    kState,       // another one
    kStateEnd,    // the last one
    kEntries,
    kStateSince,  // the first piece of a state that the log itself appends, made out of it
  };

  virtual ~IndexLog() = default;

  // To be called once.
  virtual FoundState TakeFound() = 0;
  // Returns 0 if the log cannot take it now: the disk is full, or has failed.
  virtual Ticket Append(Kind kind, std::string_view bytes) = 0;
  // Has all that was appended logged, or also synced, soon.
  virtual void Flush(bool syncs) = 0;
  // What is logged, by the policy, up to this ticket.
  virtual Ticket logged() const = 0;
  // The same of what survives a power loss.
  virtual Ticket synced() const = 0;
  // Why nothing can be appended now; kOk: it can.
  virtual Status status() const = 0;
};

// The name of a kind for people: "owner", "entries", ...
std::string_view NameOf(IndexLog::Kind kind);

// What an index server needs to have logged: nothing, if it has no log.
struct LoggedUpTo {
  IndexLog::Ticket logged = 0;
  IndexLog::Ticket synced = 0;

  bool IsReached(const IndexLog* log) const {
    return log == nullptr || (log->logged() >= logged && log->synced() >= synced);
  }
};

// Whether the entries have one that a power loss may not take (D4).
bool MustBeSynced(const LogBatch& entries);
// Appends the entries, if there are any, and has them logged. Null log: nothing is needed. False:
// the log cannot.
bool AppendEntries(IndexLog* log, const LogBatch& entries, LoggedUpTo* needed);

}  // namespace skep::pool
