// record_format.h: the bytes of a benchmark's keys and values.
//
// Keys are numbered 0, 1, 2, ... in the order of their insertion, and the number is hashed into the
// key (YCSB's insertorder=hashed), so that insertions are spread over the whole order of keys.
//
//   key size     bytes
//   23 and more  "user", zeros, the hash in decimal      YCSB's own at 23, zeropadding included
//   8 .. 22      zeros, the hash in 8 bytes, big-endian  binary; ordered as the hash
//
// Two numbers may hash alike: with n keys about n^2 / 2^64 of them do.
//
// KeyFormat::Random makes keys without a common beginning instead: all bytes are random, and no two
// numbers have the same key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace skep::bench {

class KeyFormat {
 public:
  static constexpr size_t kBytesMin = 8;
  static constexpr size_t kDecimalBytesMin = 23;

  // `bytes` >= kBytesMin.
  explicit KeyFormat(size_t bytes) : KeyFormat(bytes, Kind::kYcsb) {}
  static KeyFormat Random(size_t bytes) { return KeyFormat(bytes, Kind::kRandom); }

  size_t bytes() const { return bytes_; }
  // Writes the key of that number: bytes() bytes.
  void Render(uint64_t number, char* to) const;

 private:
  enum class Kind : uint8_t { kYcsb, kRandom };

  KeyFormat(size_t bytes, Kind kind) : bytes_(bytes), kind_(kind) {}

  size_t bytes_;
  Kind kind_;
};

// Where values come from: windows of one random text, so that a value costs no work while the clock
// runs, no two neighbours are equal, and nothing compresses them away. Thread-safe.
class ValuePool {
 public:
  ValuePool(size_t value_bytes, uint64_t seed);

  size_t value_bytes() const { return value_bytes_; }
  std::string_view at(uint64_t index) const {
    return {text_.data() + index * kStrideBytes % kWindows, value_bytes_};
  }

 private:
  static constexpr size_t kWindows = 64 * 1024;
  static constexpr size_t kStrideBytes = 73;  // prime: all windows are used

  size_t value_bytes_;
  std::string text_;
};

}  // namespace skep::bench
