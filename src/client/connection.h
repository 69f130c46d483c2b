// connection.h: one connection to a server, on which many threads have messages under way.
//
//   caller   Begin: takes an id, queues the message, sends what server and socket take
//            Await: until it is known what became of it
//
// There is no thread behind it. Of the callers that wait, one is the leader: it waits for the
// socket, reads, and hands each reply to who waits for it; when it has its own it leaves and makes
// another one the leader. Who has begun something and does not wait yet costs nothing; its reply
// stays where it is until somebody reads.
//
// Three answers. A message ends in one of these ways, and each says what is true:
//   done       status is ok and `reply` says what became of each operation
//   not done   any other code than kUnavailable; or kUnavailable with kNothingSent as its detail
//   not known  kUnavailable: it was sent, and no answer tells what became of it
// A message that only reads (may_repeat) changes nothing, so that of it only the first matters.
//
// A connection that breaks is made again by the leader (or by the next who waits), after pauses
// that double. Then every message that was not answered is sent again if that is right: it only
// reads, or the server remembers it and is the same one (ServerHello::instance); the others end as
// not known. Messages that name a snapshot of the broken connection end with kSnapshotTooOld. A
// server that refuses the client (password, version) is asked again after the pause; what waits or
// comes before ends at once with what it said.
//
// Names. The server knows a connection by its client id, and messages by theirs, which rise. They
// begin where the server says that they are new to it. Before they end the connection takes another
// client id, which it can only while nothing is under way: so it is done early if there is such a
// moment, and at the end Begin waits for one. If a server has no new message ids for any of
// kClientsMax client ids, the connection goes on without one: the server then remembers nothing of
// it, so that what was sent when it breaks is not sent again. The next connection has a client id.
//
// The queue. What is begun is sent in the order of ids, and only while
//   Q1  less than kUnsentMax bytes wait for the socket;
//   Q2  of a write that the server is to remember: write_window.h has room for it.
// The rest is queued, whoever leads; Begin returns when its message has left the queue, unless
// there is no connection.
//
// Time. Every message ends ConnectOptions::timeout_ms after its Begin at the latest, whatever is
// coming meanwhile. That alone does not break the connection: a reply that comes later is passed
// over (what it opened on the server is closed). A connection is of no use once a message has ended
// so and no whole reply has come for timeout_ms; after half of that the server is asked for a sign
// (a ping), so that one slow operation is not taken for a dead connection.
//
// Memory. A call throws std::bad_alloc only from Begin, of which nothing is then under way. Where
// the leader finds no memory, the connection counts as broken. There is no memory for a reply: its
// message ends, the others go on.
//
// With ConnectOptions::datagrams, a message that is small, may be sent again and names no snapshot
// leaves as a datagram. Has no reply come after kAnswerMs, it leaves again, under the same id, and
// after kTriesMax times on the stream; so does one whose reply does not fit into a datagram. If
// none has a reply for kSilentMax messages, datagrams do not get through, and all go on the stream.
//
// Thread-safe. Locks: mutex_ guards everything; nobody waits for the network while holding it. Of
// stream and poller the leader alone waits and reads, and it alone connects; sending never waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/network.h"
#include "client/write_window.h"
#include "skep/client.h"
#include "skep/status.h"
#include "wire/packed.h"

namespace skep::client {

inline constexpr Status kSnapshotGone(Code::kSnapshotTooOld,
                                      "the connection of the snapshot broke");
inline constexpr Status kNoAnswer(Code::kUnavailable, "no answer in time");
// Of a reply that nobody can read, or that there is no memory for: if the message only read, and if
// it may have written.
inline constexpr Status kMalformed(Code::kCorrupt, "the reply is malformed");
inline constexpr Status kMalformedOfWrite(
    Code::kUnavailable, "the reply is malformed: whether it was done is not known");
inline constexpr Status kNoMemory(Code::kOutOfMemory, "the process has no memory for the reply");
inline constexpr Status kNoMemoryOfWrite(
    Code::kUnavailable, "no memory for the reply: whether it was done is not known");

// A message under way. Its owner keeps it until Await has returned, or Abandon.
struct Message {
  std::string bytes;        // with its header, of which Begin fills in the id
  bool may_repeat = false;  // it only reads, or asks for the same again
  bool remembered = false;  // kRemember
  // Of the connection that it depends on; 0: any. Then that of the one its reply came on.
  uint32_t generation = 0;

  // Of the connection.
  bool done = false;
  bool waits = false;        // somebody sleeps for it
  bool sent_before = false;  // some of it may have reached a server
  uint64_t instance = 0;     // of the server it was sent to first
  uint64_t place = 0;        // in the window of writes; 0: none
  uint64_t deadline_ms = 0;
  uint32_t tries = 0;             // how often it was sent as a datagram; 0: it is on the stream
  Status status = {};             // ok: `reply` is there
  packed::Header header = {};     // of the reply
  std::unique_ptr<char[]> reply;  // its payload, header.payload_bytes
  ConditionVariable changed;

