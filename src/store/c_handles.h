// c_handles.h: the objects behind the handles of skep.h, and how its functions call C++.
//
// No exception leaves a function of skep.h: where memory or a thread cannot be had, the call is
// refused. Any other exception would be our own bug and ends the program (noexcept).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "skep.h"
#include "skep/store.h"

struct skep_store {
  std::unique_ptr<skep::Store> store;
};

struct skep_batch {
  explicit skep_batch(skep::Batch::Kind kind) : batch(kind) {}

  skep::Batch batch;
  std::optional<skep::BatchFuture> under_way;
  bool executed = false;               // since it was begun or cleared: it can be read
  std::vector<skep_outcome> outcomes;  // filled in when they are asked for
  skep::Status refusal;                // of the first request that could not be added
};

struct skep_scanner {
  skep::Scanner scanner;
};

struct skep_snapshot {
  skep::Snapshot snapshot;
};

struct skep_watch {
  skep::Watch watch;
};

struct skep_scratch {
  skep::Scratch values;
  std::vector<std::string_view> keys;
  std::vector<skep::GetAnswer> answers;
};

namespace skep::c_api {

inline constexpr Status kNullHandle(Code::kInvalidArgument, "a null handle");
inline constexpr Status kNoPlace(Code::kInvalidArgument, "a null pointer for a result");
inline constexpr Status kNullBytes(Code::kInvalidArgument, "bytes at a null pointer");
inline constexpr Status kNoSuchFlag(Code::kInvalidArgument, "no such flag");
inline constexpr Status kNoMemory(Code::kOutOfMemory, "the process has no memory");

// Keeps `text` for skep_error_text() of this thread; returns the code.
skep_code Refuse(Status status, std::string_view text) noexcept;

// Runs `body`, which returns a Status, and returns its code.
template <class Body>
skep_code Guarded(Body body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? SKEP_OK : Refuse(status, status.ToString());
  } catch (const std::bad_alloc&) {
    return Refuse(kNoMemory, kNoMemory.what());
  } catch (const std::system_error& error) {
    const Status status(Code::kUnavailable, "the system has no thread",
                        static_cast<uint64_t>(error.code().value()));
    return Refuse(status, status.what());
  }
}

// Bytes that a caller gives.
struct Given {
  const void* at;
  size_t bytes;

  // A null pointer is right for the empty string only.
  bool is_sound() const { return at != nullptr || bytes == 0; }
};
inline bool AreSound(std::initializer_list<Given> all) {
  return std::ranges::all_of(all, &Given::is_sound);
}

// Runs `body` with the store, and returns the code of its Status. `given`: bytes that a caller
// gives.
template <class Body>
skep_code Call(skep_store* store, std::initializer_list<Given> given, Body body) noexcept {
  return Guarded([&]() -> Status {
    if (store == nullptr) return kNullHandle;
    return AreSound(given) ? body(*store->store) : kNullBytes;
  });
}
template <class Body>
skep_code Call(skep_store* store, Body body) noexcept {
  return Call(store, {}, body);
}

// Calls `use` with the value of a result, if it has one; returns its status.
template <class T, class Use>
Status IfThere(Result<T> result, Use use) {
  if (!result) return result.error();
  use(*result);
  return {};
}

inline std::string_view Bytes(const void* at, size_t bytes) {
  return at == nullptr ? std::string_view("")
                       : std::string_view(static_cast<const char*>(at), bytes);
}

// The bounds of a range. The upper bound of a prefix is built in `scratch`.
Result<Range> RangeOf(const skep_range* range, Scratch& scratch);
Result<ScanOptions> ScanOptionsOf(uint32_t flags, uint32_t limit);

inline skep_item ItemOf(std::string_view key, std::string_view value) {
  return {key.data(), key.size(), value.data(), value.size()};
}

}  // namespace skep::c_api
