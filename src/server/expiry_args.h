// expiry_args.h: times to live and deadlines as commands write them.
//
//   option     number           the deadline it means
//   EX n       seconds          now + n
//   PX n       milliseconds     now + n
//   EXAT n     unix seconds     when the wall clock shows n (store_now.h)
//   PXAT n     unix millis      likewise
//   KEEPTTL                     the deadline that the key has
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

// The unit and the origin of a number of time.
struct TimeForm {
  int64_t unit_ms = 1;
  bool from_now = true;  // else since 1970
  friend bool operator==(const TimeForm&, const TimeForm&) = default;
};
inline constexpr TimeForm kSeconds{.unit_ms = 1000};
inline constexpr TimeForm kMilliseconds{};
inline constexpr TimeForm kUnixSeconds{.unit_ms = 1000, .from_now = false};
inline constexpr TimeForm kUnixMilliseconds{.from_now = false};

// How to take a number that is not above 0: EXPIRE allows it as a time that has passed.
enum class PastTimes : uint8_t { kAllowed, kInvalid };

// The deadline of `number`, as requests carry it: one before the year 1970 becomes the first
// millisecond of 1970. Returns an error text with its code, a literal or in `scratch`, or an empty
// one. `command` is the name that the text quotes.
std::string_view ParseDeadline(std::string_view number, TimeForm form, PastTimes past,
                               const StoreNow& now, std::string_view command, Scratch& scratch,
                               uint64_t& deadline_ms);

// The time option of a command that stores or touches a key: at most one of the options above. The
// same one may come twice, and the later counts.
class ExpiryOption {
 public:
  enum Kind : uint8_t { kNone = 0, kTime = 1, kKeep = 2, kPersist = 4 };

  // If args[i] is one of the options, `allowed` (bits of Kind) has it and it may follow the option
  // read before: reads it, moves `i` behind it and returns true. Else returns false, and nothing is
  // changed.
  bool Read(std::span<const std::string_view> args, size_t& i, unsigned allowed);

  Kind kind() const { return kind_; }

  // The deadline for a request: kKeepDeadline with KEEPTTL, 0 with PERSIST and without an option.
  // Returns an error text or an empty one, as ParseDeadline does.
  std::string_view Resolve(const StoreNow& now, std::string_view command, Scratch& scratch,
                           uint64_t& deadline_ms) const;

 private:
  Kind kind_ = kNone;
  TimeForm form_;            // kTime
  std::string_view number_;  // kTime
};

}  // namespace skep
