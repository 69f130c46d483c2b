// coordinator.h: a coordination service, injected: a small tree of nodes that every process of a
// cluster sees, and sessions that say which processes live. The real one is ZooKeeper
// (zookeeper/zookeeper_coordinator.h), the simulated one is sim/sim_coordinator.h.
//
// Servers learn from it who is there (ephemeral nodes), and decide who has which role (versioned
// sets of one node). No data goes through it, and nothing on the data path waits for it: every
// request returns at once and is answered by an event, which its owner takes from an event loop.
//
//   auto session = coordinator.Open({.timeout_ms = 1000, .wake = [&] { poller->Wake(); }});
//   ... a turn of the loop:
//   for (CoordinatorEvent& event : (*session)->TakeEvents()) Handle(event);
//   ... once the event kConnected was taken:
//   (*session)->Set(kRoleToken, "/skep/a/pairs/0", bytes, version_read);
//
// A session
//   kConnecting ------> kConnected <-----> kDisconnected ------> kExpired
//
//   S1  A session that has ended never comes back: its ephemeral nodes are gone, its watches
//       never fire again, every later request is answered kNotSent. A process opens a new one.
//   S2  A session ends when its object is destroyed (at once if the service can be reached), or
//       when the service has not heard of its process for the time-out: the process was killed,
//       stopped or cut off.
//   S3  While a session is not connected, its process knows nothing: not whether the session lives,
//       nor what others do. kExpired is told only when the service is reached again, so a process
//       that is cut off for ever never hears of it. Whoever holds a role because of a session
//       counts from LastContactNs() and gives the role up by its own clock.
//   S4  LastContactNs() is an instant at which the session had certainly not ended: the one at
//       which the newest of those requests was made which a majority of the service has answered.
//       A majority answers Create, Set, Delete and Confirm. Get and Children do not count, nor do
//       the pings of a client library: a single server answers them, and one that is cut off from
//       the majority goes on answering for some time after the majority has ended the session.
//   So of two processes A and B: if A acts only before LastContactNs() + L by its clock, and B, who
//   has seen A's ephemeral node vanish, waits for L by its own before it acts, they never act at
//   the same time. A's last contact lies before the end of its session (S4), which lies before B
//   saw it. (Clocks of different rates: B waits for somewhat more than L.)
//
// Requests
//   R1  The requests of a session are done, and answered, in the order in which they were made; but
//       kRefused and kNotSent may overtake others.
//   R2  Every request has exactly one answer, with its token; only the destruction of the session
//       takes it away.
//   R3  Changes are linearizable. A read may return what was so some time ago, but never what is
//       older than anything the session was told before. A read that is made after a Confirm (it
//       need not wait for the answer) sees every change that was answered before the Confirm was
//       made.
//   R4  kUnknown: the connection was lost in between. The request was done, or will be before the
//       session's next kConnected, or never will be. What its owner does then, when it is
//       connected:
//         Set, Delete  Make the same request again: at most one of them can find the version that
//                      it expects. kDone: it is done now. kStale or kAbsent: somebody has changed
//                      the node, perhaps the first request; a Get, made after that answer, tells
//                      who, if the bytes tell their writer.
//         Create       Make it again. kExists: the owner that Get returns tells whether the node is
//                      one's own. Of a sequential one: Confirm, then Children, then Get of those
//                      that have the prefix: the one whose owner is this session was made.
//         reads        Ask again.
//       To read back only tells that a change was done. That it was not, and will not be, is told
//       by a Get that is made after a Confirm after the next kConnected.
//
// Watches
//   W1  Get and Children with kWatch leave a watch if they are answered kDone. It fires once: an
//       event kChanged with the token of the read, when what was read may be out of date (the
//       node's bytes or its end; the set of children, or the end of their parent). Read and watch
//       are one step, so whoever reads again with kWatch after each kChanged misses no last change,
//       though it may miss those in between.
//   W2  kChanged is taken before the answer of any read of the session that shows the change.
//   W3  Watches outlive a lost connection: one whose node was changed meanwhile fires after
//       kConnected. They end with the session, silently.
//   W4  A read that is answered kAbsent leaves no watch: watch the children of the parent.
//
// Nodes. A path is "/" or names that each follow a "/" (IsCoordinatorPath). Everything beside the
// root has a parent, which is not ephemeral. A node's version begins at 0 and grows by one with
// each Set; a node that is deleted and made again begins at 0 again, so nodes whose versions decide
// something are not deleted. The subtree "/zookeeper" belongs to ZooKeeper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skep/status.h"

namespace skep {

// The bytes of a node are at most so many: a node says who and where, it holds no data.
inline constexpr size_t kCoordinatorBytesMax = 64 * 1024;

enum class CoordinatorNode : uint8_t {
  kPersistent,
  kEphemeral,            // deleted when the session that created it ends
  kEphemeralSequential,  // the same; its name gets ten digits appended, greater than before
};

enum class CoordinatorWatch : uint8_t { kNone, kWatch };

enum class CoordinatorOutcome : uint8_t {
  kDone,
  kAbsent,    // there is no such node; of Create: no such parent
  kExists,    // Create: there is one already
  kStale,     // Set, Delete: the node has another version
  kNotEmpty,  // Delete: the node has children
  kRefused,   // will be refused again: the path, the size, a child of an ephemeral node, rights
  kNotSent,   // not done: the session was not connected
  kUnknown,   // R4
};

struct CoordinatorRequest {
  enum class Kind : uint8_t { kCreate, kGet, kSet, kDelete, kChildren, kConfirm };

