// connections.h: the connections of one worker, from the stream that was accepted to the closed
// session that is reaped.
//
//   Adopt, AdoptNew    another thread gives a stream; the next turn makes a session of it
//   Read               once a turn, a bounded piece. UpdateInterest is the back-pressure: a paused
//                      session is not read, and its unread bytes stay in the kernel
//   Queue, Send        one write a connection a turn, of the bytes that the gates have released; at
//                      most kSendBytesMax, and of all connections about kTurnSendBytesMax
//   Resume             the session may go on with the input it has
//   MarkClosed, Reap   a connection that is to end is marked; at the end of the turn the worker
//                      lets all rooms forget it, and it is reaped
//
// Strangers: a connection that must log in and has not is read and answered in pieces of
// kStrangerBytesMax. It is closed if a command is longer, or if it does not take its replies.
//
// Invariants. True between calls.
//   C1  session.queued is true if and only if the session is listed as queued.
//   C2  A closed session is listed once as closed, and is not sent to.
//   C3  The memory budget holds charged_bytes of every session, the clients' memory counted_bytes.
//
// Callers: the worker and its rooms (worker.h). Sessions of datagrams are queued here, too; their
// port sends to them (datagram_port.h).
//
// It has 32 methods: a connection's life is one state machine on the fields of Session.
// Thread safety: the owning worker only, but for Adopt and count.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/network.h"
#include "server/session.h"
#include "server/turn_context.h"
#include "server/worker_pool.h"

namespace skep {

class ServerState;

// Empties the buffer, and frees its memory if that is more than an idle connection is to hold.
void Shrink(std::string& buffer);

class Connections {
 public:
  static constexpr size_t kReadBytes = 64 * 1024;     // at most, from a connection in a turn
  static constexpr size_t kReadBytesMin = 16 * 1024;  // at least, if the connection has them

  // To a connection in a turn, at most; and how much makes the other connections wait for the next
  // turn. The kernel copies what is sent.
  static constexpr size_t kSendBytesMax = size_t{1} << 20;
  static constexpr size_t kTurnSendBytesMax = size_t{4} << 20;

  // All arguments must outlive the connections.
  Connections(ServerState& state, WorkerPool& pool, TurnContext& turn, Poller& poller)
      : state_(state), pool_(pool), turn_(turn), poller_(poller) {}

  // Called by any thread, which then wakes the worker.
  void Adopt(std::unique_ptr<Stream> stream);
  size_t count() const { return count_.load(std::memory_order_relaxed); }

  // Makes sessions of the adopted streams. Returns whether there were any.
  bool AdoptNew();
  size_t size() const { return sessions_.size(); }

  // Reads once into `room`, if no input of the session is kept. Returns how many bytes came; 0 also
  // if the peer has finished or the stream broke.
  size_t Read(Session& session, std::span<char> room);
  // Reads once to the end of the session's kept input: the rest of a large argument goes where it
  // will stay. Returns as Read.
  size_t ReadMore(Session& session);
  // Acts on the input that is left after all possible commands were dispatched.
  void FinishInput(Session& session);

  // The session's replies leave at the end of the turn, as far as they may.
  void Queue(Session& session);
  // Returns the queued sessions of datagrams, and takes them off the queue.
  std::vector<Session*> TakeQueuedDatagrams();
  // Takes a datagram's session off the queue, if it is there: its reply does not leave.
  void UnqueueDatagram(Session& session);
  // Whether sessions are queued that the last turn has not sent to.
  bool has_queued() const { return !queued_.empty(); }
  // Sends to all queued sessions, or to as many as a turn may. Returns those whose peer has read
  // enough for their task to go on.
  std::vector<Session*> Send();

  void Resume(Session& session) { resumed_.push_back(&session); }
  bool has_resumed() const { return !resumed_.empty(); }
  std::vector<Session*> TakeResumed() { return std::exchange(resumed_, {}); }

  // Tells the poller which events of the stream are wanted now.
  void UpdateInterest(Session& session);
  // Charges what the session holds to the memory budget and to the clients' memory.
  void UpdateAccount(Session& session);
  // Sets the bytes that the session has charged to the memory budget.
  void Charge(Session& session, uint64_t bytes);

  void MarkClosed(Session& session);
  // Closes a session that leaves more of its replies unread than client-output-buffer-limit allows.
  void CloseForOutput(Session& session);
  // Marks the sessions that CLIENT KILL or maxmemory-clients ends.
  void MarkEnded();
  // Ends the largest clients of all workers while all together exceed maxmemory-clients.
  void EvictLargest();
  // Called now and then, for things that no event announces: closes sessions that were idle for too
  // long.
  void Upkeep();
  // Ends all connections once their replies are sent, or after a second if the peer does not take
  // them.
  void Drain();
  bool drained() const { return draining_ && sessions_.empty(); }

  bool has_closed() const { return !closed_.empty(); }
  // Destroys the closed sessions, which every other room has forgotten.
  void Reap();
  // Called at the end of the worker.
  void MarkAllClosed();

 private:
  size_t Received(Session& session, ssize_t bytes);
  void SendTo(Session& session);
  bool Write(Session& session);
  bool IsOverdue(const Session& session) const;

  ServerState& state_;
  WorkerPool& pool_;
  TurnContext& turn_;
  Poller& poller_;
  std::map<uint64_t, std::unique_ptr<Session>> sessions_;  // by id: a simulated run repeats exactly
  std::vector<Session*> queued_;
  std::vector<Session*> queued_datagrams_;
  std::vector<Session*> resumed_;
  size_t sent_bytes_ = 0;                // in this turn
  std::vector<std::string_view> parts_;  // used by Write()
  std::vector<Session*> unstalled_;      // used by Send(): their tasks may go on
  std::vector<Session*> closed_;
  uint64_t ended_version_ = 0;  // the registry's, when MarkEnded() looked last
  uint64_t next_eviction_ms_ = 0;
  bool draining_ = false;
  uint64_t drain_until_ms_ = 0;

  std::atomic<size_t> count_{0};
  Mutex mailbox_mutex_;
  std::vector<std::unique_ptr<Stream>> mailbox_ SKEP_GUARDED_BY(mailbox_mutex_);
};

}  // namespace skep
