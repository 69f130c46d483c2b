// numbered_keys.h: writes keys whose values tell their version.
//
// Write n stores the number n, padded, under key n mod N. So after write n, key j holds the largest
// m <= n with m = j (mod N): one number is the whole state, and a reply that mixes two states can
// be recognised.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/sim_cluster.h"

namespace skep::simulation {

class NumberedKeys {
 public:
  using Item = std::pair<std::string, std::string>;

  // Does writes 0 to keys - 1 and waits for them.
  NumberedKeys(SimCluster& cluster, uint64_t keys, size_t value_bytes);

  // Continues with one write after the other, each when the one before was answered.
  void StartWriting();
  void StopWriting() { writing_ = false; }
  uint64_t writes() const { return writes_; }

  std::string Key(uint64_t index) const;
  // Returns all items of the latest write that `items` shows; nullopt if they have no number.
  std::optional<std::vector<Item>> StateOf(const std::vector<Item>& items) const;

 private:
  std::string Value(uint64_t write) const;
  bool Write();

  SimCluster& cluster_;
  const uint64_t keys_;
  const size_t value_bytes_;
  std::unique_ptr<SimClient> writer_;
  uint64_t writes_ = 0;  // number of writes sent
  bool writing_ = false;
  bool waits_ = false;
};

// Returns the items of a reply, flat or in pairs.
std::vector<NumberedKeys::Item> ItemsOf(const RespReply& reply);

}  // namespace skep::simulation
