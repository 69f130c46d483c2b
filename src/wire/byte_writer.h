// byte_writer.h: writes into a buffer of sufficient size, without a check at each byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "skep/copy_bytes.h"

namespace skep::packed {

// The caller must have made sure that the buffer has room for all that is written.
class ByteWriter {
 public:
  explicit ByteWriter(char* at) : at_(at) {}
  void Byte(uint8_t byte) { *at_++ = static_cast<char>(byte); }
  void Varint(uint64_t number) {
    for (; number >= 0x80; number >>= 7) Byte(static_cast<uint8_t>(number | 0x80));
    Byte(static_cast<uint8_t>(number));
  }
  void Bytes(std::string_view bytes) {
    CopyBytes(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  template <class T>
  void Fixed(const T& fixed) {
    std::memcpy(at_, &fixed, sizeof(fixed));
    at_ += sizeof(fixed);
  }
  char* at() const { return at_; }

 private:
  char* at_;
};

// Take bytes from the front of `from`. False: it has too few.
inline bool TakeByte(std::string_view& from, uint8_t* byte) {
  if (from.empty()) return false;
  *byte = static_cast<uint8_t>(from.front());
  from.remove_prefix(1);
  return true;
}
template <class T>
bool TakeFixed(std::string_view& from, T* fixed) {
  if (from.size() < sizeof(T)) return false;
  std::memcpy(fixed, from.data(), sizeof(T));
  from.remove_prefix(sizeof(T));
  return true;
}
inline bool TakeFront(std::string_view& from, size_t bytes, std::string_view* front) {
  if (from.size() < bytes) return false;
  *front = from.substr(0, bytes);
  from.remove_prefix(bytes);
  return true;
}

}  // namespace skep::packed
