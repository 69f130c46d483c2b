// repairer.h: a client of the pool that keeps it whole: copies chunks that lie on too few memory
// servers, or on one that is drained, and removes the keys of lost items where the pool wants that.
//
//   copy    A sealed chunk does not change any more, so its bytes are its items. They are read, and
//           written to a chunk that this client has leased, whose frame the sealed one then adopts.
//           A chunk that was recycled meanwhile has another generation and adopts nothing.
//   remove  The sorted server tells keys whose slots are in lost chunks; each is deleted on the
//           condition that it has that slot still. So it is gone at one instant, for everybody, as
//           by any DELETE; until then whoever asks for it waits.
//
// Nobody waits for it otherwise; while it stands still chunks lie on fewer servers than they
// should.
//
// Thread safety: one owner, of the session too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pool/cleaner_messages.h"
#include "pool/client_session.h"
#include "pool/item_writer.h"

namespace skep::pool {

class Repairer {
 public:
  // All outlive it; it adds to `figures`.
  Repairer(ClientSession& session, ItemWriter& writer, UpkeepFigures& figures)
      : session_(session), writer_(writer), figures_(figures) {}

  // Copies one chunk, or removes some thousand keys, until the session's deadline. False: there is
  // nothing to do now, or the pool does not answer.
  bool Step();

 private:
  // A copy that the hash server wants.
  struct Copy {
    uint32_t chunk = 0;
    uint8_t gen = 0;
    uint32_t to = 0;
    FramePlace to_place;
  };

  bool AskForCopy(Copy* copy);
  bool CopyBytes(const Copy& copy);
  // The fields of the answer.
  std::optional<std::string_view> Tell(MessageKind kind, std::initializer_list<uint64_t> fields);
  bool CopyOne();
  bool RemoveSomeLost();

  ClientSession& session_;
  ItemWriter& writer_;
  std::unique_ptr<std::byte[]> bytes_;
  std::string next_key_;          // where to look for lost items
  uint64_t pass_version_ = 0;     // of the memory servers when the pass began
  uint64_t removed_version_ = 0;  // of the memory servers whose losses were removed
  UpkeepFigures& figures_;
};

}  // namespace skep::pool
