// paper_layout_test_node.h: nodes, keys and values for the tests of PaperLayout.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/check.h"
#include "base/memory_budget.h"
#include "base/random.h"
#include "btree/paper_layout.h"

namespace skep::btree {

// A value as its user knows it.
struct PlainValue {
  std::string bytes;
  uint64_t deadline_ms = 0;  // 0: none
  friend bool operator==(const PlainValue&, const PlainValue&) = default;
};

// An arena and the codec over it; makes stored keys and values, which live as long as it.
class TestStore {
 public:
  explicit TestStore(const Geometry& geometry)
      : arena_({.budget = &budget_, .pages = Pages::kPlain, .region_bytes = uint64_t{1} << 30}) {
    codec_.geometry = geometry;
    codec_.arena = &arena_;
  }
  ~TestStore() { arena_.Flush(cache_); }

  const Codec& codec() const { return codec_; }
  const Geometry& geometry() const { return codec_.geometry; }

  StoredKey Key(std::string_view key) {
    if (key.size() <= geometry().key_inline_max()) return {.bytes = scratch_.Copy(key)};
    const uint32_t head = geometry().long_key_head_bytes();
    return {.bytes = WithStub(key.substr(0, head), key.substr(head), key.size()), .outside = true};
  }

  StoredValue Value(const PlainValue& value) {
    std::string front;
    if (value.deadline_ms != 0) {
      front.assign(1 + kDeadlineBytes, '\x07');
      std::memcpy(front.data() + 1, &value.deadline_ms, kDeadlineBytes);
    }
    StoredValue stored = {.has_metadata = !front.empty()};
    stored.outside = front.size() + value.bytes.size() > geometry().value_inline_max();
    stored.bytes = stored.outside ? WithStub(front, value.bytes, value.bytes.size())
                                  : scratch_.Concat(front, value.bytes);
    return stored;
  }

  std::string Whole(const StoredKey& stored) {
    Scratch scratch;
    const std::string whole(codec_.Whole(stored, scratch));
    SKEP_CHECK(codec_.SizeOf(stored) == whole.size());
    return whole;
  }
  PlainValue Whole(const StoredValue& stored) {
    PlainValue value = {.bytes = std::string(codec_.Whole(stored))};
    SKEP_CHECK(codec_.SizeOf(stored) == value.bytes.size());
    value.deadline_ms = DeadlineOf(stored);
    return value;
  }

 private:
  std::string_view WithStub(std::string_view front, std::string_view outside, size_t size) {
    const ArenaAddress block =
        arena_.Allocate(cache_, kOutsideHeaderBytes + outside.size(), Arena::Limit::kObey);
    SKEP_CHECK(block);
    std::memcpy(arena_.At(block) + kOutsideHeaderBytes, outside.data(), outside.size());
    char* const at = scratch_.Allocate(front.size() + kStubBytes);
    if (!front.empty()) std::memcpy(at, front.data(), front.size());
    WriteStub(at + front.size(), {.size = static_cast<uint32_t>(size), .block = block});
    return {at, front.size() + kStubBytes};
  }

  MemoryBudget budget_;
  Arena arena_;
  Arena::Cache cache_;
  Scratch scratch_;
  Codec codec_;
};

// A node in a heap block of exactly the bytes it uses, so that AddressSanitizer sees whoever reads
// beyond them.
class TestNode {
 public:
  explicit TestNode(const Codec& codec, Version version = 0) : codec_(codec) {
    // Zeros, as building leaves the unused part of the shortcut block alone.
    bytes_.reset(static_cast<std::byte*>(std::calloc(codec.geometry.node_bytes, 1)));
    new (bytes_.get()) NodeHeader{};
    node()->version.store(version);
  }

  void BuildLeaf(std::span<const PaperLayout::LeafItem> items,
                 const PaperLayout::Fences& fences = {}) {
    Resize(PaperLayout::BuildLeaf(codec_, items, fences, node()));
  }
  void BuildInner(Link leftmost, std::span<const PaperLayout::InnerItem> items,
                  const PaperLayout::Fences& fences = {}) {
    Resize(PaperLayout::BuildInner(codec_, 1, leftmost, items, fences, node()));
  }

  bool HasRoomFor(const StoredKey& key, const StoredValue* value) const {
    return used_ + PaperLayout::LogItemBytes(key, value) <= codec_.geometry.node_bytes &&
           leaf().log_items() < PaperLayout::kLogItemsMax;
  }
  // As a writer would. `whole` is `key` as its user knows it; null `value`: a delete marker.
  void Append(std::string_view whole, const StoredKey& key, const StoredValue* value,
              uint64_t delta) {
    const PaperLayout::Found at = leaf().Find(whole);
    const uint32_t item = used_;
    const uint32_t end = item + PaperLayout::LogItemBytes(key, value);
    Resize(end);
    SKEP_CHECK(PaperLayout::AppendToLog(codec_, node(), item, at, key, value) == end);
    if (value != nullptr) PaperLayout::LowerDeadline(codec_, node(), DeadlineOf(*value));
    PaperLayout::SetLogVersion(node(), item, delta);
  }

  PaperLayout::Leaf leaf(Version read_version = PaperLayout::Leaf::kNewest,
                         uint64_t now_ms = PaperLayout::Leaf::kNoTime) const {
    return PaperLayout::Leaf(codec_, node(), used_, read_version, now_ms);
  }
  PaperLayout::Inner inner() const { return PaperLayout::Inner(codec_, node()); }
  const char* Check() const { return PaperLayout::Check(codec_, node(), used_); }

  NodeHeader* node() { return reinterpret_cast<NodeHeader*>(bytes_.get()); }
  const NodeHeader* node() const { return reinterpret_cast<const NodeHeader*>(bytes_.get()); }
  uint32_t used() const { return used_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  void Resize(uint32_t bytes) {
    bytes_.reset(static_cast<std::byte*>(std::realloc(bytes_.release(), bytes)));
    used_ = bytes;
  }

  const Codec codec_;
  std::unique_ptr<std::byte, Free> bytes_;
  uint32_t used_ = 0;
};

// Random bytes of a small alphabet, which holds the extremes: keys collide, have long common
// prefixes and are prefixes of each other.
inline std::string RandomBytes(Random& random, size_t size) {
  static constexpr char kAlphabet[] = {'\0', '\x01', 'a', 'b', '\x7f', '\x80', '\xff'};
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = kAlphabet[random.Below(sizeof(kAlphabet))];
  return bytes;
}

}  // namespace skep::btree
