// layout_test_node.h: nodes, keys and values for the tests of the layouts.
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
#include "btree/node.h"
#include "btree/node_items.h"
#include "btree/stored.h"

namespace skep::btree {

// A value as the user of a store has it.
struct PlainValue {
  std::string bytes;
  uint64_t deadline_ms = 0;  // 0: none
  friend bool operator==(const PlainValue&, const PlainValue&) = default;
};

// An arena and a codec over it. Makes stored keys and values, which live as long as the store.
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
    Scratch scratch;
    PlainValue value = {.bytes = std::string(codec_.Whole(stored, scratch))};
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

// A node in a heap block of exactly the bytes it uses, its front included, so that AddressSanitizer
// reports reads beyond them.
template <class Layout>
class LayoutTestNode {
 public:
  explicit LayoutTestNode(const Codec& codec, Version version = 0) : codec_(codec) {
    // Zeroed, as building may not write all parts.
    bytes_.reset(static_cast<std::byte*>(std::calloc(Layout::kFrontBytes + BytesMax(), 1)));
    new (node()) NodeHeader{};
    node()->version.store(version);
  }

  void BuildLeaf(std::span<const LeafItem> items, const Fences& fences = {}) {
    Resize(Layout::BuildLeaf(codec_, items, fences, node()));
  }
  void BuildInner(Link leftmost, std::span<const InnerItem> items, const Fences& fences = {}) {
    Resize(Layout::BuildInner(codec_, 1, leftmost, items, fences, node()));
  }

  // Allows more than a tree gives a log: all bytes that the node has left, or that the layout can
  // name.
  bool HasRoomFor(const StoredKey& key, const StoredValue* value) const {
    const uint32_t end = bytes_used() + Layout::LogItemBytes(key, value);
    return end <= BytesMax() && end - node()->log_begin <= Layout::kLogBytesMax &&
           leaf().log_items() < Layout::kLogItemsMax;
  }
  // Appends as a writer does. `whole` is `key` as the user has it; a null `value` is a delete
  // marker.
  void Append(std::string_view whole, const StoredKey& key, const StoredValue* value,
              uint64_t delta) {
    const auto at = leaf().Find(whole);
    const uint32_t before = used_;
    const uint32_t end = bytes_used() + Layout::LogItemBytes(key, value);
    Resize(end);
    const uint32_t after = Layout::AppendToLog(codec_, node(), before, at, key, value);
    SKEP_CHECK((after & kBytesMask) == end);
    if (value != nullptr) Layout::LowerDeadline(codec_, node(), DeadlineOf(*value));
    Layout::SetLogVersion(node(), before, delta);
    used_ = after;
  }

  typename Layout::Leaf leaf(Version read_version = Layout::Leaf::kNewest,
                             uint64_t now_ms = Layout::Leaf::kNoTime) const {
    return typename Layout::Leaf(codec_, node(), used_, read_version, now_ms);
  }
  typename Layout::Inner inner() const { return typename Layout::Inner(codec_, node()); }
  const char* Check() const { return Layout::Check(codec_, node(), used_); }

  NodeHeader* node() { return NodeIn(bytes_.get(), Layout::kFrontBytes); }
  const NodeHeader* node() const { return NodeIn(bytes_.get(), Layout::kFrontBytes); }
  uint32_t used() const { return used_; }  // as NodeWord::used() has it
  uint32_t bytes_used() const { return used_ & kBytesMask; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  static constexpr uint32_t kBytesMask = 0xffff;

  uint32_t BytesMax() const {
    return Layout::LeafBytesMax(codec_.geometry) + codec_.geometry.log_bytes_max;
  }
  void Resize(uint32_t bytes) {
    SKEP_CHECK(bytes <= BytesMax());  // else the test is wrong: it needs too much
    bytes_.reset(
        static_cast<std::byte*>(std::realloc(bytes_.release(), Layout::kFrontBytes + bytes)));
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
