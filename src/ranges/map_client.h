// map_client.h: reads and changes a map of ranges in the coordinator, each call waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/coordinator.h"
#include "base/mutex.h"
#include "ranges/range_map.h"
#include "skep/status.h"

namespace skep::ranges {

// It keeps a session, which ends with it. Thread safety: one owner.
class MapClient {
 public:
  // The coordinator outlives it.
  MapClient(Coordinator& coordinator, std::string name, uint32_t timeout_ms);
  ~MapClient();
  MapClient(const MapClient&) = delete;
  MapClient& operator=(const MapClient&) = delete;

  // Each waits for the coordinator, for `timeout_ms`.
  //   kUnavailable  it does not answer
  //   kIo           it refuses

  // The map, with every change that was answered before the call.
  //   kInvalidArgument  there is no such map
  //   kCorrupt          the node is there, and holds no map
  Result<RangeMap> Read();
  //   kInvalidArgument  it is no map, or there is one of this name
  Status Create(const RangeMap& map);
  // Replaces the map that has this map's version.
  //   kInvalidArgument  it is no map
  //   kAborted          the map has another version by now
  Status Replace(const RangeMap& map);
  // The version of the map by which the server at this address goes (range_owner.h); nothing: no
  // such server has registered.
  Result<std::optional<int32_t>> VersionAt(std::string_view address);

 private:
  CoordinatorSession* Session();
  void Wake();
  bool Wait(uint64_t until_ns);
  // Makes a request with this token once the session is connected; nothing: there was no answer in
  // time.
  template <typename Request>
  std::optional<CoordinatorEvent> Ask(Request request);

  Coordinator& coordinator_;
  const std::string name_;
  const uint32_t timeout_ms_;
  uint64_t token_ = 0;
  uint64_t opened_ = 0;  // sessions so far
  Mutex mutex_;
  ConditionVariable woken_;
  bool is_woken_ SKEP_GUARDED_BY(mutex_) = true;
  std::unique_ptr<CoordinatorSession> session_;
};

}  // namespace skep::ranges
