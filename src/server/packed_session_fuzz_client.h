// packed_session_fuzz_client.h: a client of packed_session_fuzz.cc: one that outlives its
// connections, and sends again on the next what was not answered on the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "packed_session_fuzz_world.h"
#include "skep/batch.h"
#include "wire/packed.h"

namespace skep::packed_session_fuzz {

// What the answers of a batch depend on and what it changes, as far as that is to be known to say
// whether they are determined while another one is under way.
struct Touches {
  bool everything = false;  // any key
  bool writes = false;
  bool reads_released = false;  // atomic, and only reads: it may miss what is not answered yet
  std::set<std::string_view> keys;

  bool nothing() const { return !everything && keys.empty(); }
};

// A message, and what must become of it.
struct Message {
  explicit Message(Batch::Kind kind = Batch::Kind::kUnordered) : batch(kind) {}

  size_t client = 0;
  packed::Header header;
  std::string bytes;  // all of it
  Batch batch;        // of kBatch and kAtomic
  Batch original;     // whose bytes it views, unless its own
  Touches touches;
  uint64_t snapshot = 0;       // it reads at: the number
  bool names_handles = false;  // ends with its connection: a snapshot, a watch
  Code refusal = Code::kOk;    // of the message as a whole
  bool is_repeat = false;      // it is sent once more
  std::function<void(std::string_view payload)>
      take;           // of the other kinds: what to do with a reply
  std::string reply;  // with its header; empty: none yet
  uint64_t end = 0;   // of its bytes, in what its connection sends

  bool is_batch() const {
    return header.kind == packed::Kind::kBatch || header.kind == packed::Kind::kAtomic;
  }
  // Whether it can be sent again if it is not known what became of it.
  bool may_repeat() const {
    return is_batch() && header.has(packed::kRemember) && !names_handles && refusal == Code::kOk;
  }
};

class Client {
 public:
  struct Snapshot {
    uint32_t keyspace;
    uint64_t number;
    SnapshotRef ref;
  };
  struct Watch {
    uint32_t keyspace;
    uint64_t number;
    std::string key;
  };

  // `id`: by which the server knows it again. Its messages have ids above `last_message`.
  Client(World& world, uint64_t id, uint32_t last_message)
      : world_(world), id_(id), last_message_(last_message) {}

  // A new connection, which says hello.
  void Connect();
  // What was under way on the last one.
  void SendAgain();
  // The connection ends, with whatever was sent on it.
  void Disconnect() { stream_.reset(); }
  void FinishSending() { stream_->FinishSending(); }

  uint32_t NewMessageId() { return ++last_message_; }
  size_t under_way() const { return under_way_.size(); }
  bool IsUnderWay(uint32_t message) const { return under_way_.contains(message); }
  // Its bytes are to be sent; it must be there until it has its reply.
  void Send(Message& message);
  // Bytes that are no whole message.
  void SendPart(std::string_view bytes) { out_.append(bytes); }
  size_t unsent() const { return out_.size(); }
  // Gives at most so many bytes to the network.
  void Push(size_t bytes_max = SIZE_MAX);
  // Takes what has arrived; messages get their replies.
  void Pull();
  // Something is under way of which could not be known, if the connection broke, whether it is
  // done.
  bool WouldLose() const;
  // Nothing has come but replies.
  bool IsQuiet() const { return in_.empty() && has_hello_; }

  // Of the current connection.
  bool is_authenticated = false;
  std::vector<Snapshot> snapshots;
  std::vector<Watch> watches;
  struct Answered {
    std::string message;
    std::string reply;
  };
  std::map<uint32_t, Answered> remembered;  // by message id

 private:
  void TakeHello();
  bool TakeReply();

  World& world_;
  const uint64_t id_;
  uint32_t last_message_;
  std::unique_ptr<Stream> stream_;
  std::string out_;      // not given to the network yet
  uint64_t pushed_ = 0;  // bytes that were
  std::string in_;       // not taken yet
  bool has_hello_ = false;
  std::map<uint32_t, Message*> under_way_;  // by id, and so in the order of sending
};

}  // namespace skep::packed_session_fuzz
