// hot_filler.h: a worker's part in what the driver's hook answers (hot_gets.h): it sees the GETs
// that the hook did not answer, and gives it the values of those that are asked for often.
//
//   Missed   a datagram came; if the hook would understand it, it is counted
//   Step     once a turn, when the replies have left: claims entries for the hot ones, reads their
//            keys, and finishes the fills whose value the gate has released
//
// Bounds: a turn begins kFillsMax fills, and as many wait for their gates, for kWaitMsMax at most.
//
// Thread safety: the owning worker only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "netindex/xdp/hot_map.h"
#include "server/hot_gets.h"
#include "server/server_call.h"
#include "skep/batch.h"

namespace skep {

class HotFiller {
 public:
  static constexpr size_t kFillsMax = 16;
  static constexpr uint64_t kWaitMsMax = 1000;

  // `host` must outlive this object.
  explicit HotFiller(ServerHost& host) : host_(host) {}

  void Missed(std::string_view datagram);
  void Step();

 private:
  struct Fill {
    xdp::HotMap::Claim claim;
    std::string value;
    bool is_answerable;
    Engine* engine;
    Version ticket;
    uint64_t begun_ms;
  };

  void Begin(HotGets& hot, const XdpKey& key);
  void FinishReleased(HotGets& hot);

  ServerHost& host_;
  std::vector<XdpKey> wanted_;
  std::vector<Fill> waiting_;
  Batch batch_;
};

}  // namespace skep
