// registration.h: the node by which a server of a pool says that it is there: ephemeral, with its
// address (map_follower.h).
//
// One request is under way at a time, however long the service takes: a second one would find the
// node of the first, and tell that it is somebody's. A node that is there is asked for its owner
// (R4 in base/coordinator.h): it may be this session's, whose answer was lost, or an earlier one's,
// which is gone soon.
//
// Thread safety: one owner, which passes all events of the session.
#pragma once

#include <cstdint>
#include <string>

#include "base/coordinator.h"
#include "base/network.h"

namespace skep::pool {

class Registration {
 public:
  // Of one session. Its requests have the tokens `first_token` and the one after it.
  Registration(CoordinatorSession& session, std::string path, Address address, uint64_t first_token)
      : session_(session),
        path_(std::move(path)),
        address_(std::move(address)),
        first_token_(first_token) {}

  // Makes the node, and those that it lies in, unless that is under way or done. The session is
  // connected.
  void Want();
  void Handle(const CoordinatorEvent& event);
  // Whether the node is there, and is this session's.
  bool is_done() const { return stage_ == Stage::kDone; }

 private:
  enum class Stage : uint8_t { kWanted, kAsked, kAskedForOwner, kDone };

  uint64_t parent_token() const { return first_token_; }
  uint64_t own_token() const { return first_token_ + 1; }

  CoordinatorSession& session_;
  const std::string path_;
  const Address address_;
  const uint64_t first_token_;
  Stage stage_ = Stage::kWanted;
};

}  // namespace skep::pool
