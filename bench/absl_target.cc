#include "bench/absl_target.h"

#include <absl/container/btree_map.h>

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <utility>

#include "bench/answer_checksum.h"
#include "bench/huge_page_heap.h"
#include "bench/resident_memory.h"

namespace skep::bench {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);
constexpr size_t kWordsMax = 4;
static_assert(std::endian::native == std::endian::little);

// The bytes of a key as big-endian words: their order is memcmp's.
template <size_t kWords>
struct WordKey {
  static WordKey Of(std::string_view bytes) {
    std::array<uint64_t, kWords> words;
    std::memcpy(words.data(), bytes.data(), sizeof(words));
    return {.words = Swapped(words)};
  }
  std::array<char, kWords * kWordBytes> Bytes() const {
    return std::bit_cast<std::array<char, kWords * kWordBytes>>(Swapped(words));
  }
  friend bool operator<(const WordKey& a, const WordKey& b) {
    for (size_t i = 0; i + 1 < kWords; ++i) {
      if (a.words[i] != b.words[i]) return a.words[i] < b.words[i];
    }
    return a.words[kWords - 1] < b.words[kWords - 1];
  }

  std::array<uint64_t, kWords> words;

 private:
  static std::array<uint64_t, kWords> Swapped(std::array<uint64_t, kWords> words) {
    for (uint64_t& word : words) word = __builtin_bswap64(word);
    return words;
  }
};

template <size_t kWords>
struct FixedValue {
  static FixedValue Of(std::string_view bytes) {
    FixedValue value;
    std::memcpy(value.bytes.data(), bytes.data(), value.bytes.size());
    return value;
  }
  std::string_view view() const { return {bytes.data(), bytes.size()}; }

  std::array<char, kWords * kWordBytes> bytes;
};

template <size_t kKeyWords, size_t kValueWords>
class AbslSession final : public YcsbSession {
 public:
  using Key = WordKey<kKeyWords>;
  using Value = FixedValue<kValueWords>;
  using Map =
      absl::btree_map<Key, Value, std::less<Key>, HugePageAllocator<std::pair<const Key, Value>>>;

  AbslSession(Map& map, const ValuePool& values) : map_(map), values_(values) {}

  Status Execute(const OpStream& stream, size_t first, size_t count, Tally& tally) override {
    for (size_t i = 0; i < count; ++i) {
      const YcsbOp op = stream.at(first + i);
      const std::string_view value = values_.at(first + i);
      if (!Do(op, value, i, tally)) tally.CountError("a key was absent or there already");
    }
    return {};
  }

 private:
  // False if the outcome is not what the operation must get.
  bool Do(const YcsbOp& op, std::string_view value, size_t index, Tally& tally) {
    const Key key = Key::Of(op.key);
    switch (op.kind) {
      case OpKind::kRead:
        return Read(key, index, tally);
      case OpKind::kUpdate:
        return Update(key, value);
      case OpKind::kInsert:
        return map_.emplace(key, Value::Of(value)).second;
      case OpKind::kReadModifyWrite:
        return Read(key, index, tally) && Update(key, value);
      case OpKind::kDelete:
        return map_.erase(key) == 1;
      case OpKind::kScan:
        return Scan(key, op.scan_items, index, tally);
    }
    return false;
  }

  bool Read(const Key& key, size_t index, Tally& tally) const {
    const auto at = map_.find(key);
    if (at == map_.end()) return false;
    tally.checksum += ChecksumOfValue(index, at->second.view());
    return true;
  }

  bool Update(const Key& key, std::string_view value) {
    const auto at = map_.find(key);
    if (at == map_.end()) return false;
    at->second = Value::Of(value);
    return true;
  }

  bool Scan(const Key& key, uint32_t items, size_t index, Tally& tally) const {
    uint64_t sum = 0;
    uint32_t position = 0;
    for (auto at = map_.lower_bound(key); position < items && at != map_.end(); ++at) {
      const auto bytes = at->first.Bytes();
      sum += ChecksumOfItem(position++, {bytes.data(), bytes.size()}, at->second.view());
    }
    tally.checksum += ChecksumOfScan(index, sum);
    tally.items_scanned += position;
    return position != 0;
  }

  Map& map_;
  const ValuePool& values_;
};

template <size_t kKeyWords, size_t kValueWords>
class AbslTarget final : public YcsbTarget {
 public:
  using Session = AbslSession<kKeyWords, kValueWords>;
  using Map = Session::Map;

  AbslTarget(std::unique_ptr<HugePageHeap> heap, const ValuePool& values)
      : heap_(std::move(heap)),
        map_(std::less<typename Session::Key>(), typename Map::allocator_type(*heap_)),
        values_(values) {}

  Result<std::unique_ptr<YcsbSession>> Connect() override {
    return std::make_unique<Session>(map_, values_);
  }

  Result<Footprint> Measure() override {
    Footprint footprint = {.bytes_per_item = std::nullopt, .rss_bytes = ResidentBytes()};
    if (!map_.empty()) {
      footprint.bytes_per_item =
          static_cast<double>(heap_->held_bytes()) / static_cast<double>(map_.size());
    }
    return footprint;
  }

 private:
  std::unique_ptr<HugePageHeap> heap_;
  Map map_;
  const ValuePool& values_;
};

using MakeTarget = std::unique_ptr<YcsbTarget> (*)(std::unique_ptr<HugePageHeap> heap,
                                                   const ValuePool& values);

// One maker for each pair of sizes: keys of 1 word with values of 1, 2, ..., keys of 2 words, ...
template <size_t... kIndex>
constexpr std::array<MakeTarget, sizeof...(kIndex)> MakersOf(std::index_sequence<kIndex...>) {
  return {[](std::unique_ptr<HugePageHeap> heap,
             const ValuePool& values) -> std::unique_ptr<YcsbTarget> {
    using Target = AbslTarget<kIndex / kWordsMax + 1, kIndex % kWordsMax + 1>;
    return std::make_unique<Target>(std::move(heap), values);
  }...};
}

bool IsWords(size_t bytes) {
  return bytes % kWordBytes == 0 && bytes > 0 && bytes <= kWordsMax * kWordBytes;
}

// Only address space: twice what a tree takes whose nodes were all left with the fewest items.
size_t CapacityOf(size_t item_bytes, uint64_t items) {
  return items * item_bytes * 8 + PageRegion::kHugePageBytes;
}

}  // namespace

Result<std::unique_ptr<YcsbTarget>> OpenAbslTarget(size_t key_bytes, const ValuePool& values,
                                                   uint64_t items_max) {
  static constexpr auto kMakers = MakersOf(std::make_index_sequence<kWordsMax * kWordsMax>());
  const size_t value_bytes = values.value_bytes();
  if (!IsWords(key_bytes) || !IsWords(value_bytes)) {
    return Fail(Code::kNotSupported, "absl: keys and values are of 8, 16, 24 or 32 bytes");
  }
  auto heap = HugePageHeap::Open(CapacityOf(key_bytes + value_bytes, items_max));
  if (!heap) return Fail(heap.error());
  const size_t key_words = key_bytes / kWordBytes;
  const size_t value_words = value_bytes / kWordBytes;
  return kMakers[(key_words - 1) * kWordsMax + value_words - 1](std::move(*heap), values);
}

}  // namespace skep::bench
