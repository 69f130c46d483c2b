#include "client/leaf_sessions.h"

#include <string>
#include <utility>

#include "netindex/leaves/share_place.h"
#include "rma/fabrics.h"

namespace skep::client {

Result<std::unique_ptr<LeafSessions>> LeafSessions::Connect(std::string_view place, size_t lanes,
                                                            Clock& clock) {
  const auto parsed = leaves::ParseSharePlace(place);
  if (!parsed) return Fail(Code::kInvalidArgument, leaves::kSharePlaces);
  auto sessions = std::make_unique<LeafSessions>();
  std::string problem;
  auto fabric = rma::MakeFabric(parsed->fabric, &problem);
  if (!fabric) return Fail(fabric.error());
  sessions->fabric_ = std::move(*fabric);
  for (size_t i = 0; i < lanes; ++i) {
    auto session =
        leaves::LeafSession::Make(*sessions->fabric_, parsed->address, kTimeoutMs, clock);
    if (!session) return Fail(session.error());
    if (const Status s = (*session)->Connect(); !s.ok()) return Fail(s);
    auto lane = std::make_unique<Lane>();
    {
      const MutexLock lock(lane->mutex);
      lane->session = std::move(*session);
    }
    sessions->lanes_.push_back(std::move(lane));
  }
  return sessions;
}

leaves::LeafReaderStatistics LeafSessions::Statistics() {
  leaves::LeafReaderStatistics sum;
  for (const auto& lane : lanes_) {
    const MutexLock lock(lane->mutex);
    sum += lane->session->statistics();
  }
  return sum;
}

}  // namespace skep::client
