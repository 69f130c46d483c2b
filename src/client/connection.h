// connection.h: one connection to a server, on which many threads have messages under way.
//
//   caller   Begin: takes an id, queues the message, sends as much as server and socket take
//            Await: waits until the message has one of the three answers below
//
// There is no thread behind it. Of the callers that wait, one is the leader: it waits for the
// socket, reads, and hands each reply to the caller that waits for it; when it has its own reply it
// leaves and makes another caller the leader. A message that was begun and that nobody waits for
// yet costs nothing; its reply stays unread until somebody reads.
//
// Three answers. A message ends in one of these ways, and each says what is true:
//   done       status is ok and `reply` has the outcome of each operation
//   not done   any other code than kUnavailable; or kUnavailable with kNothingSent as its detail
//   not known  kUnavailable: the message was sent, and no answer tells whether it was done
// A message that only reads (may_repeat) changes nothing, so for it only the first matters.
//
// A connection that breaks is made again by the leader (or by the next caller that waits), after
// pauses that double. Then every message that was not answered is sent again if that is right: it
// only reads, or the server remembers it and is the same one (ServerHello::instance); the others
// end as not known. Messages that name a snapshot of the broken connection end with
// kSnapshotTooOld. A server that refuses the client (password, version) is asked again after the
// pause; messages that wait or are begun before that end at once with its refusal.
//
// Names. The server knows a connection by its client id, and messages by theirs, which rise,
// beginning with the first id that the server says is new to it. Before message ids run out the
// connection takes another client id, which is only possible while nothing is under way: so it is
// done early if there is such a moment, and at the end Begin waits for one. If a server has no new
// message ids for any of kClientsMax client ids, the connection goes on without one: the server
// then remembers nothing of it, so messages that are sent when it breaks are not sent again. The
// next connection has a client id.
//
// The queue. Messages are sent in the order of ids, and only while
//   Q1  less than kUnsentMax bytes wait for the socket;
//   Q2  write_window.h has room, for a write that the server is to remember.
// The others are queued, whoever leads; Begin returns when its message has left the queue, unless
// there is no connection.
//
// Time. Every message ends ConnectOptions::timeout_ms after its Begin at the latest, even if its
// reply has begun to come. That alone does not break the connection: a later reply is skipped (and
// a snapshot or watch that it opened on the server is closed). A connection is given up once a
// message has ended like that and no whole reply has come for timeout_ms; after half of that time a
// ping is sent to the server, so that one slow operation is not taken for a dead connection.
//
// Memory. Only Begin throws std::bad_alloc, and its message is then not under way. If the leader
// finds no memory, the connection counts as broken. If there is no memory for a reply, its message
// ends, the others go on.
//
// With ConnectOptions::datagrams, a message that is small, may be sent again and names no snapshot
// is sent as a datagram. If no reply has come after kAnswerMs, it is sent again, under the same id,
// and after kTriesMax times on the stream; so is one whose reply does not fit into a datagram. If
// no datagram of kSilentMax messages has a reply, datagrams do not get through, and all messages go
// on the stream.
//
// Thread-safe. Locks: mutex_ guards everything; no thread waits for the network while holding it.
// Only the leader waits for stream and poller, reads, and connects; sending never waits.
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
// The status of a message whose reply is malformed, or for which there is no memory: of one that
// only reads, and of one that may have written.
inline constexpr Status kMalformed(Code::kCorrupt, "the reply is malformed");
inline constexpr Status kMalformedOfWrite(
    Code::kUnavailable, "the reply is malformed: whether it was done is not known");
inline constexpr Status kNoMemory(Code::kOutOfMemory, "the process has no memory for the reply");
inline constexpr Status kNoMemoryOfWrite(
    Code::kUnavailable, "no memory for the reply: whether it was done is not known");

// A message under way. Its owner keeps it until Await has returned, or Abandon.
struct Message {
  std::string bytes;        // with its header, in which Begin sets the id
  bool may_repeat = false;  // it only reads, or asks for the same again
  bool remembered = false;  // kRemember
  // The generation of the connection that it depends on; 0: any. Then that of its reply's
  // connection.
  uint32_t generation = 0;

  // Fields of the connection.
  bool done = false;
  bool waits = false;        // a thread sleeps for it
  bool sent_before = false;  // some of it may have reached a server
  uint64_t instance = 0;     // the server it was sent to first
  uint64_t place = 0;        // in the window of writes; 0: none
  uint64_t deadline_ms = 0;
  uint32_t tries = 0;             // how often it was sent as a datagram; 0: it is on the stream
  Status status = {};             // ok: `reply` is there
  packed::Header header = {};     // of the reply
  std::unique_ptr<char[]> reply;  // its payload, header.payload_bytes
  ConditionVariable changed;

