// padded_engine.h: makes an engine with keys and values of 16 bytes accept shorter ones, so that
// the conformance tests can run on an engine of one size, too.
//
//   "abc"  is  a b c 0 0 0 0 0 0 0 0 0 0 0 0 3     zeros, and the length behind them
//
// Padded keys are in the order of the keys: if the first 15 bytes differ, they decide; if not, one
// key is the other with zeros behind it, and the longer one is later.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "engine/batch_writer.h"
#include "engine/forwarding_engine.h"
#include "engine/partial_batch.h"

namespace skep {

class PaddedEngine final : public ForwardingEngine {
 public:
  static constexpr size_t kBytes = 16;
  static constexpr size_t kBytesMax = kBytes - 1;

  // Functions would see padded values, so this engine has none.
  explicit PaddedEngine(std::unique_ptr<Engine> inner)
      : ForwardingEngine(std::move(inner)), traits_(TraitsOf(this->inner())), body_(*this) {}

  const EngineTraits& traits() const override { return traits_; }

  Version Execute(Batch& batch) override {
    if (const Status status = CheckBatch(batch, traits_); !status.ok()) {
      BatchWriter(batch).RefuseAll(status);
      return 0;
    }
    return ExecutePartly(body_, batch, [&](uint32_t slot) {
      const Status status = CheckRequest(batch.requests()[slot], batch, traits_);
      // The inner engine must find all other errors itself.
      const bool is_own = status.code() == Code::kTooLarge || status.code() == Code::kNotSupported;
      return is_own ? status : Status();
    });
  }
  Result<uint64_t> Watch(std::string_view key, uint64_t now_ms) override {
    if (key.size() > kBytesMax) {
      return Fail(Code::kTooLarge, "key exceeds the maximum size", kBytesMax);
    }
    return inner().Watch(Padded(key), now_ms);
  }

 private:
  // The engine that gets the padded batches.
  class Body final : public ForwardingEngine {
   public:
    explicit Body(PaddedEngine& outer) : ForwardingEngine(outer.inner()), outer_(outer) {}
    Version Execute(Batch& batch) override { return outer_.ExecutePadded(batch); }

   private:
    PaddedEngine& outer_;
  };

  static EngineTraits TraitsOf(const Engine& inner) {
    EngineTraits traits = inner.traits();
    SKEP_CHECK(traits.key_bytes_min == kBytes && traits.value_bytes_min == kBytes);
    traits.functions = false;
    traits.key_bytes_max = traits.value_bytes_max = kBytesMax;
    traits.key_bytes_min = traits.value_bytes_min = 0;
    return traits;
  }

  static std::string Padded(std::string_view bytes) {
    std::string padded(bytes);
    padded.resize(kBytesMax);
    padded.push_back(static_cast<char>(bytes.size()));
    return padded;
  }
  static std::string_view Plain(std::string_view padded) {
    return padded.substr(0, static_cast<unsigned char>(padded[kBytesMax]));
  }
  // The first padded key whose key is at or after the bound.
  static std::string PaddedBound(std::string_view bound) {
    return bound.size() <= kBytesMax ? Padded(bound)
                                     : Padded(bound.substr(0, kBytesMax)).append(1, '\0');
  }
  static std::string_view PlainBound(std::string_view bound, Scratch& scratch) {
    if (bound.empty()) return {};
    const std::string_view plain = scratch.Copy(Plain(bound.substr(0, kBytes)));
    return bound.size() == kBytes ? plain : KeyAfter(plain, scratch);
  }

  static bool ComparesValue(const Request& r) {
    return r.needs(Request::kEquals) || r.needs(Request::kDiffers) || r.op == Op::kRequireValue;
  }
  static bool ComparesDigest(const Request& r) {
    return r.needs(Request::kDigestEquals) || r.needs(Request::kDigestDiffers) ||
           r.op == Op::kRequireDigest;
  }

  // A digest can only be that of a stored value if such a value was stored.
  Digest PaddedDigest(Digest digest) {
    const MutexLock lock(mutex_);
    const auto at = digests_.find({digest.low, digest.high});
    return at == digests_.end() ? DigestOf("no value") : at->second;
  }
  void NoteValue(std::string_view value, std::string_view padded) {
    const Digest plain = DigestOf(value);
    const MutexLock lock(mutex_);
    digests_[{plain.low, plain.high}] = DigestOf(padded);
  }

