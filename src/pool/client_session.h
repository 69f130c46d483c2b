// client_session.h: what one thread of a client keeps of a pool: its connections, its name, its
// lease of one-sided reads, and where chunks lie.
//
// Everything waits, up to a deadline: the caller is a thread that wants an answer. While it waits
// the session connects again, asks for the map again when a server says that it has changed, and
// joins again when it has been forgotten.
//
// Replicas. An item is read in one of the frames of its chunk. A memory server that does not answer
// is left alone for kSuspicionNs, if others have the same chunks: one whose connection is not there
// or ends, that is another one than it was taken for, that has not finished any read for
// kReadWaitNs while it had some, or any write for kWriteWaitNs. Those are ended with the
// connection, so that their bytes are the caller's again. Each time the next round waits twice as
// long, up to kWaitNsMax, until one has come about: servers that are all slow are waited for in
// the end. While all servers of a chunk are left alone the one is used all the same whose time
// ends first, and is given up as any other one once that has passed.
//
// Hedged reads. Where the fabric can give bytes back (Endpoint::Abandon), a round of reads does not
// wait for so long. After kHedgeNs without any event its reads of the slow server are abandoned,
// the round fails, and the next one reads the other replicas, as the slow server is left alone for
// kSlowNs; its connection stays, and what it answers later goes nowhere. Each time the next round
// waits twice as long before that, until one has come about. While a server is left alone no other
// one is hedged, since that may have the only other replica. A server of which nothing at all has
// come since a hedge kReadWaitNs ago, or longer, is given up as above at the next one: so what
// waits for a server that hangs is bounded.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "pool/client_places.h"
#include "pool/dialer.h"
#include "pool/index_context.h"
#include "pool/messages.h"
#include "pool/pool_map.h"
#include "rma/fabric.h"
#include "skep/status.h"

namespace skep::pool {

// The newest map that the coordinator has told. Called by the session's owner.
using MapSource = std::function<PoolMap()>;

// For people who watch. Of one session, since its start.
struct ClientStatistics {
  uint64_t rounds = 0;  // posts that were waited for together
  uint64_t calls = 0;
  uint64_t reads = 0;  // one-sided
  uint64_t read_bytes = 0;
  uint64_t writes = 0;
  uint64_t written_bytes = 0;
  uint64_t joins = 0;
  uint64_t renewals = 0;
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  uint64_t retries_redirected = 0;  // a split was met
  uint64_t retries_torn = 0;        // a checksum did not fit
  uint64_t retries_late = 0;        // it took too long, or the lease ended meanwhile
  uint64_t retries_lost = 0;        // a connection ended
  uint64_t retries_slow = 0;        // a memory server was slow: its other replica was read
  uint64_t retries_contended = 0;   // another write came first
  uint64_t finds = 0;               // slots asked for by a call
};

inline constexpr Status kCannotBeLogged(
    Code::kIo, "the pool refuses writes: its hash server cannot write its log");

// One-sided operations that are posted together and waited for together.
class Round {
 public:
  // Of the hash server.
  void ReadIndex(uint32_t region, uint64_t offset, uint32_t bytes, void* to) {
    index_.push_back({.kind = rma::Operation::Kind::kRead,
                      .region = region,
                      .offset = offset,
                      .bytes = bytes,
                      .local = to});
    bytes_ += bytes;
  }
  // Of a memory server.
  void ReadMemory(const FramePlace& place, uint64_t offset, uint32_t bytes, void* to) {
    Memory(place, rma::Operation::Kind::kRead, offset, bytes, to);
  }
  void WriteMemory(const FramePlace& place, uint64_t offset, uint32_t bytes, void* from) {
    Memory(place, rma::Operation::Kind::kWrite, offset, bytes, from);
  }
  bool empty() const { return bytes_ == 0; }
  uint64_t bytes() const { return bytes_; }
  void Clear() {
    index_.clear();
    for (Target& target : memory_) target.operations.clear();
    bytes_ = 0;
  }

