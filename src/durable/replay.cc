#include "durable/replay.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/varint.h"
#include "durable/execute_all.h"

namespace skep::durable {
namespace {

using Kind = Change::Kind;

constexpr size_t kBatchMax = 256;
constexpr size_t kBatchBytesMax = size_t{4} << 20;
// What is collected before it is applied.
constexpr size_t kHeldMax = 16 * 1024;
constexpr size_t kHeldBytesMax = size_t{16} << 20;
constexpr size_t kShareMin = 512;  // changes for which a thread is worth it

bool IsOfOneKey(const Change& change) {
  return change.kind != Kind::kMove && change.kind != Kind::kEraseRange &&
         change.kind != Kind::kEraseFrom && change.kind != Kind::kEraseAll;
}

void AddTo(Batch& batch, const Change& change) {
  switch (change.kind) {
    case Kind::kPut:
    case Kind::kPutUntil:
      batch.Add({.op = Op::kPut,
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
      batch.Apply(change.key, change.function, change.value);
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

// Those of one thread of so many. The operations on one key keep their order in a batch. Batches
// are of no time: nothing expires in a replay.
Status ApplyShare(Engine& engine, std::span<const Change> changes, size_t thread, size_t threads) {
  Batch batch;
  size_t bytes = 0;
  for (const Change& change : changes) {
    if (threads > 1 && XXH3_64bits(change.key.data(), change.key.size()) % threads != thread) {
      continue;
    }
    AddTo(batch, change);
    bytes += change.key.size() + change.value.size();
    if (batch.size() < kBatchMax && bytes < kBatchBytesMax) continue;
    if (const Status s = ExecuteAll(engine, batch); !s.ok()) return s;
    bytes = 0;
  }
  return ExecuteAll(engine, batch);
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
  }
  return kBad;
}

Status Replay::Hold(std::string_view payload) {
  const auto header = ChangeDecoder::Open(payload);
  if (!header) return header.error();
  now_ms_ = std::max(now_ms_, header->now_ms());
  const auto found = KeyspaceOf(header->keyspace());
  if (!found) return found.error();
  Keyspace& keyspace = **found;
  auto decoder = ChangeDecoder::Open(keyspace.payloads.emplace_back(payload));
  while (true) {
    const auto change = decoder->Next();
    if (!change) {
      if (change.error().code() == Code::kInvalidArgument) {
        problem_ = fmt::format("the log has the function '{}', which is not registered",
                               decoder->missing_function());
      }
      return change.error();
    }
    if (!*change) return {};
    keyspace.last = std::max(keyspace.last, (*change)->version);
    if ((*change)->version <= keyspace.target.has) continue;
    keyspace.held.push_back(**change);
    keyspace.held_bytes += (*change)->key.size() + (*change)->value.size();
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
  const Complete complete = TakeComplete(keyspace);
  changes_ += complete.changes.size();
  return ApplyAll(complete);
}

Replay::Complete Replay::TakeComplete(Keyspace& keyspace) {
  auto& held = keyspace.held;
  const auto by_version = [](const Change& a, const Change& b) { return a.version < b.version; };
  if (!std::ranges::is_sorted(held, by_version)) std::ranges::stable_sort(held, by_version);
  const auto end = std::ranges::find_if(
      held, [&](const Change& change) { return change.version > keyspace.complete; });
  Complete complete = {.engine = keyspace.target.engine};
  std::vector<Change> rest(end, held.end());
  held.erase(end, held.end());
  complete.changes = std::exchange(held, std::move(rest));
  complete.payloads = std::exchange(keyspace.payloads, {});
  keyspace.held_bytes = 0;
  // The few that wait go on in bytes of their own.
  for (Change& change : held) {
    change.key = keyspace.payloads.emplace_back(change.key);
    change.value = keyspace.payloads.emplace_back(change.value);
    keyspace.held_bytes += change.key.size() + change.value.size();
  }
  return complete;
}

Status Replay::ApplyAll(const Complete& complete) const {
  const auto end = complete.changes.end();
  for (auto at = complete.changes.begin(); at != end;) {
    const auto of_keys = std::find_if_not(at, end, IsOfOneKey);
    if (const Status s = ApplyKeys(*complete.engine, {at, of_keys}); !s.ok()) return s;
    at = of_keys;
    if (at == end) break;
    if (const Status s = ApplyAlone(*complete.engine, *at++); !s.ok()) return s;
  }
  return {};
}

Status Replay::ApplyKeys(Engine& engine, std::span<const Change> changes) const {
  const size_t threads = std::clamp<size_t>(changes.size() / kShareMin, 1, threads_);
  std::vector<Status> statuses(threads);
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) {
    others.emplace_back([&, i] { statuses[i] = ApplyShare(engine, changes, i, threads); });
  }
  statuses[0] = ApplyShare(engine, changes, 0, threads);
  for (std::thread& other : others) other.join();
  const auto bad = std::ranges::find_if_not(statuses, &Status::ok);
  return bad == statuses.end() ? Status() : *bad;
}

Status Replay::ApplyAlone(Engine& engine, const Change& change) {
  Batch batch(Batch::Kind::kAtomic);
  AddTo(batch, change);
  return ExecuteAll(engine, batch);
}

Status Replay::Flush() {
  for (auto& [index, keyspace] : keyspaces_) {
    if (const Status s = Apply(keyspace); !s.ok()) return s;
  }
  return {};
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
