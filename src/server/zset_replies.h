// zset_replies.h: replies with members of sorted sets and their scores.
#pragma once

#include <vector>

#include "server/call.h"
#include "types/sorted_set.h"

namespace skep {

void ReplyScore(RespWriter reply, double score);

// The entries that a function has returned. Views of the outcome.
std::vector<types::Entry> EntriesOf(const Outcome& out);

// Replies with members, and their scores if wanted. `nests`: with RESP3, member and score are an
// array of two; else they follow each other. The head, and an entry, are parts of such a reply.
void ReplyEntriesHead(const Call& call, size_t entries, bool with_scores, bool nests);
void ReplyEntry(const Call& call, const types::Entry& entry, bool with_scores, bool nests);
void ReplyEntries(const Call& call, const std::vector<types::Entry>& entries, bool with_scores,
                  bool nests);

}  // namespace skep