 private:
  friend class ClientSession;
  void Memory(const FramePlace& place, rma::Operation::Kind kind, uint64_t offset, uint32_t bytes,
              void* local) {
    bytes_ += bytes;
    OperationsOf(place.server)
        .push_back({.kind = kind,
                    .region = 0,
                    .offset = place.offset + offset,
                    .bytes = bytes,
                    .local = local});
  }
  std::vector<rma::Operation>& OperationsOf(uint32_t server) {
    for (Target& target : memory_) {
      if (target.server == server) return target.operations;
    }
    return memory_.emplace_back(Target{.server = server, .operations = {}}).operations;
  }

  struct Target {
    uint32_t server = 0;
    std::vector<rma::Operation> operations;
  };
  std::vector<rma::Operation> index_;
  std::vector<Target> memory_;  // few; some may have no operations
  uint64_t bytes_ = 0;          // of all operations
};

// It has some 30 methods: each wait may find another map, and then connections, name and lease
// change together.
class ClientSession {
 public:
  ClientSession(std::unique_ptr<rma::Endpoint> endpoint, Clock& clock, MapSource source);
  ~ClientSession();

  // When an index server has last answered a call; 0: never.
  uint64_t heard_ns() const { return heard_ns_; }
  // What happens until then is waited for.
  void set_deadline_ns(uint64_t deadline_ns) { deadline_ns_ = deadline_ns; }
  uint64_t deadline_ns() const { return deadline_ns_; }
  bool IsLate() const { return now_ns() >= deadline_ns_; }
  // What is waited for may never come: the servers have other roles by now.
  bool HasOtherMap() const { return source_().epoch != map_.epoch; }
  uint64_t now_ns() const { return clock_.MonotonicNs(); }
  // As the hash server told it.
  const PoolTimes& times() const { return times_; }
  const rma::Capabilities& capabilities() const { return endpoint_->capabilities(); }

  // Sees to it that this client has a name in the present epoch. False: the deadline has passed, or
  // the pool cannot log that it has come (NoAnswer).
  bool Join();
  // The same; and asks, if it is time, for a lease. Whether this client may read one-sided now: not
  // while the hash server builds its index again, or does not answer. `*at_ns` is the time; it is
  // told anew if it has passed here.
  bool TakeLease(uint64_t* at_ns);
  // Asks for the lease now, so that the client is not forgotten. False: there was no good answer.
  bool Renew();
  // Whether what was read until now counts.
  bool HasLease() const { return HadLease(now_ns()); }
  // The same of what was read until then.
  bool HadLease(uint64_t at_ns) const { return at_ns < lease_until_ns_; }
  uint32_t client() const { return client_; }
  // The error of a request that has waited for too long, or for which there was no name.
  Status NoAnswer() const {
    if (!may_join_) return kCannotBeLogged;
    return map_.epoch == 0 ? Status(Code::kUnavailable,
                                    "the pool has no index servers yet, or "
                                    "ZooKeeper does not answer")
                           : Status(Code::kUnavailable, "the pool does not answer");
  }
  uint64_t epoch() const { return map_.epoch; }
  const DigestKeys& keys() const { return keys_; }
  // A number that rises whenever another table may be read than before, over another connection:
  // what is known of the table before is to be forgotten, and the lease of it is gone.
  uint64_t table() const { return table_; }
  // How many buckets the table had when the lease was granted.
  uint64_t buckets() const { return buckets_; }

  // Posts and waits; the operations of one memory server are all reads or all writes. False: a
  // connection has ended, or was not there, or the deadline has passed; nothing is known of any
  // operation. The local bytes are the caller's again in any case.
  bool Run(const Round& round);

