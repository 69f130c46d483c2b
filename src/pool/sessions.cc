#include "pool/sessions.h"

#include <algorithm>

#include "base/check.h"
#include "pool/fields.h"
#include "pool/messages.h"

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

void Sessions::EncodeClient(uint32_t client, std::string& to) const {
  const std::vector<Done>& all = clients_.at(client).done;
  const auto is_done = [](const Done& done) { return done.sequence != 0; };
  AppendVarint(to, client);
  AppendVarint(to, static_cast<uint64_t>(std::ranges::count_if(all, is_done)));
  for (const Done& done : all) {
    if (!is_done(done)) continue;
    AppendVarint(to, done.sequence);
    AppendVerdict(to, done.verdict);
  }
}

bool Sessions::DecodeClient(std::string_view& from) {
  uint32_t client = 0;
  uint64_t count = 0;
  if (!TakeNumber(from, &client) || !TakeVarint(from, &count)) return false;
  Join(client);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t sequence = 0;
    CommitVerdict verdict;
    if (!TakeVarint(from, &sequence) || !TakeVerdict(from, &verdict)) return false;
    Note(client, sequence, verdict);
  }
  return true;
}

}  // namespace skep::pool
