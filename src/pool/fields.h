// fields.h: the fields that the messages of a pool are made of, beside those of base/varint.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "base/varint.h"
#include "pool/slot.h"

namespace skep::pool {

inline void AppendWord(std::string& to, uint64_t word) {
  char bytes[sizeof(word)];
  std::memcpy(bytes, &word, sizeof(word));
  to.append(bytes, sizeof(bytes));
}
inline void AppendSlot(std::string& to, Slot slot) { AppendWord(to, slot.bits()); }

// These take a field from the front. False: there is none.
inline bool TakeWord(std::string_view& from, uint64_t* word) {
  if (from.size() < sizeof(*word)) return false;
  std::memcpy(word, from.data(), sizeof(*word));
  from.remove_prefix(sizeof(*word));
  return true;
}
inline bool TakeSlot(std::string_view& from, Slot* slot) {
  uint64_t bits = 0;
  if (!TakeWord(from, &bits)) return false;
  *slot = Slot(bits);
  return true;
}
// A varint that fits.
template <typename Number>
bool TakeNumber(std::string_view& from, Number* number) {
  uint64_t wide = 0;
  if (!TakeVarint(from, &wide) || wide > std::numeric_limits<Number>::max()) return false;
  *number = static_cast<Number>(wide);
  return true;
}

}  // namespace skep::pool
