#include "ranges/ranged_engine.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "ranges/range_run.h"

namespace skep::ranges {
namespace {

constexpr Status kOnePart(Code::kNotSupported,
                          "an atomic batch must be right, and lie in one range of the map");

// What all parts can do and one state of each part allows.
EngineTraits TraitsOf(const std::vector<RangePart>& parts) {
  EngineTraits all = parts[0].engine->traits();
  all.name = "ranges";
  for (const RangePart& part : parts) {
    const EngineTraits& traits = part.engine->traits();
    all.ordered &= traits.ordered;
    all.functions &= traits.functions;
    all.range_writes &= traits.range_writes;
    all.whole_batches &= traits.whole_batches;
    all.expiry &= traits.expiry;
    all.types &= traits.types;
    all.key_bytes_max = std::min(all.key_bytes_max, traits.key_bytes_max);
    all.value_bytes_max = std::min(all.value_bytes_max, traits.value_bytes_max);
    all.key_bytes_min = std::max(all.key_bytes_min, traits.key_bytes_min);
    all.value_bytes_min = std::max(all.value_bytes_min, traits.value_bytes_min);
  }
  all.atomic = all.snapshots = all.samples = all.walks = false;
  all.multi_version = all.whole_ranges = all.counts_itself = false;
  return all;
}

bool AreSound(const std::vector<RangePart>& parts) {
  const auto falls = [](const RangePart& a, const RangePart& b) { return a.lower >= b.lower; };
  return !parts.empty() && parts[0].lower.empty() &&
         std::ranges::adjacent_find(parts, falls) == parts.end();
}

}  // namespace

RangedEngine::RangedEngine(std::vector<RangePart> parts)
    : parts_(std::move(parts)), traits_(TraitsOf(parts_)) {
  SKEP_CHECK(AreSound(parts_));
}

size_t RangedEngine::PartOf(std::string_view key) const {
  const auto behind = std::ranges::upper_bound(
      parts_, key, {}, [](const RangePart& part) { return std::string_view(part.lower); });
  return static_cast<size_t>(behind - parts_.begin()) - 1;
}

size_t RangedEngine::LastPartOf(const Request& range) const {
  if (range.has(Request::kNoUpperBound)) return parts_.size() - 1;
  const size_t part = PartOf(range.other);
  return part > 0 && parts_[part].lower == range.other ? part - 1 : part;
}

bool RangedEngine::LiesIn(const Request& request, size_t part) const {
  if (request.op == Op::kDeleteAll || request.op == Op::kSample || request.op == Op::kWalk) {
    return false;
  }
  if (request.op == Op::kMove && PartOf(request.other) != part) return false;
  if (PartOf(request.key) != part) return false;
  if (!IsRange(request.op)) return true;
  return (part == 0 || !request.has(Request::kSeekFloor)) && LastPartOf(request) <= part;
}

std::optional<size_t> RangedEngine::OnlyPartOf(const Batch& batch) const {
  if (batch.empty()) return 0;
  const size_t part = PartOf(batch.requests().front().key);
  // What is atomic within its part is for the part to judge.
  EngineTraits traits = traits_;
  traits.atomic = true;
  const bool do_all = std::ranges::all_of(batch.requests(), [&](const Request& request) {
    return LiesIn(request, part) && CheckRequest(request, batch, traits).ok();
  });
  return do_all ? std::optional(part) : std::nullopt;
}

Version RangedEngine::Execute(Batch& batch) {
  if (const Status status = CheckBatch(batch, traits_); !status.ok()) {
    BatchWriter(batch).RefuseAll(status);
    return 0;
  }
  // What one part was told of the time holds in all of them.
  const uint64_t now_ms = batch.now_ms();
  batch.set_now_ms(now_.Advance(now_ms));
  if (const auto part = OnlyPartOf(batch)) {
    ExecuteWhole(*part, batch);
  } else if (batch.kind() == Batch::Kind::kAtomic) {
    BatchWriter(batch).RefuseAll(kOnePart);
  } else {
    BatchWriter out(batch);
    ExecutePoints(batch, out);
    ExecuteRanges(batch, out);
  }
  batch.set_now_ms(now_ms);
  return 0;
}

void RangedEngine::ExecuteRanges(const Batch& batch, BatchWriter& out) {
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Request& request = batch.requests()[slot];
    if (!IsRange(request.op) && request.op != Op::kDeleteAll) continue;
    if (const Status status = CheckRequest(request, batch, traits_); !status.ok()) {
      out.Refuse(slot, status);
    } else if (out.IsPostponing()) {
      out.Postpone(slot);
    } else {
      RangeRun(*this, batch, slot, out).Run();
    }
  }
}

