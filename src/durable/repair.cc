#include "durable/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/varint.h"
#include "durable/directory.h"
#include "durable/feed.h"
#include "durable/snapshot_reader.h"
#include "durable/snapshot_salvage.h"
#include "engine/batch_writer.h"
#include "engine/forwarding_engine.h"

namespace skep::durable {
namespace {

constexpr const char* kHole = "records of the log";

uint64_t BytesOf(const std::vector<Damage>& damages) {
  uint64_t bytes = 0;
  for (const Damage& damage : damages) bytes += damage.bytes;
  return bytes;
}

// Adds the part of the log from the position on that is left out, by segment.
void AddHole(const LogReader& reader, uint64_t position, uint64_t bytes, const char* what,
             std::vector<Damage>* damages) {
  const uint64_t end = position + bytes;
  for (const LogReader::Segment& segment : reader.segments()) {
    const uint64_t from = std::max(position, segment.begin);
    const uint64_t to = std::min(end, segment.end);
    if (from >= to) continue;
    damages->push_back(
        {.file = segment.path, .offset = from - segment.begin, .bytes = to - from, .what = what});
  }
}

// A snapshot, or the log alone, as a beginning of a repair.
struct Candidate {
  RecoveryStart start;
  std::vector<Damage> in_snapshot;
  std::vector<Damage> before_log;  // the log that is missing before its first segment
  std::vector<Damage> in_log;
  uint64_t cost() const {
    const uint64_t bytes = BytesOf(in_snapshot) + BytesOf(before_log) + BytesOf(in_log);
    return bytes + (start.is_whole ? 0 : 1);  // an empty file is damaged, but has lost no byte
  }
};

// Opens the log at the position or, if the log begins later, at its beginning.
Result<std::unique_ptr<LogReader>> OpenLog(FileSystem& files, const std::string& directory,
                                           uint64_t* position, std::vector<Damage>* damages) {
  const auto found = ListStoreFiles(files, directory);
  if (!found) return Fail(found.error());
  const auto& segments = found->segments;
  if (!segments.empty() && segments.front().begin > *position) {
    damages->push_back({.file = directory + "/" + SegmentName(*position),
                        .offset = 0,
                        .bytes = segments.front().begin - *position,
                        .what = "the log begins later than it has to"});
    *position = segments.front().begin;
  }
  return LogReader::Open(files, directory, *position);
}

// Notes the damage of the log up to the newest snapshot.
Status LookAtLog(FileSystem& files, const std::string& directory, Candidate* candidate) {
  uint64_t* const position = &candidate->start.position;
  const uint64_t to = candidate->start.newest;
  std::vector<Damage>* const damages = &candidate->in_log;
  auto opened = OpenLog(files, directory, position, &candidate->before_log);
  if (!opened) return opened.error();
  LogReader& reader = **opened;
  while (reader.position() < to) {
    const auto record = reader.Next();
    if (record && !*record) break;
    if (record) continue;
    if (record.error().code() != Code::kCorrupt) return record.error();
    const uint64_t at = reader.position();
    const auto bytes = reader.Skip();
    if (!bytes) return bytes.error();
    if (!*bytes) break;
    AddHole(reader, at, **bytes, kHole, damages);
  }
  AddMissingEnd(directory, reader.position(), to, damages);
  return {};
}

struct NamedSnapshot {
  uint64_t position = 0;
  std::string path;
};

// Returns the snapshots in the order of their positions, the newest last. A snapshot that a start
// would take for the newest by a wrong name is damage that is made good: here it has the position
// that its contents tell.
std::vector<NamedSnapshot> FindSnapshots(FileSystem& files, const std::string& directory,
                                         const std::vector<uint64_t>& named,
                                         std::vector<Damage>* made_good) {
  std::vector<NamedSnapshot> snapshots;
  std::vector<Damage> wrong;
  for (const uint64_t position : named) {
    NamedSnapshot& snapshot = snapshots.emplace_back();
    snapshot = {.position = position, .path = directory + "/" + SnapshotName(position)};
    const auto reader = SnapshotReader::Open(files, snapshot.path);
    if (reader) snapshot.position = PositionIn((*reader)->keyspaces()).value_or(position);
    if (snapshot.position == position) {
      wrong.clear();  // earlier ones are not taken for the newest
      continue;
    }
    wrong.push_back({.file = snapshot.path,
                     .offset = 0,
                     .bytes = (*reader)->file_bytes(),
                     .what = kWrongSnapshotName});
  }
  made_good->insert(made_good->end(), wrong.begin(), wrong.end());
  std::ranges::stable_sort(snapshots, {}, &NamedSnapshot::position);
  return snapshots;
}

Status LookAtSnapshot(FileSystem& files, Candidate* candidate, std::string* problem) {
  const std::string& path = candidate->start.snapshot;
  const auto salvage =
      SalvageBlocks(files, path, [](uint32_t, const SnapshotItem&) { return Status(); });
  if (!salvage) {
    *problem = fmt::format("{}: {}", path, salvage.error().ToString());
    return salvage.error();
  }
  for (const SnapshotSalvage::Loss& loss : salvage->lost) {
    candidate->in_snapshot.push_back(
        {.file = path, .offset = loss.offset, .bytes = loss.bytes, .what = "part of a snapshot"});
  }
  candidate->start.is_whole = salvage->has_footer && salvage->lost.empty();
  return {};
}

// Whether the request found no key. When it was logged it was done, so its key was there.
bool LacksItsKey(Op op, const Outcome& outcome) {
  return (op == Op::kMove || op == Op::kExpire) && outcome.verdict == Verdict::kAbsent;
}

class PatientEngine final : public ForwardingEngine {
 public:
  PatientEngine(Engine& engine, uint64_t* refused) : ForwardingEngine(engine), refused_(*refused) {}

