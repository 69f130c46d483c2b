#include "pool/index_log.h"

#include <string>

namespace skep::pool {

bool MustBeSynced(const LogBatch& entries) {
  for (size_t i = 0; i < entries.size(); ++i) {
    const LogEntry::Kind kind = entries.entry(i).kind;
    if (kind == LogEntry::Kind::kJoin || kind == LogEntry::Kind::kLease) return true;
  }
  return false;
}

std::string_view NameOf(IndexLog::Kind kind) {
  switch (kind) {
    case IndexLog::Kind::kOwner:
      return "owner";
    case IndexLog::Kind::kStateBegin:
      return "state begin";
    case IndexLog::Kind::kState:
      return "state";
    case IndexLog::Kind::kStateEnd:
      return "state end";
    case IndexLog::Kind::kEntries:
      return "entries";
    case IndexLog::Kind::kStateSince:
      return "state since";
  }
  return "unknown";
}

bool AppendEntries(IndexLog* log, const LogBatch& entries, LoggedUpTo* needed) {
  if (log == nullptr || entries.empty()) return true;
  std::string bytes;
  entries.EncodeTo(bytes);
  const IndexLog::Ticket ticket = log->Append(IndexLog::Kind::kEntries, bytes);
  if (ticket == 0) return false;
  needed->logged = ticket;
  if (MustBeSynced(entries)) needed->synced = ticket;
  log->Flush(needed->synced == ticket);
  return true;
}

}  // namespace skep::pool
