#include "durable/replay.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/varint.h"
#include "durable/feed.h"

namespace skep::durable {
namespace {

using Kind = LogChange::Kind;

// Changes, and their bytes, that are collected before they are applied.
constexpr size_t kHeldMax = 16 * 1024;
constexpr size_t kHeldBytesMax = size_t{16} << 20;
constexpr size_t kHelpedMin = 1024;  // changes for which helpers are woken

bool IsOfOneKey(const LogChange& change) {
  return change.kind != Kind::kMove && change.kind != Kind::kEraseRange &&
         change.kind != Kind::kEraseFrom && change.kind != Kind::kEraseAll;
}

void AddTo(Batch& batch, const LogChange& change) {
  switch (change.kind) {
    case Kind::kPut:
    case Kind::kPutUntil:
    case Kind::kPutTyped:
      batch.Add({.op = Op::kPut,
                 .type = change.type,
                 .key = change.key,
                 .value = change.value,
                 .deadline_ms = change.deadline_ms});
      return;
    case Kind::kErase:
      batch.Delete(change.key);
      return;
    case Kind::kSetDeadline:
      batch.Expire(change.key, change.deadline_ms);
      return;
    case Kind::kApply:
      batch.Add({.op = Op::kApply,
                 .key = change.key,
                 .value = change.value,
                 .function = change.function,
                 .deadline_ms = change.deadline_ms});
      return;
    case Kind::kMove:
      batch.Move(change.key, change.value);
      return;
    case Kind::kEraseRange:
      batch.DeleteRange(Range::Between(change.key, change.value));
      return;
    case Kind::kEraseFrom:
      batch.DeleteRange(Range::From(change.key));
      return;
    case Kind::kEraseAll:
      batch.DeleteAll();
  }
}

// Applies the changes of a share. The operations on one key keep their order in a batch. The
// batches have no time, so no key expires in a replay; a function of a collection sees the time
// that it has seen when it was logged.
Status ApplyShare(Engine& engine, std::span<const LogChange* const> changes) {
  Feed feed(engine);
  for (const LogChange* const change : changes) {
    AddTo(feed.batch(), *change);
    const Status s = feed.Added(change->key.size() + change->value.size());
    if (!s.ok()) return s;
  }
  return feed.Finish();
}

}  // namespace

Result<Replay::Keyspace*> Replay::KeyspaceOf(uint32_t index) {
  if (const auto at = keyspaces_.find(index); at != keyspaces_.end()) return &at->second;
  const Target target = find_(index);
  if (target.engine == nullptr) {
    problem_ = fmt::format("the log has a keyspace {}, the configuration has not", index);
    return Fail(Code::kInvalidArgument, "the log has a keyspace that there is not", index);
  }
  Keyspace& keyspace = keyspaces_[index];
  keyspace.target = target;
  return &keyspace;
}

Status Replay::Add(const LogRecord& record) {
  constexpr Status kBad(Code::kCorrupt, "a record of the log is not what it should be");
  ++records_;
  switch (record.type) {
    case RecordType::kChanges:
      return Hold(record.payload);
    case RecordType::kStart: {
      std::string_view payload = record.payload.substr(1);
      uint64_t version = 0;
      if (!TakeVarint(payload, &version)) return kBad;
      if (version > kLogVersion) {
        problem_ = fmt::format("the log is of format {}, this version reads up to {}", version,
                               kLogVersion);
        return {Code::kInvalidArgument, "the log is of a newer format", version};
      }
      return Finish();
    }
    case RecordType::kProgress: {
      const auto progress = ReadProgress(record.payload);
      return progress ? Note(*progress) : kBad;
    }
    case RecordType::kEnd:
      return {};
    case RecordType::kPool:
      problem_ = "the directory is that of an index server of a pool";
      return {Code::kInvalidArgument, "the log is of a pool, not of keyspaces"};
  }
  return kBad;
}

size_t Replay::waiting() const {
  size_t records = 0;
  for (const auto& [index, keyspace] : keyspaces_) records += keyspace.payloads.size();
  return records;
}

Status Replay::Hold(std::string_view payload) {
  const auto header = ChangeDecoder::Open(payload);
  if (!header) return header.error();
  now_ms_ = std::max(now_ms_, header->now_ms());
  const auto found = KeyspaceOf(header->keyspace());
  if (!found) return found.error();
  Keyspace& keyspace = **found;
  const size_t held_before = keyspace.held.size();
  auto decoder = ChangeDecoder::Open(keyspace.payloads.emplace_back(payload));
  while (true) {
    auto change = decoder->Next();
    if (!change) {
      if (change.error().code() == Code::kInvalidArgument) {
        problem_ = fmt::format("the log has the function '{}', which is not registered",
                               decoder->missing_function());
      }
      return change.error();
    }
    if (!*change) {
      if (keyspace.held.size() == held_before) keyspace.payloads.pop_back();
      return {};
    }
    keyspace.last = std::max(keyspace.last, (*change)->version);
    const bool is_applied = (*change)->kind == Kind::kApply;
    if (is_applied && (*change)->function->type != kPlainType) {
      (*change)->deadline_ms = header->now_ms();
    }
    if ((*change)->version <= keyspace.target.has) continue;
    const std::string_view key = (*change)->key;
    const auto share = static_cast<uint32_t>(XXH3_64bits(key.data(), key.size()) % kShares);
    keyspace.held.push_back({.change = **change, .share = share});
    keyspace.held_bytes += key.size() + (*change)->value.size();
  }
}

Status Replay::Note(const Progress& progress) {
  for (const Progress::Complete& complete : progress.complete) {
    const auto found = KeyspaceOf(complete.keyspace);
    if (!found) return found.error();
    Keyspace& keyspace = **found;
    keyspace.last = std::max(keyspace.last, complete.version);
    keyspace.complete = complete.version;
    if (keyspace.held.size() < kHeldMax && keyspace.held_bytes < kHeldBytesMax) continue;
    if (const Status s = Apply(keyspace); !s.ok()) return s;
  }
  return {};
}

Status Replay::Apply(Keyspace& keyspace) {
  if (const Status s = Join(); !s.ok()) return s;
  applied_ = TakeComplete(keyspace);
  changes_ += applied_.changes.size();
  return ApplyAll();
}

Replay::Complete Replay::TakeComplete(Keyspace& keyspace) {
  auto& held = keyspace.held;
  const auto by_version = [](const Held& a, const Held& b) {
    return a.change.version < b.change.version;
  };
  if (!std::ranges::is_sorted(held, by_version)) std::ranges::stable_sort(held, by_version);
  const auto end = std::ranges::find_if(
      held, [&](const Held& h) { return h.change.version > keyspace.complete; });
  Complete complete = {.engine = keyspace.target.engine};
  std::vector<Held> rest(end, held.end());
  held.erase(end, held.end());
  complete.changes = std::exchange(held, std::move(rest));
  complete.payloads = std::exchange(keyspace.payloads, {});
  keyspace.held_bytes = 0;
  // The few changes that wait get bytes of their own.
  for (Held& h : held) {
    h.change.key = keyspace.payloads.emplace_back(h.change.key);
    h.change.value = keyspace.payloads.emplace_back(h.change.value);
    keyspace.held_bytes += h.change.key.size() + h.change.value.size();
  }
  return complete;
}

// Applies the changes in applied_. Helpers may be at work on the last ones when it returns.
Status Replay::ApplyAll() {
  const auto is_of_one_key = [](const Held& h) { return IsOfOneKey(h.change); };
  const auto end = applied_.changes.end();
  for (auto at = applied_.changes.begin(); at != end;) {
    const auto of_keys = std::find_if_not(at, end, is_of_one_key);
    if (const Status s = ApplyKeys({at, of_keys}); !s.ok()) return s;
    at = of_keys;
    if (at == end) break;
    if (const Status s = Join(); !s.ok()) return s;
    if (const Status s = ApplyAlone(*applied_.engine, (at++)->change); !s.ok()) return s;
  }
  return {};
}

// Begins to apply changes of single keys; Join() ends it.
Status Replay::ApplyKeys(std::span<const Held> changes) {
  job_.engine = applied_.engine;
  for (auto& share : job_.shares) share.clear();
  has_help_ = helper_pool_.helpers() > 0 && changes.size() >= kHelpedMin;
  // Without helpers all changes are one share, so that batches are as large as they may be.
  for (const Held& h : changes) job_.shares[has_help_ ? h.share : 0].push_back(&h.change);
  job_.statuses.fill({});
  job_.next.store(0, std::memory_order_relaxed);
  if (!has_help_) return Join();
  helper_pool_.Begin(do_shares_);
  return {};
}

void Replay::DoShares() {
  for (uint32_t i; (i = job_.next.fetch_add(1, std::memory_order_relaxed)) < kShares;) {
    job_.statuses[i] = ApplyShare(*job_.engine, job_.shares[i]);
  }
}

// Helps to apply the shares that were begun, and returns when all are applied.
Status Replay::Join() {
  DoShares();
  if (std::exchange(has_help_, false)) helper_pool_.End();
  const auto bad = std::ranges::find_if_not(job_.statuses, &Status::ok);
  return bad == job_.statuses.end() ? Status() : *bad;
}

Status Replay::ApplyAlone(Engine& engine, const LogChange& change) {
  Feed feed(engine, Batch::Kind::kAtomic);
  AddTo(feed.batch(), change);
  return feed.Finish();
}

Status Replay::Flush() {
  for (auto& [index, keyspace] : keyspaces_) {
    if (const Status s = Apply(keyspace); !s.ok()) return s;
  }
  return Join();
}

Status Replay::Finish() {
  if (const Status s = Flush(); !s.ok()) return s;
  for (auto& [index, keyspace] : keyspaces_) {
    dropped_ += keyspace.held.size();
    keyspace.held.clear();
    keyspace.held_bytes = 0;
    keyspace.payloads.clear();
  }
  return {};
}

Version Replay::LastVersion(uint32_t keyspace) const {
  const auto at = keyspaces_.find(keyspace);
  return at == keyspaces_.end() ? 0 : at->second.last;
}

}  // namespace skep::durable
