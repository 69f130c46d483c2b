#include "server/zset_replies.h"

#include "types/score.h"

namespace skep {

void ReplyScore(RespWriter reply, double score) { reply.Decimal(types::ScoreText(score)); }

std::vector<types::Entry> EntriesOf(const Outcome& out) {
  std::vector<types::Entry> entries;
  std::string_view rest = out.value;
  types::Entry entry;
  while (types::TakeEntry(rest, &entry)) entries.push_back(entry);
  return entries;
}

void ReplyEntries(const Call& call, const std::vector<types::Entry>& entries, bool with_scores,
                  bool nests) {
  RespWriter reply = call.reply();
  nests = nests && with_scores && reply.protocol() == 3;
  reply.Array(entries.size() * (with_scores && !nests ? 2 : 1));
  for (const types::Entry& entry : entries) {
    if (nests) reply.Array(2);
    reply.Bulk(entry.member);
    if (with_scores) ReplyScore(reply, entry.score);
  }
}

}  // namespace skep
