// packed_session_fuzz_client.h: a client of packed_session_fuzz.cc, which outlives its connections,
// and sends messages that were not answered again on the next one.
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

// What the answers of a batch depend on and what it changes, as far as that is needed to tell
// whether they are determined while another batch is under way.
struct Touches {
  bool everything = false;  // any key
  bool writes = false;
  bool reads_released = false;  // atomic, and only reads: it may miss writes not yet answered
  std::set<std::string_view> keys;

  bool nothing() const { return !everything && keys.empty(); }
};

// A message, and the expected result.
struct Message {
  explicit Message(Batch::Kind kind = Batch::Kind::kUnordered) : batch(kind) {}

  size_t client = 0;
  packed::Header header;
  std::string bytes;  // the whole message
  Batch batch;        // for kBatch and kAtomic
  Batch original;     // the batch whose bytes it views, unless they are its own
  Touches touches;
  uint64_t snapshot = 0;       // the number of the snapshot that it reads at
  bool names_handles = false;  // needs a snapshot or a watch, which end with the connection
  Code refusal = Code::kOk;    // of the message as a whole
  bool is_repeat = false;      // it has been sent before
  std::function<void(std::string_view payload)> take;  // takes the reply, if it is no batch
  std::string reply;                                   // with its header; empty: none yet
  uint64_t end = 0;  // where its bytes end in the stream of its connection

  bool is_batch() const {
    return header.kind == packed::Kind::kBatch || header.kind == packed::Kind::kAtomic;
  }
  // Whether the message can be sent again if its result is not known.
  bool may_repeat() const {
    return is_batch() && header.has(packed::kRemember) && !names_handles && refusal == Code::kOk;
  }
};

// The payload of a reply to a kTop must be a page of links.
void CheckTop(std::string_view payload);

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

  // The server knows the client again by `id`. Its messages have ids above `last_message`.
  Client(World& world, uint64_t id, uint32_t last_message)
      : world_(world), id_(id), last_message_(last_message) {}

  // Opens a new connection and sends a hello.
  void Connect();
  // Sends the messages again that were under way on the last connection.
  void SendAgain();
  // Ends the connection, with whatever was sent on it.
  void Disconnect() { stream_.reset(); }
  void FinishSending() { stream_->FinishSending(); }

  uint32_t NewMessageId() { return ++last_message_; }
  size_t under_way() const { return under_way_.size(); }
  bool IsUnderWay(uint32_t message) const { return under_way_.contains(message); }
  // Queues the message's bytes; it must live until it has its reply.
  void Send(Message& message);
  // Queues bytes that are no whole message.
  void SendPart(std::string_view bytes) { out_.append(bytes); }
  size_t unsent() const { return out_.size(); }
  // Gives at most `bytes_max` bytes to the network.
  void Push(size_t bytes_max = SIZE_MAX);
  // Takes the bytes that have arrived; messages get their replies.
  void Pull();
  // Whether a message is under way whose result could not be known if the connection broke.
  bool WouldLose() const;
  // Whether nothing but replies has come.
  bool IsQuiet() const { return in_.empty() && has_hello_; }

  // State of the current connection.
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
  std::string out_;      // not yet given to the network
  uint64_t pushed_ = 0;  // bytes given to the network
  std::string in_;       // received and not yet taken
  bool has_hello_ = false;
  std::map<uint32_t, Message*> under_way_;  // by id, and so in the order of sending
};

}  // namespace skep::packed_session_fuzz