void RangedEngine::ExecuteWhole(size_t part, Batch& batch) {
  Engine& engine = *parts_[part].engine;
  engine.AwaitRelease(engine.Execute(batch));
  if (!engine.traits().multi_version) return;
  BatchWriter out(batch, BatchWriter::KeepOutcomes{});
  for (uint32_t slot = 0; slot < batch.size(); ++slot) out.outcome(slot).version = 0;
}

// The points of a batch that one part has.
struct PartPoints {
  Batch batch;
  std::vector<uint32_t> slots;
  BegunBatch begun;
};

void RangedEngine::ExecutePoints(const Batch& batch, BatchWriter& out) {
  std::vector<PartPoints> all(parts_.size());
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    const Request& request = batch.requests()[slot];
    if (IsRange(request.op) || request.op == Op::kDeleteAll) continue;
    if (const Status status = CheckRequest(request, batch, traits_); !status.ok()) {
      out.Refuse(slot, status);
      continue;
    }
    PartPoints& points = all[PartOf(request.key)];
    points.batch.Add(request);
    points.slots.push_back(slot);
  }
  for (size_t part = 0; part < parts_.size(); ++part) {
    Batch& points = all[part].batch;
    if (points.empty()) continue;
    points.set_now_ms(batch.now_ms());
    points.set_answer_bytes_max(batch.answer_bytes_max());
    points.set_returned_bytes_max(batch.returned_bytes_max());
    points.set_work_bytes_max(batch.work_bytes_max());
    points.set_notes_effects(out.notes_effects());
    all[part].begun = parts_[part].engine->Begin(points);
  }
  for (size_t part = 0; part < parts_.size(); ++part) {
    PartPoints& points = all[part];
    if (points.batch.empty()) continue;
    parts_[part].engine->AwaitRelease(Finish(std::move(points.begun)));
    const size_t copied_before = batch.work_bytes();
    for (uint32_t i = 0; i < points.slots.size(); ++i) {
      const bool is_too_much = batch.answer_bytes() > batch.answer_bytes_max();
      if (is_too_much && points.batch.requests()[i].op == Op::kGet) {
        out.RefuseAnswer(points.slots[i]);
        continue;
      }
      CopyOutcome(points.batch, i, out, points.slots[i]);
      out.outcome(points.slots[i]).version = 0;
    }
    for (const Effect& effect : points.batch.effects()) {
      out.NoteAgain(points.slots[effect.slot], effect);
    }
    const size_t copied = batch.work_bytes() - copied_before;
    out.CountWork(points.batch.work_bytes() - std::min(copied, points.batch.work_bytes()));
    points.batch = Batch();
  }
}

Result<SnapshotRef> RangedEngine::OpenSnapshot(uint64_t) {
  return Fail(Code::kNotSupported, "a keyspace of several ranges has no snapshots");
}

Result<uint64_t> RangedEngine::Watch(std::string_view, uint64_t) {
  return Fail(Code::kNotSupported, "a keyspace of several ranges has no watches");
}

void RangedEngine::ObserveExpiry(ExpiryObserver* observer) {
  for (const RangePart& part : parts_) ObserveExpiryOf(*part.engine, observer);
}

bool RangedEngine::Maintain(uint64_t now_ms) {
  bool has_more = false;
  for (const RangePart& part : parts_) has_more |= part.engine->Maintain(now_ms);
  return has_more;
}

EngineStatistics RangedEngine::Statistics() const {
  EngineStatistics all;
  std::set<Engine*> engines;  // one may have several parts
  for (const RangePart& part : parts_) {
    if (!engines.insert(part.engine).second) continue;
    const EngineStatistics one = part.engine->Statistics();
    all.items += one.items;
    all.deadlines += one.deadlines;
    all.expired_keys += one.expired_keys;
    all.bytes += one.bytes;
    all.old_versions += one.old_versions;
  }
  return all;
}

void RangedEngine::Describe(uint64_t now_ms, const StatsVisitor& visit) const {
  visit("ranges", parts_.size());
  for (size_t part = 0; part < parts_.size(); ++part) {
    const std::string prefix = "range" + std::to_string(part) + "_";
    parts_[part].engine->Describe(now_ms, [&](std::string_view name, uint64_t value) {
      visit(prefix + std::string(name), value);
    });
  }
}

const char* RangedEngine::Verify() const {
  for (const RangePart& part : parts_) {
    if (const char* const broken = part.engine->Verify()) return broken;
  }
  return nullptr;
}

void RangedEngine::StartAfter(Version version, uint64_t now_ms) {
  for (const RangePart& part : parts_) part.engine->StartAfter(version, now_ms);
}

Result<std::unique_ptr<PairIterator>> RangedEngine::OpenPairIterator(uint64_t) {
  return Fail(Code::kNotSupported, "a keyspace of several ranges has no snapshots");
}

}  // namespace skep::ranges
