// connection.h: one connection to a server, on which many threads have messages under way.
//
//   caller   Begin: takes an id, appends the message, sends what the socket takes
//            Await: until the reply is there
//
// There is no thread behind it. Of the callers that wait, one is the leader: it waits for the
// socket, reads, and hands each reply to who waits for it; when it has its own it leaves and makes
// another one the leader. Who has begun something and does not wait yet costs nothing; its reply
// stays where it is until somebody reads.
//
// A connection that breaks is made again by the leader (or by the next Begin), after pauses that
// double. Then every message that was not answered is sent again if that is right: it only reads,
// or the server remembers it and is the same one (ServerHello::instance); the others end with
// kUnavailable. Messages that name a snapshot of the broken connection end with kSnapshotTooOld.
//
// The server knows a connection by its client id, and messages by theirs, which rise. They begin
// where the server says that they are new to it. Before they end the connection takes another
// client id, which it can only while nothing is under way: so it is done early if there is such a
// moment, and at the end Begin waits for one.
//
// With ConnectOptions::datagrams, a message that is small, may be sent again and names no snapshot
// leaves as a datagram. Has no reply come after kAnswerMs, it leaves again, under the same id, and
// after kTriesMax times on the stream; so does one whose reply does not fit into a datagram. If
// none has a reply for kSilentMax messages, datagrams do not get through, and all go on the stream.
//
// Thread-safe. Locks: mutex_ guards everything; nobody waits for the network while holding it. Of
// stream and poller the leader alone waits and reads, and it alone connects; sending never waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/network.h"
#include "skep/client.h"
#include "skep/status.h"
#include "wire/packed.h"

namespace skep::client {

inline constexpr Status kSnapshotGone(Code::kSnapshotTooOld,
                                      "the connection of the snapshot broke");

// A message under way. Its owner keeps it until Await has returned, or Abandon.
struct Message {
  std::string bytes;        // with its header, of which Begin fills in the id
  bool may_repeat = false;  // it only reads, or asks for the same again
  bool remembered = false;  // kRemember
  // Of the connection that it depends on; 0: any. Then that of the one its reply came on.
  uint32_t generation = 0;

  // Of the connection.
  bool done = false;
  bool waits = false;        // somebody sleeps in Await for it
  bool sent_before = false;  // some of it may have reached a server
  uint64_t instance = 0;     // of the server it was sent to first
  uint64_t deadline_ms = 0;
  uint32_t tries = 0;             // how often it was sent as a datagram; 0: it is on the stream
  Status status = {};             // ok: `reply` is there
  packed::Header header = {};     // of the reply
  std::unique_ptr<char[]> reply;  // its payload, header.payload_bytes
  std::condition_variable changed;

  std::string_view payload() const { return {reply.get(), header.payload_bytes}; }
};

class Connection {
 public:
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

  // Sends the message, or as much of it as can be; it is under way in any case. Waits while too
  // much is, and when message ids end.
  void Begin(Message& message);
  // Returns when message.status is known: that of the message as a whole.
  //   kUnavailable, kSnapshotTooOld  see above, and options.timeout_ms
  //   kCorrupt                       what came is no reply
  //   any other                      the server's, of the message
  Status Await(Message& message);
  // Nobody waits for the reply any more.
  void Abandon(Message& message);

  // What the server has said at the beginning of the current connection, or of the last one.
  packed::ServerHello hello() const;
  // Of the current connection: rises each time.
  uint32_t generation() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class Way : uint8_t { kStream, kDatagram };  // that a reply came

  // A connection that was made and has said hello.
  struct Link {
    std::unique_ptr<Stream> stream;
    packed::ServerHello hello;
  };

  bool IsConnected() const { return stream_ != nullptr; }
  bool IsFull() const;
  void GiveId(Message& message);
  void RenewClient(Lock& lock);
  void TakeNewClient();
  Status TakeNewIds();
  Status ConnectOnce(Lock& lock, uint64_t until_ms);
  Result<Link> MakeLink(uint64_t until_ms) const;
  Status Handshake(Stream& stream, Poller& poller, uint64_t until_ms,
                   packed::ServerHello* hello) const;
  Status Exchange(Stream& stream, Poller& poller, std::string_view bytes, size_t reply_bytes,
                  uint64_t until_ms, std::string* reply) const;
  int PatienceMs(uint64_t until_ms) const;
  void Reconnect(Lock& lock);
  void SendAgain();
  void Break(const Status& why);
  void Send();
  void Lead(Lock& lock, Message& message);
  void LeadOnce(Lock& lock);
  void Turn(Lock& lock);
  void PromoteAnother();
  void EndOverdue();
  void NoticeEnd(uint64_t now_ms);
  uint64_t NextDeadlineMs() const;
  uint64_t NextEventMs() const;
  bool TakeReplies();
  bool DeliverAll(std::string_view received);
  void Deliver(const packed::Header& header, std::unique_ptr<char[]> payload, Way way);
  void End(Message& message, const Status& status);
  void OpenDatagrams();
  void CloseDatagrams();
  bool FitsDatagram(const Message& message) const;
  void SendDatagram(Message& message, uint64_t now_ms);
  void SendDue(uint64_t now_ms);
  void TakeDatagrams();

  const ConnectOptions options_;
  Network& network_;
  Clock& clock_;

  mutable std::mutex mutex_;
  std::unique_ptr<Stream> stream_;  // null: not connected
  std::unique_ptr<Poller> poller_;
  uint64_t client_;
  bool has_leader_ = false;
  std::condition_variable leaderless_;  // has_leader_ has become false
  uint32_t generation_ = 0;
  uint32_t last_id_ = 0;
  packed::ServerHello hello_ = {};
  Status refused_ = {};  // why there will be no connection: not to be tried again
  std::string out_;      // not sent yet
  size_t out_begin_ = 0;
  bool wants_write_ = false;  // what the poller was told
  const std::unique_ptr<char[]> read_buffer_;
  size_t kept_ = 0;  // bytes of it: the beginning of a header
  // The reply of which not everything has come yet; null: none.
  std::unique_ptr<char[]> incoming_;
  packed::Header incoming_header_;
  size_t incoming_bytes_ = 0;
  uint64_t last_active_ms_ = 0;                // something was begun, or has come
  std::map<uint32_t, Message*> under_way_;     // by id, and so by deadline
  std::unique_ptr<DatagramSocket> datagrams_;  // null: everything goes on the stream
  std::string datagram_;                       // what leaves, with its head
  struct Due {
    uint64_t when_ms;
    uint32_t id;
  };
  uint32_t silent_ = 0;    // messages that got no reply to a datagram, since one did
  std::deque<Due> due_;    // datagrams, by when they are to be sent again if there is no reply
  uint64_t pause_ms_ = 0;  // before the next attempt to connect
  uint64_t next_attempt_ms_ = 0;
};

}  // namespace skep::client