  Version Execute(Batch& batch) override {
    BatchWriter out(batch);
    const Version ticket = inner().Execute(batch);
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      Outcome& outcome = out.outcome(slot);
      if (LackedRoomForAnswers(batch, slot)) continue;  // it is executed again
      const bool is_refused = outcome.verdict == Verdict::kRefused;
      if (is_refused && outcome.status.code() == Code::kOutOfMemory) continue;
      if (is_refused || LacksItsKey(batch.requests()[slot].op, outcome)) ++refused_;
      if (is_refused) outcome = {.verdict = Verdict::kAbsent};
    }
    return ticket;
  }

 private:
  uint64_t& refused_;
};

}  // namespace

void AddMissingEnd(const std::string& directory, uint64_t end, uint64_t newest,
                   std::vector<Damage>* damages) {
  if (end >= newest) return;
  damages->push_back({.file = directory + "/" + SegmentName(end),
                      .offset = 0,
                      .bytes = newest - end,
                      .what = "the log ends before the newest snapshot"});
}

std::set<std::string> DamagedFiles(const RepairReport& report) {
  std::set<std::string> damaged;
  for (const auto* places : {&report.lost, &report.made_good}) {
    for (const Damage& damage : *places) damaged.insert(damage.file);
  }
  return damaged;
}

Status PutAside(FileSystem& files, const std::string& directory,
                const std::set<std::string>& damaged, RepairReport* report) {
  const auto names = files.List(directory);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    if (!damaged.contains(path)) continue;
    std::string aside = path + kDamagedSuffix;
    if (const Status s = files.Rename(path, aside); !s.ok()) return s;
    report->put_aside.push_back(std::move(aside));
  }
  return files.SyncDirectory(directory);
}

Result<RecoveryStart> ChooseStart(FileSystem& files, const std::string& directory,
                                  RepairReport* report, std::string* problem) {
  const auto fail = [&](Status status) {
    if (problem->empty()) *problem = fmt::format("{}: {}", directory, status.ToString());
    return Fail(status);
  };
  const auto found = ListStoreFiles(files, directory);
  if (!found) return fail(found.error());
  const std::vector<NamedSnapshot> snapshots =
      FindSnapshots(files, directory, found->snapshots, &report->made_good);
  const uint64_t newest = snapshots.empty() ? 0 : snapshots.back().position;
  std::vector<Candidate> candidates;
  for (size_t left = snapshots.size();; --left) {
    Candidate& candidate = candidates.emplace_back();
    candidate.start.newest = newest;
    if (left > 0) {
      candidate.start.position = snapshots[left - 1].position;
      candidate.start.snapshot = snapshots[left - 1].path;
      const Status s = LookAtSnapshot(files, &candidate, problem);
      if (!s.ok()) return fail(s);
    }
    const Status s = LookAtLog(files, directory, &candidate);
    if (!s.ok()) return fail(s);
    if (left == 0 || candidate.cost() == 0) break;
  }
  const auto best = std::ranges::min_element(candidates, {}, &Candidate::cost);
  // The replay reports the damage of the log behind the position.
  report->lost = best->in_snapshot;
  report->lost.insert(report->lost.end(), best->before_log.begin(), best->before_log.end());
  for (auto at = candidates.begin(); at != candidates.end(); ++at) {
    if (at == best) continue;
    auto& to = best->cost() == 0 ? report->made_good : report->lost;
    to.insert(to.end(), at->in_snapshot.begin(), at->in_snapshot.end());
  }
  return best->start;
}

void HoleKeeper::NoteHole() {
  for (uint32_t keyspace = 0; keyspace < keyspaces_; ++keyspace) {
    const Version last = replay_.LastVersion(keyspace);
    if (last != 0) open_[keyspace] = last;
  }
}

Status HoleKeeper::Skip(LogReader& reader) {
  const uint64_t position = reader.position();
  const auto bytes = reader.Skip();
  if (!bytes) return bytes.error();
  SKEP_CHECK(*bytes);  // a bad record is damage only if a good one follows
  AddHole(reader, position, **bytes, kHole, &report_->lost);
  NoteHole();
  return {};
}

void HoleKeeper::LeaveOut(const LogReader& reader, const LogRecord& record) {
  AddHole(reader, record.position, kRecordHeaderBytes + record.payload.size(),
          "a record of the log that cannot be understood", &report_->lost);
  NoteHole();
}

// The changes become complete by a progress record that is made up for them.
Status HoleKeeper::Settle() {
  if (open_.empty()) return {};
  std::string payload = {static_cast<char>(RecordType::kProgress)};
  AppendVarint(payload, 0);
  AppendVarint(payload, open_.size());
  for (const auto& [keyspace, version] : open_) {
    AppendVarint(payload, keyspace);
    AppendVarint(payload, version);
  }
  open_.clear();
  if (const Status s = replay_.Flush(); !s.ok()) return s;
  const uint64_t before = replay_.changes();
  Status s = replay_.Add({.type = RecordType::kProgress, .payload = payload});
  if (s.ok()) s = replay_.Flush();
  report_->unconfirmed += replay_.changes() - before;
  return s;
}

std::unique_ptr<Engine> MakePatient(Engine& engine, uint64_t* refused) {
  return std::make_unique<PatientEngine>(engine, refused);
}

}  // namespace skep::durable
