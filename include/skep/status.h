// status.h: how every Skep call says what went wrong.
//
// Normal outcomes (a key is absent, a comparison failed) are not errors: calls report them as
// `bool`, `std::optional` or `Verdict` (batch.h). A Status is for a request that cannot be served
// and for a world that failed.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <type_traits>

namespace skep {

// A code says what the caller can do next.
enum class Code : uint8_t {
  kOk = 0,
  kInvalidArgument,  // the request is wrong; sending it again will fail again
  kNotSupported,     // this engine or build cannot do that; another one may
  kTooLarge,         // a key, value or batch exceeds a limit; `detail` is the limit in bytes
  kOutOfMemory,      // the memory limit is reached; deletes still work; `detail` is the limit
  kSnapshotTooOld,   // the snapshot reached its age limit or was revoked; take a new one
  kUnavailable,      // the peer, file or device is gone for now; retry with backoff
  kAborted,          // nothing of this atomic batch was applied; another slot says why
  kIo,               // the operating system refused; `detail` is the errno
  kCorrupt,          // stored bytes fail their check; `detail` is the offset
  kMoved,      // the keys are another server's by the map of ranges; nothing was done; `detail`
               // is the version of the map by which this server goes
  kWrongType,  // the value at the key is of another type than the operation is for; `detail` is its
               // type (batch.h)
};

// Two words, trivially copyable, never allocates.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  // `what` must be a string literal (it is kept, not copied). `detail` is one number whose meaning
  // the code gives (an errno, a limit, an offset); only its low 56 bits are kept.
  constexpr Status(Code code, const char* what, uint64_t detail = 0)
      : what_(what), packed_(detail << 8 | static_cast<uint64_t>(code)) {}

  constexpr bool ok() const { return code() == Code::kOk; }
  constexpr Code code() const { return static_cast<Code>(packed_ & 0xff); }
  constexpr const char* what() const { return what_; }
  constexpr uint64_t detail() const { return packed_ >> 8; }

  // A line for a person: "<code>: <what> (<detail>)". Allocates.
  std::string ToString() const;

  friend constexpr bool operator==(Status a, Status b) { return a.packed_ == b.packed_; }

 private:
  const char* what_ = "";
  uint64_t packed_ = 0;
};

static_assert(sizeof(Status) == 16);
static_assert(std::is_trivially_copyable_v<Status>);

template <typename T>
using Result = std::expected<T, Status>;

inline std::unexpected<Status> Fail(Code code, const char* what, uint64_t detail = 0) {
  return std::unexpected<Status>(Status(code, what, detail));
}
inline std::unexpected<Status> Fail(Status status) { return std::unexpected<Status>(status); }

}  // namespace skep