  // Whether a majority of the service answers it (S4).
  bool is_confirming() const { return kind != Kind::kGet && kind != Kind::kChildren; }

  Kind kind = Kind::kConfirm;
  uint64_t token = 0;
  std::string path = {};
  std::string bytes = {};                               // kCreate, kSet
  CoordinatorNode node = CoordinatorNode::kPersistent;  // kCreate
  int32_t version = 0;                                  // kSet, kDelete
  bool watch = false;                                   // kGet, kChildren
};

struct CoordinatorEvent {
  enum class Kind : uint8_t {
    kConnected,     // for the first time, or again
    kDisconnected,  // S3
    kExpired,       // the last event but for answers
    kAnswer,
    kChanged,  // W1
  };

  Kind kind = Kind::kAnswer;
  // When the process noticed: kConnected, kDisconnected, kExpired.
  uint64_t at_ns = 0;
  // Of the request: kAnswer, kChanged.
  uint64_t token = 0;
  CoordinatorOutcome outcome = CoordinatorOutcome::kDone;  // kAnswer
  // The rest belongs to an answer kDone.
  std::string path = {};                   // Create: of the node, with its number
  std::string bytes = {};                  // Get
  int32_t version = 0;                     // Get; Set: the new one
  uint64_t owner = 0;                      // Get: the session whose end deletes it; 0: none does
  std::vector<std::string> children = {};  // Children: names, in their order
};

// Thread safety: one owner.
class CoordinatorSession {
 public:
  enum class State : uint8_t { kConnecting, kConnected, kDisconnected, kExpired };

  CoordinatorSession(const CoordinatorSession&) = delete;
  CoordinatorSession& operator=(const CoordinatorSession&) = delete;
  // Ends the session (S2). May take some seconds if the service does not take what is sent to it.
  virtual ~CoordinatorSession() = default;

  // Each returns at once; the answer is an event with the token.
  void Create(uint64_t token, std::string_view path, std::string_view bytes, CoordinatorNode node);
  void Get(uint64_t token, std::string_view path, CoordinatorWatch watch);
  void Set(uint64_t token, std::string_view path, std::string_view bytes, int32_t version);
  void Delete(uint64_t token, std::string_view path, int32_t version);
  void Children(uint64_t token, std::string_view path, CoordinatorWatch watch);
  // Asks a majority of the service whether the session lives (S4), and lets later reads see what
  // was so when it was made (R3).
  void Confirm(uint64_t token);

  // What has happened since the last call, in its order.
  std::vector<CoordinatorEvent> TakeEvents();

  // As the events taken so far have it, and since when.
  State state() const { return state_; }
  uint64_t state_since_ns() const { return state_since_ns_; }
  // S4; 0: no request was confirmed yet. As of now, whatever events were taken.
  virtual uint64_t LastContactNs() const = 0;
  // Names the session: CoordinatorEvent::owner. 0: it has not been connected yet.
  virtual uint64_t id() const = 0;
  // The time-out that the service has granted, which may be more or less than what was asked for.
  // Known once the session was connected.
  virtual uint32_t timeout_ms() const = 0;

 protected:
  explicit CoordinatorSession(std::function<void()> wake) : wake_(std::move(wake)) {}
  // There is something to take. Any thread may call it.
  void Wake() const {
    if (wake_) wake_();
  }
  // Answers a request that was not sent.
  void AnswerUnsent(uint64_t token, CoordinatorOutcome outcome);

 private:
  // The arguments are right. Answers by an event, or by AnswerUnsent.
  virtual void Send(CoordinatorRequest request) = 0;
  virtual std::vector<CoordinatorEvent> Receive() = 0;

  void SendChecked(CoordinatorRequest request);
  void FollowState(const CoordinatorEvent& event);

  const std::function<void()> wake_;
  State state_ = State::kConnecting;
  uint64_t state_since_ns_ = 0;
  std::vector<CoordinatorEvent> unsent_;  // the answers to requests that were not sent
};

struct CoordinatorSessionOptions {
  // How long the service waits for a sign of life.
  uint32_t timeout_ms = 1000;
  // TakeEvents has something to return. Called from any thread, also from within a request; it must
  // neither block nor call the session. Spurious calls happen.
  std::function<void()> wake = {};
};

// Thread safety: one owner. Outlives its sessions.
class Coordinator {
 public:
  virtual ~Coordinator() = default;
  // A session that is being connected; it goes on trying for as long as it exists.
  //   kInvalidArgument  the service's address cannot be understood
  //   kIo               the errno: names that cannot be resolved, threads that cannot be started
  virtual Result<std::unique_ptr<CoordinatorSession>> Open(
      const CoordinatorSessionOptions& options) = 0;
};

inline constexpr size_t kCoordinatorPathBytesMax = 1024;

// "/" or "/name/name" of at most so many bytes: names are printable ASCII without spaces, not
// empty, not "." and not "..".
bool IsCoordinatorPath(std::string_view path);

// What a table or a message calls it.
std::string_view NameOf(CoordinatorOutcome outcome);

}  // namespace skep
