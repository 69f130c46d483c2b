// fat_root_refresh.h: asks a server for the pages of a fat root (fat_root.h), one after the other.
//
// No thread is behind it and no thread waits for a page. A thread whose batch is finished calls
// Step(), which does one thing if there is one to do: it takes a page that has come, or sends the
// next question. The answer is read by whichever thread reads from the connection next. So a store
// that is not used asks for nothing, and a batch pays for one message or one page at most. If the
// threads that use that connection have gone, the question is given up after kStepsMax steps of the
// others, and asked on their connection.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "client/fat_root.h"
#include "client/remote.h"

namespace skep::client {

// Thread-safe.
class FatRootRefresh {
 public:
  // `remote` and `root` must outlive this.
  FatRootRefresh(Remote& remote, uint32_t keyspace, FatRoot& root)
      : remote_(remote), keyspace_(keyspace), root_(root) {}
  ~FatRootRefresh();

  static constexpr uint32_t kStepsMax = 256;

  // Does the next step, unless another thread is at it. `connection`: where to ask. Without memory
  // it does nothing.
  void Step(size_t connection);

 private:
  void Ask(size_t connection);
  void TakeAnswer();
  void GiveUp();

  Remote& remote_;
  const uint32_t keyspace_;
  FatRoot& root_;
  // True while a thread is in Step(); that thread owns the fields below.
  std::atomic<bool> is_busy_ = false;
  std::optional<Message> question_;  // under way
  Connection* asked_on_ = nullptr;
  uint32_t steps_ = 0;  // since the question was sent
};

}  // namespace skep::client
