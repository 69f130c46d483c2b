// reply_pins.h: those parts of a session's replies that are not copied into its output: values that
// their engine keeps pinned (skep/pinned_value.h) until they are sent.
//
//   out     $65537 CR LF | CR LF :1 CR LF
//                        ^
//   pins                 at: 65537 bytes that stand between these two bytes of `out`
//
// Positions count the bytes of `out` alone, from the connection's start. A pin stands before the
// byte at its position. So whatever takes replies back, or holds them, by their positions in `out`
// does the same to the pins in between, if it says so here.
//
// Thread safety: the owning worker only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skep/pinned_value.h"

namespace skep {

class ReplyPins {
 public:
  using Value = std::shared_ptr<const PinnedValue>;

  // Appends a value at a position that is not before those of the others.
  void Add(uint64_t at, Value value);
  // Bytes of `own`, which begin at the position, with those of the pins behind that. Cost: a copy.
  std::string Whole(std::string_view own, uint64_t at) const;
  // Drops the pins behind the position, where a reply began that is taken back.
  void DropBehind(uint64_t position);

  bool empty() const { return pins_.empty(); }
  // The bytes that are not sent.
  uint64_t bytes() const { return bytes_; }
  // Whether a pin stands before the byte at the position.
  bool HasAt(uint64_t position) const { return !pins_.empty() && pins_.front().at <= position; }

  // Appends to `parts` what is to be sent next: bytes of `own`, which begin at the position, and of
  // the pins in between and behind them, at most `bytes_max`.
  void List(std::string_view own, uint64_t at, size_t bytes_max,
            std::vector<std::string_view>& parts) const;
  // Called when so many bytes of that were sent. Returns how many of them were of `own`.
  size_t TakeSent(uint64_t at, size_t sent);

 private:
  struct Pin {
    uint64_t at;
    Value value;
    size_t sent = 0;
  };

  std::deque<Pin> pins_;  // positions do not fall
  uint64_t bytes_ = 0;
};

}  // namespace skep
