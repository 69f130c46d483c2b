// served_ranges.h: the ranges that a server has by a map: RangeOwner with the real coordinator, the
// real network, and a thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/coordinator.h"
#include "base/repeating_thread.h"
#include "ranges/range_owner.h"
#include "ranges/remote_range_copy.h"
#include "skep/status.h"

namespace skep::ranges {

struct ServedRangesOptions {
  std::string zookeeper;  // "HOST:PORT,HOST:PORT"
  RangeOwnerOptions owner;
};

// Reads "zk=HOST:PORT,zk=HOST:PORT,name=NAME,at=HOST:PORT,session=MS"; the last is optional.
//   kInvalidArgument  `what` says what is wrong with it
Result<ServedRangesOptions> ReadServedRanges(std::string_view text);

class ServedRanges {
 public:
  static constexpr uint32_t kSessionMsMin = 1000, kSessionMsMax = 3'600'000;

  // Of the engine, which outlives it. On an error *problem is a line for a person.
  //   kNotSupported  the client of ZooKeeper cannot be had here; the engine has no order, or its
  //                  data are elsewhere
  static Result<std::unique_ptr<ServedRanges>> Open(const ServedRangesOptions& options,
                                                    Engine& engine, RangeCopyOptions copying,
                                                    std::string* problem);

  // Thread-safe. Nobody is in Execute when it is destroyed.
  RangeOwner& owner() { return owner_; }

 private:
  ServedRanges(const ServedRangesOptions& options, std::unique_ptr<Coordinator> coordinator,
               Engine& engine, RangeCopyOptions copying);

  const std::unique_ptr<Coordinator> coordinator_;
  RangeOwner owner_;
  RepeatingThread thread_;
};

}  // namespace skep::ranges
