// view.h: a large collection at one version.
//
// A view pins a snapshot that is not older than the newest record which its maker has seen, so it
// shows all writes that were done before the call. Versions are released in order: while a batch of
// another thread that began earlier is under way, the newest record may be of a version that is not
// released. Open then asks for the release and looks again, until that batch has ended.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collections/access.h"

namespace skep::collections {

// What View::ForEach need not read.
struct Extent {
  // No segment whose separator is this or above; of a walk that is not reverse.
  std::optional<std::string_view> until = std::nullopt;
  uint64_t segments = 2;  // about so many will be visited: most calls need few
};

class View {
 public:
  // `newest`: the record that the key has, or has had a moment ago. Nothing if it has another one
  // by now, or status() of the access says why. With an access of a snapshot that one is used.
  static std::optional<View> Open(Access& access, std::string_view key, uint8_t kind,
                                  const types::LargeRecord& newest);
  View(View&& other) noexcept;
  View& operator=(View&&) = delete;
  ~View();

  const types::LargeRecord& record() const { return record_; }
  // Visits the segments of the part from that of the place `from`, or with `reverse` down from that
  // of the place `to`; nothing: from the first, or the last. Stops when `visit` returns false.
  // False: the snapshot is gone, or what was read is no segment; status() of the access says why.
  // Cost: a scan of extent.segments segments, then of four times as many, and so on.
  using Visit = std::function<bool(std::string_view separator, const Segment& segment)>;
  bool ForEach(Part part, std::optional<std::string_view> from, bool reverse, const Visit& visit,
               const Extent& extent = Extent());
  // Several such walks, each upwards from the segment of a place: visits with the walk's index.
  // What the walks read first they read in one batch, as also what they read next, and so on, but
  // no more than kWalksTogether of them at a time.
  struct Walk {
    std::string_view from;
    Extent extent;
  };
  using VisitOf = std::function<bool(size_t walk, const Item& item, const Segment& segment)>;
  bool ForEachOf(Part part, std::span<const Walk> walks, const VisitOf& visit);
  static constexpr size_t kWalksTogether = 32;
  // About how many segments so many pieces take.
  uint64_t SegmentsOf(uint64_t pieces) const;
  // All pieces of the part, one behind the other.
  std::optional<std::string> Body(Part part);

 private:
  // What a walk has not read yet.
  struct Rest {
    std::string lo;
    std::string hi;
    bool reverse;
    bool seeks;  // the segment that has `lo` may begin before it
    uint64_t segments;
  };
  Rest RestOf(Part part, std::optional<std::string_view> from, bool reverse,
              const Extent& extent) const;
  static uint32_t Ask(Batch& batch, const Rest& rest);
  enum class Taken : uint8_t { kMore, kAll, kFailed };
  template <class VisitItem>
  Taken Take(const Batch& batch, uint32_t slot, Part part, Rest& rest, const VisitItem& visit);

  View(Access& access, SnapshotRef at, bool is_owned, const types::LargeRecord& record)
      : access_(&access), at_(at), is_owned_(is_owned), record_(record) {}

  Access* access_;
  SnapshotRef at_;
  bool is_owned_;  // the view closes the snapshot
  types::LargeRecord record_;
};

}  // namespace skep::collections