  enum class To : uint8_t { kHashServer, kSortedServer };
  // The fields of the reply to a request; nothing: there was none. `code` says why:
  // the server's reason, or kNotServing if the connection has ended. The view is valid until the
  // next call of this session.
  std::optional<std::string_view> Call(To to, std::string_view request, ReplyCode* code);
  std::optional<PoolStatus> AskForStatus();
  // Asks for the map again. Waits a moment if it is the same, unless reads were just abandoned,
  // which are to be made elsewhere at once.
  void RefreshMap();
  // Takes the map if there is another one.
  void FollowMap() {
    if (HasOtherMap()) RefreshMap();
  }
  // Does what the other ends of its connections want, and waits for nothing: a connection that has
  // been ended may keep a memory server waiting until then (rma/mem_fence.h).
  void HandleEvents() { TakeEvents(0); }
  // The client has been forgotten: the next Join() makes a new one.
  void ForgetClient() { client_ = 0; }

  // Where a chunk of this generation may be read. May ask the hash server.
  enum class Where : uint8_t {
    kHere,
    kLost,   // no memory server has its chunk any more
    kStale,  // its chunk has another generation by now; or it could not be found out
  };
  Where Locate(uint32_t chunk, uint8_t gen, FramePlace* place) {
    const FramePlace* const first = suspects_.empty() ? places_.FindFirst(chunk, gen) : nullptr;
    if (first == nullptr) return FindPlace(chunk, gen, place);
    *place = *first;
    return Where::kHere;
  }
  // Where a chunk lies, of which a lease has told these frames, and this version of the memory
  // servers. False: it could not be found out.
  bool LearnLease(uint32_t chunk, uint8_t gen, const ChunkFrames& frames, uint64_t version,
                  std::vector<FramePlace>* places);
  // Reads all of a chunk of this generation, in whichever frame can be read, until the deadline.
  // False: it cannot be read, or has another generation.
  bool ReadChunk(uint32_t chunk, uint8_t gen, std::byte* to);
  // Where a frame lies; nothing: it could not be found out.
  std::optional<FramePlace> PlaceOf(uint32_t frame);
  // An item with a slot of this chunk did not check: where the chunk lies is asked for again.
  void DoubtPlace(uint32_t chunk) { places_.Forget(chunk); }
  // A request in this client's name.
  std::string RequestOf(MessageKind kind) const;
  // Whether the pool removes the keys whose items are lost.
  bool removes_lost() const { return removes_lost_; }
  // Memory servers that do not answer, as it seems.
  std::vector<uint32_t> suspects() {
    ForgetOldSuspicions();
    std::vector<uint32_t> servers;
    for (const auto& [server, until_ns] : suspects_) servers.push_back(server);
    return servers;
  }
  // Rises when memory servers come, go, or are drained, as the hash server tells with a lease: what
  // this client has leased may lie on too few of them.
  uint64_t places_version() const { return places_version_; }
  // The chunks that this client leases, as the hash server has told since this was asked last, with
  // a renewed lease. One that the client does not know of is of an answer that was lost.
  std::vector<uint32_t> TakeLeasedChunks() { return std::exchange(leased_chunks_, {}); }
  // For clients that only write: asks for that now and then.
  void LookAtPlaces();

  ClientStatistics& statistics() { return statistics_; }

 private:
  static constexpr uint64_t kSuspicionNs = 500'000'000;
  static constexpr uint64_t kHedgeNs = 3'000'000;
  static constexpr uint64_t kSlowNs = 100'000'000;
  static constexpr uint64_t kReadWaitNs = 50'000'000;
  static constexpr uint64_t kWaitNsMax = 5'000'000'000;
  static constexpr uint64_t kWriteWaitNs = 500'000'000;

  // What the present round has posted to one peer.
  struct Posted {
    rma::PeerId peer = 0;
    uint32_t memory_server = 0;  // 0: the hash server
    bool reads = false;
    uint64_t first_token = 0;  // of its posts, which have tokens that follow each other
    uint64_t end_token = 0;
    size_t posts = 0;  // under way, and not abandoned
  };
  struct Reply {
    bool has_come = false;
    bool is_good = false;
    std::string bytes;
  };

