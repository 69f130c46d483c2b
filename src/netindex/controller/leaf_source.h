// leaf_source.h: what a controller asks servers: which ranges they have, and the links of their
// leaves (wire/packed_top.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "netindex/switch/index_tree.h"
#include "skep/status.h"

namespace skep::netindex {

// A range of keys at a server.
struct ServerRange {
  std::string lower;    // the first key
  std::string address;  // HOST:PORT, HOST an IPv4 address

  friend bool operator==(const ServerRange&, const ServerRange&) = default;
};

// The first 8 bytes of a key as a number, the first byte highest, zeros behind a shorter key.
uint64_t NumberOf(std::string_view key);

class LeafSource {
 public:
  virtual ~LeafSource() = default;

  // All ranges, the first one from the empty key on.
  //   kUnavailable  whoever knows them does not answer
  virtual Result<std::vector<ServerRange>> Ranges() = 0;

  // The leaves of the range up to `upper` (empty: without an end), at least one, with all their
  // sampled hits.
  //   kUnavailable   the server does not answer
  //   kNotSupported  it has no tree
  virtual Result<ServerLeaves> LeavesOf(const ServerRange& range, std::string_view upper) = 0;
};

// Servers that are reached over TCP. `ranges` tells which.
class RemoteLeafSource final : public LeafSource {
 public:
  using AskRanges = std::function<Result<std::vector<ServerRange>>()>;

  RemoteLeafSource(AskRanges ranges, uint32_t timeout_ms)
      : ranges_(std::move(ranges)), timeout_ms_(timeout_ms) {}

  Result<std::vector<ServerRange>> Ranges() override { return ranges_(); }
  Result<ServerLeaves> LeavesOf(const ServerRange& range, std::string_view upper) override;

 private:
  const AskRanges ranges_;
  const uint32_t timeout_ms_;
};

}  // namespace skep::netindex
