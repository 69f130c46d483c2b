// reply_memory.h: what clients were told, so that a message that is sent again is not executed
// again.
//
// A client whose connection breaks does not know whether its last messages were executed. Those
// that it marked (packed::kRemember) it sends again on another connection, under the same client
// and message id, and gets the replies of the first time.
//
//   message, first time   Begin: kNew   executed   Finish: the reply is kept, with the ticket that
//                                                  it must wait for
//   again, meanwhile      Begin: kRunning: the client asks again in a moment
//   again, later          Begin: kKnown, the reply
//   again, much later     Begin: kForgotten: what became of it is not known here any more
//
// A client's ids rise; of each client the last kIdsMax are kept, of all clients kBytesMax bytes of
// replies: the oldest of the client that was quiet the longest go first. What is kept ends with the
// process: a client sees from the hello that the server is another one.
//
// Thread-safe. Cost: a lock and a copy of the reply, for messages that are marked only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "skep/batch.h"

namespace skep {

class ReplyMemory {
 public:
  static constexpr size_t kIdsMax = 1024;
  static constexpr size_t kBytesMax = size_t{64} << 20;
  static constexpr size_t kClientsMax = 64 * 1024;

  enum class Known : uint8_t { kNew, kRunning, kKnown, kForgotten };

  // What was kept: the message's reply, and the ticket of its keyspace that it waits for.
  struct Reply {
    std::string bytes;
    Version ticket = 0;
  };

  // `client` is not 0. Fills in *reply if it is known. After kNew, Finish or Abandon must follow.
  Known Begin(uint64_t client, uint32_t id, Reply* reply);
  void Finish(uint64_t client, uint32_t id, std::string_view bytes, Version ticket);
  // It was not executed.
  void Abandon(uint64_t client, uint32_t id);

  size_t bytes() const;

 private:
  struct Entry {
    bool running = true;
    Reply reply;
  };
  struct Client {
    std::map<uint32_t, Entry> entries;  // by id
    uint32_t forgotten = 0;             // the highest id that was dropped
    bool has_forgotten = false;
    std::list<uint64_t>::iterator order;  // its place in order_
  };

  Client& Touch(uint64_t client);
  void DropOldest(Client& client);
  void MakeRoom();

  mutable std::mutex mutex_;
  std::map<uint64_t, Client> clients_;
  std::list<uint64_t> order_;  // of clients: the one that was quiet the longest comes first
  size_t bytes_ = 0;
};

}  // namespace skep