  std::string_view payload() const { return {reply.get(), header.payload_bytes}; }
  // Whether the server may have changed something because of it.
  bool may_be_done() const { return sent_before && !may_repeat; }
};

class Connection {
 public:
  // Client ids that a server is asked for message ids for, before the connection has none.
  static constexpr int kClientsMax = 4;

  // Connects with the first message. `client`: a client id that nobody else has, not 0.
  Connection(const ConnectOptions& options, Network& network, Clock& clock,
             uint64_t client = NewClientId());
  ~Connection();

  // Connects now. Before any other thread knows of it.
  //   kUnavailable      there is no server, it is none of Skep's, or it does not answer within
  //                     options.timeout_ms
  //   kInvalidArgument  the address, or the password
  //   kNotSupported     the server speaks none of the versions known here
  Status Connect();

  static uint64_t NewClientId();

  // The message is under way. Returns when it was handed to the socket, or has ended, or at once
  // if there is no connection: within options.timeout_ms.
  void Begin(Message& message);
  // Returns when message.status is known: that of the message as a whole, see "Three answers".
  //   kUnavailable     not done, or not known
  //   kSnapshotTooOld  see above
  //   kCorrupt         what came is no reply; of messages that only read
  //   kOutOfMemory     the process has no memory for the reply; of messages that only read
  //   any other        the server's, of the message
  Status Await(Message& message);
  // Nobody waits for the reply any more.
  void Abandon(Message& message);

  // What the server has said at the beginning of the current connection, or of the last one.
  packed::ServerHello hello() const;
  // Of the current connection: rises each time.
  uint32_t generation() const;

 private:
  enum class Way : uint8_t { kStream, kDatagram };  // that a reply came

  // A connection that was made and has said hello.
  struct Link {
    std::unique_ptr<Stream> stream;
    packed::ServerHello hello;
  };
  // The reply of which not everything has come yet.
  struct Incoming {
    packed::Header header;
    size_t bytes = 0;                 // that have come
    std::unique_ptr<char[]> payload;  // null: nobody wants it
    size_t left() const { return header.payload_bytes - bytes; }
  };

  bool IsConnected() const SKEP_REQUIRES(mutex_) { return stream_ != nullptr; }

  // Connecting.
  Status ConnectOnce(uint64_t until_ms) SKEP_REQUIRES(mutex_);
  Result<Link> MakeLink(uint64_t client, uint64_t until_ms) const;
  Status Handshake(uint64_t client, Stream& stream, Poller& poller, uint64_t until_ms,
                   packed::ServerHello* hello) const;
  Status Exchange(Stream& stream, Poller& poller, std::string_view bytes, size_t reply_bytes,
                  uint64_t until_ms, std::string* reply) const;
  int PatienceMs(uint64_t until_ms) const;
  void Reconnect() SKEP_REQUIRES(mutex_);
  void Break() SKEP_REQUIRES(mutex_);
  void RefuseAll(const Status& why) SKEP_REQUIRES(mutex_);

  // Names.
  void GiveId(Message& message) SKEP_REQUIRES(mutex_);
  void Rename(std::map<uint32_t, Message*>::node_type named) SKEP_REQUIRES(mutex_);
  bool TakeNewIds() SKEP_REQUIRES(mutex_);
  void TakeNewClient() SKEP_REQUIRES(mutex_);
  void RenewClient() SKEP_REQUIRES(mutex_);

  // Sending.
  bool IsQueued(const Message& message) const SKEP_REQUIRES(mutex_);
  void Flush() SKEP_REQUIRES(mutex_);
  bool Dispatch(Message& message) SKEP_REQUIRES(mutex_);
  void SendPing() SKEP_REQUIRES(mutex_);
  size_t unsent() const SKEP_REQUIRES(mutex_) { return out_.size() - out_begin_; }
  void Append(std::string_view bytes) noexcept SKEP_REQUIRES(mutex_);
  void Write() SKEP_REQUIRES(mutex_);

  // Waiting.
  template <class IsOver>
  void WaitFor(Message& message, IsOver is_over) SKEP_REQUIRES(mutex_);
  template <class IsOver>
  void Lead(IsOver is_over) SKEP_REQUIRES(mutex_);
  void Turn() SKEP_REQUIRES(mutex_);
  void PromoteAnother() SKEP_REQUIRES(mutex_);
  void EndOverdue() SKEP_REQUIRES(mutex_);
  void NoticeEnd(uint64_t now_ms) SKEP_REQUIRES(mutex_);
  uint64_t NextDeadlineMs() const SKEP_REQUIRES(mutex_);
  uint64_t NextEventMs() const SKEP_REQUIRES(mutex_);

