#include "pool/sessions.h"

#include <algorithm>

#include "base/check.h"

namespace skep::pool {

Sessions::Standing Sessions::Find(uint32_t client, uint64_t sequence,
                                  CommitVerdict* verdict) const {
  const auto at = clients_.find(client);
  if (at == clients_.end() || sequence == 0) return Standing::kUnknown;
  const Client& known = at->second;
  if (sequence + kWindow <= known.last) return Standing::kUnknown;
  const size_t place = sequence % kWindow;
  if (place >= known.done.size() || known.done[place].sequence != sequence) return Standing::kNew;
  *verdict = known.done[place].verdict;
  return Standing::kDone;
}

void Sessions::Note(uint32_t client, uint64_t sequence, const CommitVerdict& verdict) {
  const auto at = clients_.find(client);
  SKEP_CHECK(at != clients_.end());
  Client& known = at->second;
  const size_t place = sequence % kWindow;
  if (place >= known.done.size()) known.done.resize(place + 1);
  known.done[place] = {.sequence = sequence, .verdict = verdict};
  known.last = std::max(known.last, sequence);
}

}  // namespace skep::pool