  std::string_view payload() const { return {reply.get(), header.payload_bytes}; }
  // Whether the server may have changed something because of the message.
  bool may_be_done() const { return sent_before && !may_repeat; }
};

// It has 54 methods: connecting, sending and receiving are steps of one protocol, which go from one
// to another under one mutex, on the same messages and the same stream.
class Connection {
 public:
  // The most client ids for which a server is asked for message ids, before the connection has
  // none.
  static constexpr int kClientsMax = 4;

  // Connects with the first message. `client`: a client id that no other client has, not 0.
  Connection(const ConnectOptions& options, Network& network, Clock& clock,
             uint64_t client = NewClientId());
  ~Connection();

  // Connects now. Called before any other thread knows of the connection.
  //   kUnavailable      there is no server, it is none of Skep's, or it does not answer within
  //                     options.timeout_ms
  //   kInvalidArgument  the address, or the password
  //   kNotSupported     the server speaks none of the versions known here
  Status Connect();

  static uint64_t NewClientId();

  // Puts the message under way. Returns when it was handed to the socket, or has ended, or at once
  // if there is no connection: within options.timeout_ms.
  void Begin(Message& message);
  // Returns message.status once it is known: that of the message as a whole, see "Three answers".
  //   kUnavailable     not done, or not known
  //   kSnapshotTooOld  the message names a snapshot of a connection that broke
  //   kCorrupt         the reply is malformed; of messages that only read
  //   kOutOfMemory     the process has no memory for the reply; of messages that only read
  //   any other        the server's, of the message
  Status Await(Message& message);
  // Whether Await would return at once. Reads nothing, so the reply must be read by another caller.
  bool HasEnded(const Message& message) const;
  // Gives the message up: nobody waits for its reply any more.
  void Abandon(Message& message);

  // The hello of the server of the current connection, or of the last one.
  packed::ServerHello hello() const;
  // Number of the current connection: rises with each.
  uint32_t generation() const;

 private:
  enum class Way : uint8_t { kStream, kDatagram };  // how a reply came

  // A connection after the exchange of hellos.
  struct Link {
    std::unique_ptr<Stream> stream;
    packed::ServerHello hello;
  };
  // A reply of which only a part has come.
  struct Incoming {
    packed::Header header;
    size_t bytes = 0;                 // bytes that have come
    std::unique_ptr<char[]> payload;  // null: nobody wants the reply
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
  ConditionVariable leaderless_;                 // signalled when has_leader_ becomes false
  size_t sleepers_ SKEP_GUARDED_BY(mutex_) = 0;  // messages for which a thread sleeps
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
  size_t kept_ SKEP_GUARDED_BY(mutex_) = 0;  // bytes in it: the beginning of a header
  Incoming incoming_ SKEP_GUARDED_BY(mutex_);
  bool has_incoming_ SKEP_GUARDED_BY(mutex_) = false;
  uint64_t last_active_ms_ SKEP_GUARDED_BY(mutex_) = 0;  // when something was begun, or came, last
  // When a whole reply last came on the stream, or the stream was made.
  uint64_t heard_ms_ SKEP_GUARDED_BY(mutex_) = 0;
  bool asked_for_sign_ SKEP_GUARDED_BY(mutex_) = false;  // a ping was sent since heard_ms_
  uint64_t pause_ms_ SKEP_GUARDED_BY(mutex_) = 0;        // before the next attempt to connect
  uint64_t next_attempt_ms_ SKEP_GUARDED_BY(mutex_) = 0;
  Status refused_ SKEP_GUARDED_BY(mutex_) = {};  // what the server said to the last attempt
  std::unique_ptr<DatagramSocket> datagrams_ SKEP_GUARDED_BY(mutex_);  // null: only the stream
  std::string datagram_ SKEP_GUARDED_BY(mutex_);  // buffer of the datagram to send
  struct Due {
    uint64_t when_ms;
    uint32_t id;
  };
  // Messages whose datagram got no reply, since the last one that did.
  uint32_t silent_ SKEP_GUARDED_BY(mutex_) = 0;
  // Datagrams without a reply, in the order in which they are to be sent again.
  std::deque<Due> due_ SKEP_GUARDED_BY(mutex_);
};

}  // namespace skep::client
