#include "server/portions.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "server/command.h"
#include "server/type_args.h"
#include "server/zset_replies.h"
#include "types/sorted_set.h"
#include "types/text.h"

namespace skep {
namespace {

// ---- Members in their order ----

class MemberPortions final : public Portions {
 public:
  enum class Shape : uint8_t { kMap, kFields, kValues, kSet };

  MemberPortions(std::string_view key, Shape shape)
      : key_(key),
        shape_(shape),
        length_(TypeFunctionNamed(shape == Shape::kSet ? "set-length" : "hash-length")),
        scan_(TypeFunctionNamed(shape == Shape::kSet ? "set-scan" : "hash-scan")) {}

  void Plan(Batch& batch) override {
    if (state_ == State::kAsksLength) {
      batch.Apply(key_, length_, {});
      return;
    }
    const std::string_view words[] = {from_, "9223372036854775807"};
    batch.Apply(key_, scan_, types::JoinTexts(words, batch.scratch()));
  }

  bool Reply(const Call& call, const Batch& batch) override {
    const Outcome& out = batch.outcome(0);
    if (state_ == State::kAsksLength) {
      // The fields of a hash are counted one by one if some may be due.
      if (!out.more) return Begin(call, static_cast<uint64_t>(out.integer));
      state_ = State::kCounts;
      return true;
    }
    std::string_view rest = out.value;
    std::optional<std::string_view> next;
    std::vector<std::string_view> texts;
    types::TakeMaybeText(rest, &next);
    types::TakeTexts(rest, &texts);
    if (state_ == State::kCounts) {
      counted_ += texts.size() / (shape_ == Shape::kSet ? 1 : 2);
    } else {
      Send(call.reply(), texts);
    }
    from_ = next.value_or("");
    if (next) return true;
    return state_ == State::kCounts && Begin(call, counted_);
  }

 private:
  enum class State : uint8_t { kAsksLength, kCounts, kSends };

  bool Begin(const Call& call, uint64_t members) {
    RespWriter reply = call.reply();
    switch (shape_) {
      case Shape::kMap:
        reply.Map(members);
        break;
      case Shape::kSet:
        reply.Set(members);
        break;
      default:
        reply.Array(members);
    }
    state_ = State::kSends;
    return members > 0;
  }

  void Send(RespWriter reply, const std::vector<std::string_view>& texts) const {
    const size_t step = shape_ == Shape::kFields || shape_ == Shape::kValues ? 2 : 1;
    for (size_t i = shape_ == Shape::kValues ? 1 : 0; i < texts.size(); i += step) {
      reply.Bulk(texts[i]);
    }
  }

  const std::string key_;
  const Shape shape_;
  const Function* const length_;
  const Function* const scan_;
  State state_ = State::kAsksLength;
  uint64_t counted_ = 0;
  std::string from_;
};

// ---- Elements by their places ----

// The places are indexes of a list, or ranks, from the first or from the last one on.
class PlacePortions : public Portions {
 public:
  void Plan(Batch& batch) final {
    if (!has_begun_) return PlanCount(batch);
    PlanPlaces(batch, at_, at_ + std::min(step_, end_ - at_) - 1);
  }

  bool Reply(const Call& call, const Batch& batch) final {
    if (!has_begun_) {
      const auto [begin, end] = PlacesOf(batch);
      at_ = begin;
      end_ = std::max(begin, end);
      has_begun_ = true;
      Begin(call, end_ - at_);
      return at_ < end_;
    }
    const Outcome& out = batch.outcome(0);
    if (out.more) {
      step_ = std::max<uint64_t>(step_ / 2, 1);
      return true;
    }
    at_ += std::min(step_, end_ - at_);
    Send(call, out);
    if (out.value.size() < kPortionBytesMax / 4) step_ = std::min(2 * step_, kStepMax);
    return at_ < end_;
  }

 protected:
  struct Places {
    uint64_t begin, end;
  };

  virtual void PlanCount(Batch& batch) const = 0;
  // The places that are wanted, by the outcomes of the count.
  virtual Places PlacesOf(const Batch& batch) const = 0;
  virtual void PlanPlaces(Batch& batch, uint64_t first, uint64_t last) const = 0;
  virtual void Begin(const Call& call, uint64_t elements) const = 0;
  virtual void Send(const Call& call, const Outcome& out) const = 0;

  // Those from `first` to `last` of so many; below 0: from the end.
  static Places Clip(int64_t first, int64_t last, int64_t members) {
    const int64_t from = std::max<int64_t>(first < 0 ? first + members : first, 0);
    const int64_t to = std::min(last < 0 ? last + members : last, members - 1);
    if (from > to) return {0, 0};
    return {static_cast<uint64_t>(from), static_cast<uint64_t>(to) + 1};
  }

 private:
  static constexpr uint64_t kStepMax = 4096;

  bool has_begun_ = false;
  uint64_t at_ = 0;
  uint64_t end_ = 0;
  uint64_t step_ = 256;
};

class ListPortions final : public PlacePortions {
 public:
  ListPortions(std::string_view key, int64_t first, int64_t last)
      : key_(key), first_(first), last_(last) {}

