// read_run.h: executes runs of consecutive gets: of an unordered batch, or of PlainGets.
//
//   window of up to 256 gets
//     hash, sort by partition
//     fetch the buckets
//     look, partition by partition    gets of inline pairs of these buckets are answered
//     fetch what buckets lead to      records, chained buckets
//     go on, partition by partition   gets of these are answered; so on, some steps along chains
//     finish, partition by partition  the rest, if any
//
// Each step locks a partition for as long as it needs it. If the table changes between two steps,
// the remaining gets are done by the last step, which relies on no earlier one. Gets change
// nothing, so their order does not matter.
//
// The gets have one of two forms: BatchGets, requests and outcomes of a batch, and ManyGets, keys
// and answers of 16 bytes (engine/plain_gets.h). The run asks a form for
//   key(slot)                          the key of a get
//   IsFull()                           whether inline pairs are left to the last step, too
//   values()                           the memory of the answers
//   TellInline(slot, copy)             answers with a copy of the value of a pair that has no
//                                      deadline; returns how many of its bytes are to be kept
//   Tell(slot, found, now_ms)          answers with what the table has of the key
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/batch_writer.h"
#include "engine/plain_gets.h"
#include "engine/point.h"
#include "hash/bucket_probe.h"
#include "hash/core.h"

namespace skep::hash {

// The gets of an unordered batch.
class BatchGets {
 public:
  BatchGets(const Batch& batch, const EngineTraits& traits, BatchWriter& out)
      : requests_(batch.requests()), traits_(traits), out_(out) {}

  // Returns how many gets, up to a window, a run can take from this slot on; 0 if they are too few
  // to be worth a run and the batch has more requests after them.
  uint32_t CountFrom(uint32_t slot) const;

  std::string_view key(uint32_t slot) const { return requests_[slot].key; }
  bool IsFull() const { return out_.IsFull(); }
  Scratch& values() const { return out_.scratch(); }
  size_t TellInline(uint32_t slot, std::string_view copy) const {
    Outcome& outcome = out_.outcome(slot);
    outcome.verdict = Verdict::kDone;
    outcome.present = true;
    if (requests_[slot].has(Request::kNoValue)) {
      outcome.integer = static_cast<int64_t>(copy.size());
      return 0;
    }
    outcome.value = copy;
    return copy.size();
  }
  void Tell(uint32_t slot, const std::optional<PointState>& found, uint64_t now_ms) const {
    ApplyGet(requests_[slot], found, now_ms, out_, slot);
  }

 private:
  const std::span<const Request> requests_;
  const EngineTraits& traits_;
  BatchWriter& out_;
};

// The gets of PlainGets::GetManyPlain.
class ManyGets {
 public:
  ManyGets(std::span<const std::string_view> keys, const EngineTraits& traits,
           std::span<GetAnswer> answers, const PlainValues& values)
      : keys_(keys), traits_(traits), answers_(answers), values_(values) {}

  std::string_view key(uint32_t slot) const { return keys_[slot]; }
  bool IsFull() const { return !values_.HasRoomFor(1); }
  Scratch& values() const { return values_.at; }
  size_t TellInline(uint32_t slot, std::string_view copy) const {
    answers_[slot] = AnswerOf(copy);
    return copy.size();
  }
  void Tell(uint32_t slot, const std::optional<PointState>& found, uint64_t) const {
    if (found && found->deadline_ms == 0 && values_.HasRoomFor(found->value.size())) {
      answers_[slot] = AnswerOf(values_.at.Copy(found->value));
    } else if (!found && keys_[slot].size() <= traits_.key_bytes_max) {
      answers_[slot].verdict = Verdict::kAbsent;
    }
  }

 private:
  const std::span<const std::string_view> keys_;
  const EngineTraits& traits_;
  const std::span<GetAnswer> answers_;
  const PlainValues values_;
};

// The memory of a window: too large to be made anew for each batch.
struct ReadWindow {
  std::array<uint64_t, kWindow> heads;
  std::array<uint64_t, kWindow> hashes;
  LinesToFetch lines;
  BucketProbe bucket_probe;
};

// Owner: one execution of one batch, or one call.
template <class Gets>
class ReadRun {
 public:
  // The groups and the window must not be in use.
  ReadRun(Core& core, const Gets& gets, Groups& groups, ReadWindow& window)
      : core_(core), gets_(gets), groups_(groups), window_(window) {}

  // Answers `count` gets, at most a window, from this slot on.
  void Do(uint32_t slot, uint32_t count);
  // Returns the ticket of all gets that are done.
  Version ticket() const { return ticket_; }

 private:
  Key KeyAt(uint32_t place) const {
    return {gets_.key(begin_ + place), window_.hashes[place], window_.heads[place]};
  }
  void Sort(uint32_t count);
  void Look(Table& table, Groups::Group& group);
  void GoOn(Table& table, Groups::Group& group);
  bool Follow(const Table& table, uint16_t place, uint64_t now_ms);
  void Finish(Table& table, const Groups::Group& group);
  void Get(Table& table, const Key& key, uint32_t slot, uint64_t now_ms);
  void Note(const Partition& partition) {
    if (core_.numbers.wanted()) ticket_ = std::max(ticket_, partition.number);
  }

  Core& core_;
  const Gets gets_;
  Groups& groups_;
  ReadWindow& window_;
  uint32_t begin_ = 0;  // the slot of the window's first get
  uint32_t left_ = 0;   // how many gets of the window are not answered yet
  Version ticket_ = 0;
};

}  // namespace skep::hash