  Request Translated(const Request& from, Scratch& scratch) {
    Request r = from;
    const bool is_range = IsRange(r.op);
    const bool is_of_all = r.op == Op::kDeleteAll || r.op == Op::kSample || r.op == Op::kWalk;
    const bool is_from_begin = is_range && from.key.empty();
    if (!is_of_all && !is_from_begin) {
      r.key = scratch.Copy(is_range ? PaddedBound(from.key) : Padded(from.key));
    }
    if (r.op == Op::kPut || r.op == Op::kInsert || r.op == Op::kUpdate) {
      r.value = scratch.Copy(Padded(from.value));
      NoteValue(from.value, r.value);
    }
    if (is_range) {
      r.other = scratch.Copy(PaddedBound(from.other));
    } else if (r.op == Op::kMove || ComparesValue(r)) {
      // A value longer than any stored one equals none.
      r.other = scratch.Copy(from.other.size() <= kBytesMax ? Padded(from.other) : std::string());
    } else if (ComparesDigest(r)) {
      r.digest = PaddedDigest(from.digest);
    }
    if (r.op == Op::kGet) {
      r.flags &= static_cast<uint8_t>(~(Request::kNoValue | Request::kByteRange));
    }
    return r;
  }

  Version ExecutePadded(Batch& batch) {
    Batch padded(batch.kind());
    padded.set_now_ms(batch.now_ms());
    padded.set_scan_visits_max(batch.scan_visits_max());
    padded.set_answer_bytes_max(batch.answer_bytes_max());
    padded.set_work_bytes_max(batch.work_bytes_max());
    size_t parts = 0;
    for (uint32_t slot = 0; slot < batch.size(); ++slot) {
      for (; parts < batch.part_begins().size() && batch.part_begins()[parts] == slot; ++parts) {
        padded.BeginPart();
      }
      padded.Add(Translated(batch.requests()[slot], padded.scratch()));
    }
    for (; parts < batch.part_begins().size(); ++parts) padded.BeginPart();
    const Version ticket = inner().Execute(padded);
    BatchWriter out(batch);
    out.set_applied(padded.applied());
    out.CountWork(padded.work_bytes());
    for (uint32_t slot = 0; slot < batch.size(); ++slot) Answer(batch, padded, out, slot);
    return ticket;
  }

  static void Answer(Batch& batch, const Batch& padded, BatchWriter& out, uint32_t slot) {
    const Request& r = batch.requests()[slot];
    const Outcome& from = padded.outcome(slot);
    Outcome& to = out.outcome(slot);
    to = from;
    const bool is_bound = IsRange(r.op) && from.more;
    to.value = {};
    if (is_bound) {
      to.value = PlainBound(from.value, out.scratch());
    } else if (!from.value.empty()) {
      to.value = out.scratch().Copy(Plain(from.value));
    }
    if (r.op == Op::kGet && r.has(Request::kNoValue)) {
      to.integer = static_cast<int64_t>(to.value.size());
      to.value = {};
    } else if (r.op == Op::kGet && r.has(Request::kByteRange)) {
      const auto [begin, end] = r.bytes.Of(to.value.size());
      to.value = to.value.substr(begin, end - begin);
    }
    if (r.op != Op::kScan && r.op != Op::kSample) return;
    out.BeginItems(slot);
    size_t bytes = 0;
    Item last;
    for (const Item& item : padded.items(slot)) {
      if (bytes > batch.scan_bytes_max()) {
        to.more = true;
        to.value = r.has(Request::kReverse) ? last.key : KeyAfter(last.key, out.scratch());
        return;
      }
      const auto value = item.value.empty() ? item.value : Plain(item.value);
      last = out.AddItem(slot, {.key = Plain(item.key), .value = value});
      bytes += last.key.size() + last.value.size();
    }
  }

  const EngineTraits traits_;
  Body body_;
  Mutex mutex_;
  std::map<std::pair<uint64_t, uint64_t>, Digest> digests_
      SKEP_GUARDED_BY(mutex_);  // digests of padded values, by those of the plain ones
};

}  // namespace skep
