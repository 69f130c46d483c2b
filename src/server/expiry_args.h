// expiry_args.h: times to live and deadlines as commands write them.
//
//   option     number           the deadline it means
//   EX n       seconds          now + n
//   PX n       milliseconds     now + n
//   EXAT n     unix seconds     when the wall clock shows n (store_now.h)
//   PXAT n     unix millis      likewise
//   KEEPTTL                     the one that the key has
//   PERSIST                     none
//
// As in Redis, syntax is judged before numbers: Read() takes the words, Resolve() looks at the
// number. Deadlines above kDeadlineMax are invalid; Redis takes them up to 2^63-1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/store_now.h"
#include "skep/batch.h"
#include "skep/scratch.h"

namespace skep {

// What a number of time counts.
struct TimeForm {
  int64_t unit_ms = 1;
  bool from_now = true;  // else since 1970
  friend bool operator==(const TimeForm&, const TimeForm&) = default;
};
inline constexpr TimeForm kSeconds{.unit_ms = 1000};
inline constexpr TimeForm kMilliseconds{};
inline constexpr TimeForm kUnixSeconds{.unit_ms = 1000, .from_now = false};
inline constexpr TimeForm kUnixMilliseconds{.from_now = false};

// Whether a number that is not above 0 is a time: for EXPIRE it is one that has passed.
enum class PastTimes : uint8_t { kAllowed, kInvalid };

// The deadline that `number` means, as requests carry it: one before the year 1970 is that of its
// first millisecond. An error text with its code, a literal or in `scratch`, or empty. `command` is
// the name that the text quotes.
std::string_view ParseDeadline(std::string_view number, TimeForm form, PastTimes past,
                               const StoreNow& now, std::string_view command, Scratch& scratch,
                               uint64_t& deadline_ms);

// The option of a command that stores or touches a key: at most one of those above. The same one
// twice is allowed, and the later counts.
class ExpiryOption {
 public:
  enum Kind : uint8_t { kNone = 0, kTime = 1, kKeep = 2, kPersist = 4 };

  // If args[i] is one of the options, `allowed` (of Kind) has it and it goes with what was read
  // before: reads it, moves `i` behind it, true. Else false, and nothing is changed.
  bool Read(std::span<const std::string_view> args, size_t& i, unsigned allowed);

  Kind kind() const { return kind_; }

  // The deadline for a request: kKeepDeadline with KEEPTTL, 0 with PERSIST and without an option.
  // An error text or empty, as ParseDeadline has it.
  std::string_view Resolve(const StoreNow& now, std::string_view command, Scratch& scratch,
                           uint64_t& deadline_ms) const;

 private:
  Kind kind_ = kNone;
  TimeForm form_;            // kTime
  std::string_view number_;  // kTime
};

}  // namespace skep