  rma::PeerId PeerOf(To to);
  rma::PeerId MemoryPeer(uint32_t server);
  // A connection that is made, waited for until then.
  template <typename Find>
  rma::PeerId Await(Find find, uint64_t until_ns);
  std::optional<std::string_view> Call(rma::PeerId peer, std::string_view request, ReplyCode* code);
  void Post(rma::PeerId peer, uint32_t memory_server, std::span<const rma::Operation> operations);
  void PollOnce();
  void TakeEvents(int timeout_ms);
  void Handle(const rma::Event& event);
  // Sees to it that the memory server knows whose this connection is, so that it can fence it:
  // before anything is written there. False: the server does not answer.
  bool Greet(uint32_t server);
  // Sees to it that it is this server, and no other one at its address, before it is read. False:
  // it is not, or does not answer. True also if there is no connection yet.
  bool Recognize(uint32_t server);
  bool SayHello(rma::PeerId peer, uint32_t server, uint32_t client, ReplyCode* code);
  bool AskToJoin();
  // Locate, where servers are suspected or the chunk is not known.
  Where FindPlace(uint32_t chunk, uint8_t gen, FramePlace* place);
  bool LearnPlaces(uint32_t chunk);
  // Of another version, what is known of places may be old.
  void TakePlacesVersion(uint64_t version);
  uint32_t ChooseFrame(const ChunkFrames& frames) const;
  void Suspect(uint32_t server, uint64_t for_ns = kSuspicionNs);
  void ForgetOldSuspicions();
  // How long Run waits for events before it looks at what is slow.
  int PatienceMs() const;
  // Gives up what has waited for too long, if others may answer: abandons it, or ends it with its
  // connection.
  void GiveUpSlow(uint64_t progress_ns);
  // Whether nothing has come over the connection since its reads were hedged kReadWaitNs ago.
  bool Hangs(rma::PeerId peer) const;
  // Abandons these reads. False: they cannot be.
  bool Hedge(Posted& posted);

  const std::unique_ptr<rma::Endpoint> endpoint_;
  Clock& clock_;
  PoolTimes times_;
  const MapSource source_;
  PoolMap map_;
  Dialer index_servers_;
  Dialer memory_servers_;
  // Memory servers that have told that they are those that they were taken for, and among them
  // those that know this client.
  std::set<rma::PeerId> recognized_;
  std::set<rma::PeerId> greeted_;
  ClientPlaces places_;
  bool removes_lost_ = false;
  uint64_t places_version_ = 0;
  std::vector<uint32_t> leased_chunks_;
  std::map<uint32_t, uint64_t> suspects_;  // until when each is left alone
  uint64_t hedge_wait_ns_ = kHedgeNs;
  std::map<rma::PeerId, uint64_t> hedged_ns_;  // since then nothing has come of a hedged one
  uint64_t read_wait_ns_ = kReadWaitNs;
  uint64_t write_wait_ns_ = kWriteWaitNs;
  uint64_t look_at_places_ns_ = 0;
  DigestKeys keys_;
  uint32_t client_ = 0;   // 0: none
  bool may_join_ = true;  // the hash server can log that a client has come, as far as is known
  uint64_t lease_until_ns_ = 0;
  uint64_t no_lease_until_ns_ = 0;  // none is asked for before: the server refused it a moment ago
  uint64_t deadline_ns_ = 0;
  uint64_t heard_ns_ = 0;
  rma::PeerId hash_peer_ = 0;  // the connection that lease, table and buckets are of
  uint64_t table_ = 1;
  uint64_t buckets_ = 1;

  uint64_t next_token_ = 1;
  uint64_t first_post_ = 0;  // posts of the present round have tokens from here on
  size_t posts_ = 0;         // of the present round that are under way
  bool post_failed_ = false;
  bool is_hedged_ = false;  // reads of the present round were abandoned
  std::vector<Posted> posted_;
  uint64_t call_token_ = 0;  // of the present call
  Reply reply_;
  ClientStatistics statistics_;
};

}  // namespace skep::pool
