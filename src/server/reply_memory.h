// reply_memory.h: the replies that clients were sent, so that a message that is sent again is not
// executed again.
//
// A client whose connection breaks does not know whether its last messages were executed. It sends
// those that it marked (packed::kRemember) again on another connection, under the same client and
// message id, and gets the replies of the first time.
//
//   message, first time   Begin: kNew   executed   Finish: the reply is kept, with the ticket that
//                                                  it must wait for
//   again, meanwhile      Begin: kRunning: the client asks again in a moment
//   again, later          Begin: kKnown, the reply
//   another message under Begin: kOther: of another keyspace or kind, so it is not the same again.
//   the same id           The reply is not given: its ticket is one of its own keyspace
//   again, much later     Begin: kForgotten: its result is not known here any more
//
// A forgotten message is never taken for a new one, although memory is bounded:
//   - A client's ids rise, and its oldest replies are forgotten first. So one number for each
//     client is enough: the first id that is not forgotten.
//   - Clients are forgotten too, the one that was quiet the longest first, unless it has a
//     connection. Their numbers go into one of kSlots slots, by a hash of the client's id; a slot
//     keeps the highest. A client that is not known begins with the number of its slot. So a new
//     client may find that its first ids are taken; the hello tells it FirstNewId, which is not.
//
// Limits. Of each client the last kIdsMax replies are kept; of all clients together bytes_max()
// bytes, including those of this class itself. The client that has the most bytes loses its oldest
// replies first; of clients that have about as much, the one that was quiet the longest. So a
// client with large replies costs itself, not the others. Everything ends with the process: the
// hello tells a client that the server is another one.
//
// Thread-safe. Cost, for marked messages only: a lock, and a copy of the reply when it is kept.
// Replies are copied and freed without the lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "skep/batch.h"
#include "wire/packed.h"

namespace skep {

class ReplyMemory {
 public:
  static constexpr size_t kIdsMax = 1024;
  static constexpr size_t kSlots = 32 * 1024;

  enum class Known : uint8_t { kNew, kRunning, kKnown, kForgotten, kOther };

  // A remembered reply, and the ticket of its keyspace that it waits for.
  struct Reply {
    std::shared_ptr<const std::string> bytes;
    Version ticket = 0;
  };

  // Charges its memory to the budget, which must outlive it.
  explicit ReplyMemory(MemoryBudget& budget) : budget_(budget) {}
  ~ReplyMemory();

  // Enter begins a connection of the client (which is not 0), Leave ends it: the client is not
  // forgotten while it has one.
  void Enter(uint64_t client);
  void Leave(uint64_t client);
  // The lowest id that no known message of the client has had; 2^32 if there is none. It stays
  // right as long as the client is not forgotten.
  uint64_t FirstNewId(uint64_t client) const;

  // Looks up the message with this header. Fills in *reply if it is known. After kNew, Finish or
  // Abandon must follow. With kForgotten, *first_new is as of FirstNewId.
  Known Begin(uint64_t client, const packed::Header& message, Reply* reply, uint64_t* first_new);
  void Finish(uint64_t client, uint32_t id, std::string_view bytes, Version ticket);
  // The message was not executed.
  void Abandon(uint64_t client, uint32_t id);

  // The memory in use, and its limit: 64 MiB, or an eighth of the budget's limit if that is less,
  // but at least 1 MiB.
  size_t bytes() const;
  size_t bytes_max() const;
  // The most clients without a connection that are remembered.
  size_t clients_max() const;

 private:
  enum class State : uint8_t { kRunning, kKnown, kForgotten };
  struct Entry {
    State state = State::kRunning;
    packed::Kind kind;
    uint16_t keyspace;
    Reply reply = {};
  };
  // Holds mutex_. Dropped replies are freed once it is not held any more.
  class SKEP_SCOPED_CAPABILITY Lock {
   public:
    explicit Lock(ReplyMemory& memory) SKEP_ACQUIRE(memory.mutex_) : memory_(memory) {
      memory.mutex_.lock();
    }
    ~Lock() SKEP_RELEASE() {
      dropped_.swap(memory_.dropped_);
      memory_.mutex_.unlock();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    ReplyMemory& memory_;
    std::vector<std::shared_ptr<const std::string>> dropped_;
  };
  using Order = std::list<uint64_t>;  // client ids; that of the client quiet for the longest first
  struct Client {
    std::map<uint32_t, Entry> entries;  // by id
    uint64_t first = 0;                 // ids below are forgotten, unless there is an entry
    uint64_t first_new = 0;             // above all ids seen so far
    uint32_t connections = 0;
    size_t bytes = 0;          // of the entries
    uint32_t size_class = 0;   // class of `bytes`; 0: there are no entries
    Order::iterator by_class;  // in by_class_[size_class]
    Order::iterator by_time;   // in by_time_; without connections only
  };
  using Clients = std::map<uint64_t, Client>;
  // Class i has the clients whose entries take less than 2^i bytes, and not less than half of that.
  static constexpr size_t kClasses = 48;

  Clients::iterator Find(uint64_t client) SKEP_REQUIRES(mutex_);
  void Touch(Clients::iterator client) SKEP_REQUIRES(mutex_);
  void SetBytes(Clients::iterator client, size_t bytes) SKEP_REQUIRES(mutex_);
  static size_t ReplyBytes(const Entry& entry);
  void DropEntry(Clients::iterator client, std::map<uint32_t, Entry>::iterator entry)
      SKEP_REQUIRES(mutex_);
  void DropOldest(Clients::iterator client) SKEP_REQUIRES(mutex_);
  void DropClient(Clients::iterator client) SKEP_REQUIRES(mutex_);
  bool DropOfTheLargest() SKEP_REQUIRES(mutex_);
  void MakeRoom() SKEP_REQUIRES(mutex_);
  void Charge(size_t bytes) SKEP_REQUIRES(mutex_);
  void Release(size_t bytes) SKEP_REQUIRES(mutex_);
  uint64_t ForgottenOf(uint64_t client) const SKEP_REQUIRES(mutex_);

  MemoryBudget& budget_;
  mutable Mutex mutex_;
  Clients clients_ SKEP_GUARDED_BY(mutex_);
  std::array<Order, kClasses> by_class_ SKEP_GUARDED_BY(mutex_);
  Order by_time_ SKEP_GUARDED_BY(mutex_);                // clients without connections
  std::vector<uint64_t> slots_ SKEP_GUARDED_BY(mutex_);  // empty until a client is forgotten
  std::vector<std::shared_ptr<const std::string>> dropped_
      SKEP_GUARDED_BY(mutex_);  // replies that Lock frees
  size_t bytes_ SKEP_GUARDED_BY(mutex_) = 0;
};

}  // namespace skep
