// loop_target.h: runs benchmarks on an index that does one operation at a time: a batch is a loop.
//
// The index is a class with
//
//   static Result<std::unique_ptr<Index>> Open(const PeerSetup& setup);
//   std::optional<uint64_t> HeldBytes() const;   all it holds, if it knows
//   uint64_t size() const;                       items
//   using Access; Access access();               what one session uses: may be Index& itself
//
// and its Access has these functions, all of which return bool; false: it failed, or the reason
// given
//
//   Read(std::string_view key, Use use)                         absent; else it called use(value)
//   Insert(std::string_view key, std::string_view value)        the key existed
//   Update(std::string_view key, std::string_view value)        absent
//   Delete(std::string_view key)                                absent
//
// and, if it has order or batches, with
//
//   Scan(std::string_view key, uint32_t items, Use use)         calls use(key, value) for at most
//                                                               `items` keys from `key` on
//   BeginBatch(bool writes), EndBatch()                         around each batch
//
// An index that cannot tell whether a key existed returns true.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "bench/answer_checksum.h"
#include "bench/peer.h"
#include "bench/resident_memory.h"

namespace skep::bench {

template <typename Index>
class LoopSession final : public YcsbSession {
 public:
  LoopSession(Index& index, const ValuePool& values) : access_(index.access()), values_(values) {}

  Status Execute(const OpStream& stream, size_t first, size_t count, Tally& tally) override {
    if (!Begin(stream, first, count)) return {Code::kIo, "the peer began no batch"};
    for (size_t i = 0; i < count; ++i) {
      const YcsbOp op = stream.at(first + i);
      if (!Do(op, first + i, i, tally)) {
        tally.CountError("a key was absent or there already, or the peer failed");
      }
    }
    if (!End()) return {Code::kIo, "the peer did not end a batch"};
    return {};
  }

 private:
  using Access = typename Index::Access;
  static constexpr bool kHasBatches = requires(Access access) { access.BeginBatch(true); };
  static constexpr bool kHasScans =
      requires(Access access) { access.Scan({}, 1, [](std::string_view, std::string_view) {}); };

  bool Begin(const OpStream& stream, size_t first, size_t count) {
    if constexpr (kHasBatches) {
      bool writes = false;
      for (size_t i = first; i < first + count; ++i) {
        const OpKind kind = stream.at(i).kind;
        writes |= kind != OpKind::kRead && kind != OpKind::kScan;
      }
      return access_.BeginBatch(writes);
    }
    return true;
  }
  bool End() {
    if constexpr (kHasBatches) return access_.EndBatch();
    return true;
  }

  // Returns false if the outcome is wrong for the operation. `number`: the operation's, in its
  // stream; it decides which value a write stores. `index`: in its batch.
  bool Do(const YcsbOp& op, size_t number, size_t index, Tally& tally) {
    switch (op.kind) {
      case OpKind::kRead:
        return Read(op.key, index, tally);
      case OpKind::kUpdate:
        return access_.Update(op.key, values_.at(number));
      case OpKind::kInsert:
        return access_.Insert(op.key, values_.at(number));
      case OpKind::kReadModifyWrite:
        return Read(op.key, index, tally) && access_.Update(op.key, values_.at(number));
      case OpKind::kDelete:
        return access_.Delete(op.key);
      case OpKind::kScan:
        return Scan(op, index, tally);
    }
    return false;
  }

  bool Read(std::string_view key, size_t index, Tally& tally) {
    return access_.Read(
        key, [&](std::string_view value) { tally.checksum += ChecksumOfValue(index, value); });
  }

  bool Scan(const YcsbOp& op, size_t index, Tally& tally) {
    if constexpr (kHasScans) {
      uint64_t sum = 0;
      uint32_t position = 0;
      const bool done =
          access_.Scan(op.key, op.scan_items, [&](std::string_view key, std::string_view value) {
            sum = AddItem(sum, key, value);
            ++position;
          });
      tally.checksum += ChecksumOfScan(index, sum);
      tally.items_scanned += position;
      return done && position != 0;
    }
    return false;
  }

  Access access_;
  const ValuePool& values_;
};

template <typename Index>
class LoopTarget final : public YcsbTarget {
 public:
  static Result<std::unique_ptr<YcsbTarget>> Open(const PeerSetup& setup) {
    auto index = Index::Open(setup);
    if (!index) return Fail(index.error());
    return std::unique_ptr<YcsbTarget>(new LoopTarget(std::move(*index), setup.values));
  }

  Result<std::unique_ptr<YcsbSession>> Connect() override {
    return std::make_unique<LoopSession<Index>>(*index_, values_);
  }

  Result<Footprint> Measure() override {
    Footprint footprint = {.bytes_per_item = std::nullopt, .rss_bytes = ResidentBytes()};
    const std::optional<uint64_t> bytes = index_->HeldBytes();
    if (bytes && index_->size() != 0) {
      footprint.bytes_per_item = static_cast<double>(*bytes) / static_cast<double>(index_->size());
    }
    return footprint;
  }

 private:
  LoopTarget(std::unique_ptr<Index> index, const ValuePool& values)
      : index_(std::move(index)), values_(values) {}

  std::unique_ptr<Index> index_;
  const ValuePool& values_;
};

}  // namespace skep::bench