 protected:
  void PlanCount(Batch& batch) const override {
    static const Function* const length = TypeFunctionNamed("list-length");
    batch.Apply(key_, length, {});
  }
  Places PlacesOf(const Batch& batch) const override {
    return Clip(first_, last_, batch.outcome(0).integer);
  }
  void PlanPlaces(Batch& batch, uint64_t first, uint64_t last) const override {
    static const Function* const range = TypeFunctionNamed("list-range");
    const std::string numbers[] = {std::to_string(first), std::to_string(last)};
    const std::string_view words[] = {numbers[0], numbers[1]};
    batch.Apply(key_, range, types::JoinTexts(words, batch.scratch()));
  }
  void Begin(const Call& call, uint64_t elements) const override { call.reply().Array(elements); }
  void Send(const Call& call, const Outcome& out) const override {
    for (const std::string_view text : TextsOf(out)) call.reply().Bulk(text);
  }

 private:
  const std::string key_;
  const int64_t first_, last_;
};

class EntryPortions final : public PlacePortions {
 public:
  EntryPortions(std::string_view key, const EntryRange& range)
      : key_(key), range_(range), low_(range.low), high_(range.high) {}

 protected:
  using By = types::RangeRequest::By;

  void PlanCount(Batch& batch) const override {
    if (!range_.is_by_score) {
      static const Function* const length = TypeFunctionNamed("zset-length");
      batch.Apply(key_, length, {});
      return;
    }
    // How many are in the bounds, and how many before them.
    CountScores(batch, low_, high_);
    const auto beyond = [](const std::string& bound) {
      return bound.starts_with('(') ? bound.substr(1) : "(" + bound;
    };
    range_.reverse ? CountScores(batch, beyond(high_), "+inf")
                   : CountScores(batch, "-inf", beyond(low_));
  }

  Places PlacesOf(const Batch& batch) const override {
    if (!range_.is_by_score) {
      return Clip(*ParseInt64(low_), *ParseInt64(high_), batch.outcome(0).integer);
    }
    const auto found = static_cast<uint64_t>(batch.outcome(0).integer);
    const auto before = static_cast<uint64_t>(batch.outcome(1).integer);
    if (range_.offset < 0 || static_cast<uint64_t>(range_.offset) >= found) return {0, 0};
    const auto offset = static_cast<uint64_t>(range_.offset);
    const uint64_t left = found - offset;
    const uint64_t wanted =
        range_.count < 0 ? left : std::min(left, static_cast<uint64_t>(range_.count));
    return {before + offset, before + offset + wanted};
  }

  void PlanPlaces(Batch& batch, uint64_t first, uint64_t last) const override {
    static const Function* const range = TypeFunctionNamed("zset-range");
    const types::RangeRequest request = {.by = By::kRank, .reverse = range_.reverse};
    batch.Apply(key_, range,
                types::WriteRangeRequest(request, std::to_string(first), std::to_string(last),
                                         batch.scratch()));
  }

  void Begin(const Call& call, uint64_t entries) const override {
    ReplyEntriesHead(call, entries, range_.with_scores, true);
  }
  void Send(const Call& call, const Outcome& out) const override {
    for (const types::Entry& entry : EntriesOf(out)) {
      ReplyEntry(call, entry, range_.with_scores, true);
    }
  }

 private:
  void CountScores(Batch& batch, std::string_view low, std::string_view high) const {
    static const Function* const count = TypeFunctionNamed("zset-count");
    batch.Apply(key_, count,
                types::WriteRangeRequest({.by = By::kScore}, low, high, batch.scratch()));
  }

  const std::string key_;
  const EntryRange range_;  // but for its bounds
  const std::string low_, high_;
};

}  // namespace

bool PortionedReply::Open(const ServerCall& call, Engine& engine) {
  const auto ref = engine.OpenSnapshot(call.time_ms());
  if (!ref) {
    call.Error(ref.error());
    return false;
  }
  snapshot_ = Snapshot(engine, *ref);
  ref_ = *ref;
  return true;
}

bool PortionedReply::Step(const ServerCall& call, Engine& engine) {
  if (ref_.id == 0) {
    waits_ = !call.session().marks.empty();
    if (waits_) return true;
    if (!Open(call, engine)) return false;
  }
  Batch batch(Batch::Kind::kAtomic);
  batch.set_snapshot(ref_);
  batch.set_portion_bytes_max(kPortionBytesMax);
  portions_->Plan(batch);
  call.Await(engine, call.turn().ExecuteAlone(engine, batch));
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    if (batch.outcome(slot).verdict != Verdict::kRefused) continue;
    if (!has_begun_) {
      call.Error(batch.outcome(slot).status);
    } else {
      is_broken_ = true;
      call.session().closing = true;
    }
    return false;
  }
  const size_t before = call.session().out.size();
  const bool goes_on = portions_->Reply(call, batch);
  const size_t made = call.session().out.size() - before;
  has_begun_ |= made > 0;
  call.turn().CountWork(made);
  return goes_on;
}

std::unique_ptr<Portions> PortionsOfHash(const Call& call) {
  using Shape = MemberPortions::Shape;
  const std::string_view name = call.command().name;
  const Shape shape = name == "hkeys"   ? Shape::kFields
                      : name == "hvals" ? Shape::kValues
                                        : Shape::kMap;
  return std::make_unique<MemberPortions>(call.arg(1), shape);
}

std::unique_ptr<Portions> PortionsOfSet(const Call& call) {
  return std::make_unique<MemberPortions>(call.arg(1), MemberPortions::Shape::kSet);
}

std::unique_ptr<Portions> PortionsOfList(const Call& call) {
  return std::make_unique<ListPortions>(call.arg(1), *ParseInt64(call.arg(2)),
                                        *ParseInt64(call.arg(3)));
}

std::unique_ptr<Portions> PortionsOfEntries(const Call& call, const EntryRange& range) {
  return std::make_unique<EntryPortions>(call.arg(1), range);
}

}  // namespace skep
