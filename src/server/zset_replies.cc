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

void ReplyEntriesHead(const Call& call, size_t entries, bool with_scores, bool nests) {
  RespWriter reply = call.reply();
  const bool is_flat = with_scores && !(nests && reply.protocol() == 3);
  reply.Array(entries * (is_flat ? 2 : 1));
}

void ReplyEntry(const Call& call, const types::Entry& entry, bool with_scores, bool nests) {
  RespWriter reply = call.reply();
  if (nests && with_scores && reply.protocol() == 3) reply.Array(2);
  reply.Bulk(entry.member);
  if (with_scores) ReplyScore(reply, entry.score);
}

void ReplyEntries(const Call& call, const std::vector<types::Entry>& entries, bool with_scores,
                  bool nests) {
  ReplyEntriesHead(call, entries.size(), with_scores, nests);
  for (const types::Entry& entry : entries) ReplyEntry(call, entry, with_scores, nests);
}

}  // namespace skep