  // Receiving.
  bool TakeReplies() SKEP_REQUIRES(mutex_);
  bool TakeAll(std::string_view received) SKEP_REQUIRES(mutex_);
  bool BeginReply(const packed::Header& header) SKEP_REQUIRES(mutex_);
  void TakePayload(std::string_view& received) SKEP_REQUIRES(mutex_);
  void EndReply() SKEP_REQUIRES(mutex_);
  void Deliver(const packed::Header& header, std::unique_ptr<char[]> payload, Way way)
      SKEP_REQUIRES(mutex_);
  void CloseUnwanted(const packed::Header& header, std::string_view payload) SKEP_REQUIRES(mutex_);
  void End(Message& message, Status status) SKEP_REQUIRES(mutex_);
  void Forget(Message& message) SKEP_REQUIRES(mutex_);

  // Datagrams.
  void OpenDatagrams() SKEP_REQUIRES(mutex_);
  void CloseDatagrams() SKEP_REQUIRES(mutex_);
  bool FitsDatagram(const Message& message) const SKEP_REQUIRES(mutex_);
  void SendDatagram(Message& message, uint64_t now_ms) SKEP_REQUIRES(mutex_);
  void SendDue(uint64_t now_ms) SKEP_REQUIRES(mutex_);
  void TakeDatagrams() SKEP_REQUIRES(mutex_);
  void TakeDatagram(std::string_view bytes) SKEP_REQUIRES(mutex_);

  const ConnectOptions options_;
  Network& network_;
  Clock& clock_;

  mutable Mutex mutex_;
  std::unique_ptr<Stream> stream_ SKEP_GUARDED_BY(mutex_);  // null: not connected
  std::unique_ptr<Poller> poller_;
  uint64_t client_ SKEP_GUARDED_BY(mutex_);  // 0: the connection has no client id
  bool has_leader_ SKEP_GUARDED_BY(mutex_) = false;
  ConditionVariable leaderless_;                 // has_leader_ has become false
  size_t sleepers_ SKEP_GUARDED_BY(mutex_) = 0;  // messages for which somebody sleeps
  uint32_t generation_ SKEP_GUARDED_BY(mutex_) = 0;
  uint32_t last_id_ SKEP_GUARDED_BY(mutex_) = 0;
  packed::ServerHello hello_ SKEP_GUARDED_BY(mutex_) = {};
  std::map<uint32_t, Message*> under_way_ SKEP_GUARDED_BY(mutex_);  // by id, and so by deadline
  uint64_t first_queued_ SKEP_GUARDED_BY(mutex_) = 0;  // messages from this id on are not sent
  WriteWindow window_ SKEP_GUARDED_BY(mutex_);
  std::string out_ SKEP_GUARDED_BY(mutex_);  // not sent yet
  size_t out_begin_ SKEP_GUARDED_BY(mutex_) = 0;
  bool wants_write_ SKEP_GUARDED_BY(mutex_) = false;  // what the poller was told
  const std::unique_ptr<char[]> read_buffer_;
  size_t kept_ SKEP_GUARDED_BY(mutex_) = 0;  // bytes of it: the beginning of a header
  Incoming incoming_ SKEP_GUARDED_BY(mutex_);
  bool has_incoming_ SKEP_GUARDED_BY(mutex_) = false;
  uint64_t last_active_ms_ SKEP_GUARDED_BY(mutex_) = 0;  // something was begun, or has come
  uint64_t heard_ms_ SKEP_GUARDED_BY(mutex_) =
      0;  // a whole reply has come on the stream, or it was made
  bool asked_for_sign_ SKEP_GUARDED_BY(mutex_) = false;  // since then
  uint64_t pause_ms_ SKEP_GUARDED_BY(mutex_) = 0;        // before the next attempt to connect
  uint64_t next_attempt_ms_ SKEP_GUARDED_BY(mutex_) = 0;
  Status refused_ SKEP_GUARDED_BY(mutex_) = {};  // what the server said to the last attempt
  std::unique_ptr<DatagramSocket> datagrams_
      SKEP_GUARDED_BY(mutex_);                    // null: everything goes on the stream
  std::string datagram_ SKEP_GUARDED_BY(mutex_);  // what leaves, with its head
  struct Due {
    uint64_t when_ms;
    uint32_t id;
  };
  uint32_t silent_ SKEP_GUARDED_BY(mutex_) =
      0;  // messages that got no reply to a datagram, since one did
  std::deque<Due> due_
      SKEP_GUARDED_BY(mutex_);  // datagrams, by when they are to be sent again if there is no reply
};

}  // namespace skep::client
