// node_field_check.h: whether keys and values of unknown origin in a node are legal. The checkers
// of all layouts use it.
#pragma once

#include <cstdint>

#include "btree/node_field.h"

namespace skep::btree {

// Thread safety: none. Reads a field's bytes only after it has found that they end before `end`.
class FieldChecker {
 public:
  FieldChecker(const Codec& codec, const NodeHeader* node) : codec_(codec), node_(node) {}

  // Whether a key of this form lies at `at` and ends at most at `end`.
  bool IsKey(uint16_t form, uint32_t at, uint32_t end, uint32_t flags_allowed = 0) {
    if ((form & ~field::kLengthMask & ~field::kOutside & ~flags_allowed) != 0) return false;
    const uint32_t bytes = form & field::kLengthMask;
    if (at + bytes > end) return false;
    const uint32_t bytes_max = codec_.geometry.key_inline_max();
    if ((form & field::kOutside) == 0) return bytes <= bytes_max;
    has_undecided_ |= codec_.arena == nullptr;
    return bytes == bytes_max && StubOf(field::BytesAt(node_, at, bytes)).size > bytes_max;
  }

  // Likewise for a value. A value with a deadline before `deadline_min_ms` is not legal.
  bool IsValue(uint16_t form, uint32_t at, uint32_t end, uint64_t deadline_min_ms) const {
    if ((form & ~field::kLengthMask & ~field::kOutside & ~field::kMetadata) != 0) return false;
    const uint32_t bytes = form & field::kLengthMask;
    if (at + bytes > end) return false;
    uint32_t rest = bytes;
    if ((form & field::kMetadata) != 0) {
      if (bytes < 1) return false;
      const uint32_t metadata = 1u + field::Load<uint8_t>(node_, at);
      if (bytes < metadata || !IsMetadata(field::BytesAt(node_, at, metadata), deadline_min_ms)) {
        return false;
      }
      rest -= metadata;
    }
    if ((form & field::kOutside) != 0) return rest == kStubBytes;
    return bytes <= codec_.geometry.value_inline_max();
  }

  // PassKey, PassValue and PassFences move *at behind the field, and return whether it is legal.
  bool PassKey(uint32_t* at, uint32_t end, uint32_t flags_allowed = 0) {
    if (*at + field::kLengthBytes > end) return false;
    const auto form = field::Load<uint16_t>(node_, *at);
    const bool legal = IsKey(form, *at + field::kLengthBytes, end, flags_allowed);
    *at += field::kLengthBytes + (form & field::kLengthMask);
    return legal;
  }
  bool PassValue(uint32_t* at, uint32_t end, uint64_t deadline_min_ms) const {
    if (*at + field::kLengthBytes > end) return false;
    const auto form = field::Load<uint16_t>(node_, *at);
    const bool legal = IsValue(form, *at + field::kLengthBytes, end, deadline_min_ms);
    *at += field::kLengthBytes + (form & field::kLengthMask);
    return legal;
  }
  // Passes the lower and the upper fence.
  bool PassFences(uint32_t* at, uint32_t end) {
    if (!PassKey(at, end) || *at + field::kLengthBytes > end) return false;
    if (field::Load<uint16_t>(node_, *at) != field::kNoFence) return PassKey(at, end);
    *at += field::kLengthBytes;
    return true;
  }

  // Whether a < b; true also if that cannot be told.
  bool Rises(const StoredKey& a, const StoredKey& b) const {
    const int order = codec_.Compare(a, b);
    return order < 0 || (order == 0 && codec_.arena == nullptr && (a.outside || b.outside));
  }
  // Whether there were keys of which only the heads could be compared.
  bool has_undecided() const { return has_undecided_; }

 private:
  // Whether these bytes, of which the first tells how many there are, are metadata in one of their
  // forms.
  static bool IsMetadata(std::string_view bytes, uint64_t deadline_min_ms) {
    const size_t size = bytes.size() - 1;
    const bool has_type = size == kTypeBytes || size == kDeadlineBytes + kTypeBytes;
    const bool has_deadline = size >= kDeadlineBytes;
    if (!has_type && size != kDeadlineBytes) return false;
    const StoredValue value = {.bytes = bytes, .has_metadata = true};
    if (has_type && TypeOf(value) == kPlainType) return false;
    const uint64_t deadline_ms = DeadlineOf(value);
    return !has_deadline || (deadline_ms != 0 && deadline_ms >= deadline_min_ms);
  }

  const Codec& codec_;
  const NodeHeader* node_;
  bool has_undecided_ = false;
};

}  // namespace skep::btree
