// items.h: the items that a scan returns.
//
// Items are not described one by one: neighbours with keys of one length and values of one length
// lie side by side in memory and are one span, so that a scan of items of one size costs little
// more than copying their bytes. Readers need not know: an ItemRange makes the items as it goes
// along.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace skep {

struct Item {
  std::string_view key;
  std::string_view value;
};

// The bytes of a span: key | value | key | value ...
struct ItemSpan {
  const char* at = nullptr;
  uint32_t count = 0;
  uint32_t key_bytes = 0;
  uint32_t value_bytes = 0;

  size_t stride() const { return size_t{key_bytes} + value_bytes; }
  const char* end() const { return at + count * stride(); }
  Item operator[](uint32_t i) const {
    const char* const item = at + i * stride();
    return {.key = {item, key_bytes}, .value = {item + key_bytes, value_bytes}};
  }
  // The first `n` items of the span; the items from number `begin` on.
  ItemSpan First(uint32_t n) const { return {at, n, key_bytes, value_bytes}; }
  ItemSpan From(uint32_t begin) const {
    return {at + begin * stride(), count - begin, key_bytes, value_bytes};
  }
};

// The items of some spans, in order. A view, and a forward range of Items, which are made on the
// fly: `for (const Item& item : items)`. Iterators may outlive the range, not the spans.
class ItemRange {
 public:
  class Iterator {
   public:
    using value_type = Item;
    using reference = Item;
    using difference_type = ptrdiff_t;
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;  // operator* does not return a reference

    Iterator() = default;

    Item operator*() const { return rest_[0]; }
    Iterator& operator++() {
      --left_;
      rest_.at += rest_.stride();
      if (--rest_.count == 0 && left_ > 0) rest_ = *next_++;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    // Compares iterators of one range.
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.left_ == b.left_; }

   private:
    friend class ItemRange;
    Iterator(const ItemSpan* span, size_t left) : left_(left) {
      if (left == 0) return;
      rest_ = *span;
      next_ = span + 1;
    }

    ItemSpan rest_;  // the rest of the current span
    const ItemSpan* next_ = nullptr;
    size_t left_ = 0;  // items from here to the end
  };

  ItemRange() = default;
  // `size` items, beginning with the first item of `spans`, none of which is empty.
  ItemRange(const ItemSpan* spans, size_t size) : begin_(spans, size) {}

  Iterator begin() const { return begin_; }
  Iterator end() const { return {}; }
  size_t size() const { return begin_.left_; }
  bool empty() const { return size() == 0; }
  Item front() const { return *begin_; }  // not if empty
  // Calls visit(const ItemSpan&) for each span of items, in order.
  template <class Visit>
  void ForEachSpan(Visit visit) const;
  // All items but the first `count`; none if there are not more. Cost: the number of spans that are
  // passed.
  ItemRange Without(size_t count) const;

 private:
  Iterator begin_;
};

template <class Visit>
void ItemRange::ForEachSpan(Visit visit) const {
  ItemSpan span = begin_.rest_;
  const ItemSpan* next = begin_.next_;
  for (size_t left = size(); left > 0; span = left > 0 ? *next++ : span) {
    const auto count = static_cast<uint32_t>(std::min<size_t>(left, span.count));
    visit(span.First(count));
    left -= count;
  }
}

}  // namespace skep
