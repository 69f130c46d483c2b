// sessions.h: the clients that a pool knows, and what became of their last operations.
//
// A client numbers its operations; one whose reply was lost is sent again under its number, to the
// same hash server or to the one that took over, and must not be done twice (hole H4). So the state
// that both index servers keep has, for every client, the verdicts of the last kWindow sequence
// numbers. A client has no more of them without a reply: the span from its oldest unanswered number
// to its newest is below kWindow.
//
// Memory: 32 KiB for a client that has used its whole window.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pool/log_entry.h"

namespace skep::pool {

class Sessions {
 public:
  static constexpr uint64_t kWindow = 1024;

  void Join(uint32_t client) { clients_.try_emplace(client); }
  void Leave(uint32_t client) { clients_.erase(client); }
  bool Knows(uint32_t client) const { return clients_.contains(client); }
  size_t size() const { return clients_.size(); }

  enum class Standing : uint8_t {
    kNew,      // to be done
    kDone,     // was done: *verdict says how
    kUnknown,  // the client is not known, or the number is older than its window
  };
  // `sequence` > 0.
  Standing Find(uint32_t client, uint64_t sequence, CommitVerdict* verdict) const;
  // Notes the verdict of an operation that was new.
  void Note(uint32_t client, uint64_t sequence, const CommitVerdict& verdict);

  // How a client comes to another server (state_transfer.h). It is known.
  void EncodeClient(uint32_t client, std::string& to) const;
  // Takes a client from the front. False: the bytes are none.
  bool DecodeClient(std::string_view& from);

  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [id, client] : clients_) visit(id);
  }

 private:
  struct Done {
    uint64_t sequence = 0;  // 0: none yet
    CommitVerdict verdict;
  };
  struct Client {
    uint64_t last = 0;       // the highest sequence number that was noted
    std::vector<Done> done;  // by sequence modulo kWindow; grows to that
  };

  std::unordered_map<uint32_t, Client> clients_;
};

}  // namespace skep::pool
