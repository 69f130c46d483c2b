// record_format.h: the bytes of a benchmark's keys and values.
//
// Keys are numbered 0, 1, 2, ... in the order of their insertion, and the number is hashed into the
// key (YCSB's insertorder=hashed), so that insertions are spread over the whole order of keys.
//
//   key size     bytes
//   23 and more  "user", zeros, the hash in decimal      YCSB's own at 23, zeropadding included
//   8 .. 22      zeros, the hash in 8 bytes, big-endian  binary; ordered as the hash
//   4 .. 7       zeros, 4 bytes, big-endian              binary; of numbers below 2^32, no two
//   alike
//
// Two numbers may hash alike: with n keys about n^2 / 2^64 of them do.
//
// KeyFormat::Text makes keys of printable characters at all sizes, for protocols of lines: below 23
// bytes zeros and up to eleven digits of the hash to base 64, the high ones first, in the order of
// their characters. Eight bytes hold 47 bits of it: with n keys about n^2 / 2^48 pairs are alike.
//
// KeyFormat::Random makes keys without a common beginning instead: all bytes are random, and no two
// numbers have the same key (below 8 bytes as above). KeyFormat::Mixed makes the same keys, but of
// 8, 16, 24 or 32 bytes: two bits of the first word say which, so a key's size can be told from its
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace skep::bench {

// The sizes of a mixture: each multiple of a word up to four of them.
inline constexpr size_t kMixedStepBytes = 8;
inline constexpr size_t kMixedSizes = 4;
inline constexpr size_t kMixedBytesMax = kMixedSizes * kMixedStepBytes;
inline bool IsMixedSize(size_t bytes) {
  return bytes != 0 && bytes % kMixedStepBytes == 0 && bytes <= kMixedBytesMax;
}

class KeyFormat {
 public:
  static constexpr size_t kBytesMin = 8;
  static constexpr size_t kShortBytesMin = 4;  // of YCSB's keys and random ones
  static constexpr size_t kDecimalBytesMin = 23;

  // `bytes` >= kShortBytesMin; of text kBytesMin.
  explicit KeyFormat(size_t bytes) : KeyFormat(bytes, Kind::kYcsb) {}
  static KeyFormat Text(size_t bytes) { return KeyFormat(bytes, Kind::kText); }
  static KeyFormat Random(size_t bytes) { return KeyFormat(bytes, Kind::kRandom); }

  static KeyFormat Mixed() { return KeyFormat(kMixedBytesMax, Kind::kMixed); }

  // Of a key; of the largest in a mixture.
  size_t bytes() const { return bytes_; }
  // Writes bytes() bytes, at whose beginning is the key of that number.
  void Render(uint64_t number, char* to) const;
  // What Render wrote.
  std::string_view KeyAt(const char* rendered) const {
    if (kind_ != Kind::kMixed) [[likely]]
      return {rendered, bytes_};
    const size_t steps =
        static_cast<unsigned char>(rendered[kMixedStepBytes - 1]) % kMixedSizes + 1;
    return {rendered, steps * kMixedStepBytes};
  }

 private:
  enum class Kind : uint8_t { kYcsb, kText, kRandom, kMixed };

  KeyFormat(size_t bytes, Kind kind) : bytes_(bytes), kind_(kind) {}

  size_t bytes_;
  Kind kind_;
};

// Where values come from: windows of one random text, so that a value costs no work while the clock
// runs, no two neighbours are equal, and nothing compresses them away. Thread-safe.
class ValuePool {
 public:
  ValuePool(size_t value_bytes, uint64_t seed);

  // Values of 8, 16, 24 and 32 bytes, in turn.
  static ValuePool Mixed(uint64_t seed) {
    ValuePool pool(kMixedBytesMax, seed);
    pool.mixed_ = true;
    return pool;
  }

  bool mixed() const { return mixed_; }
  // Of a value; of the largest in a mixture.
  size_t value_bytes() const { return value_bytes_; }
  bool IsSizeOfValue(size_t bytes) const {
    return mixed_ ? IsMixedSize(bytes) : bytes == value_bytes_;
  }
  std::string_view at(uint64_t index) const {
    const char* const window = text_.data() + index * kStrideBytes % kWindows;
    if (!mixed_) [[likely]]
      return {window, value_bytes_};
    return {window, (index % kMixedSizes + 1) * kMixedStepBytes};
  }

 private:
  static constexpr size_t kWindows = 64 * 1024;
  static constexpr size_t kStrideBytes = 73;  // prime: all windows are used

  size_t value_bytes_;
  bool mixed_ = false;
  std::string text_;
};

}  // namespace skep::bench
