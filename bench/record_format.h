// record_format.h: the bytes of a benchmark's keys and values.
//
// Keys are numbered 0, 1, 2, ... in the order of their insertion, and the number is hashed into the
// key (YCSB's insertorder=hashed), so that insertions are spread over the whole order of keys.
//
//   key size     bytes
//   23 and more  "user", zeros, the hash in decimal      YCSB's own at 23, zeropadding included
//   8 .. 22      zeros, the hash in 8 bytes, big-endian  binary; ordered as the hash
//   4 .. 7       zeros, 4 bytes, big-endian              binary; of numbers below 2^32, all
//                                                        different
//
// Two numbers may hash alike: with n keys about n^2 / 2^64 of them do.
//
// KeyFormat::Text makes keys of printable characters at all sizes, for line-based protocols: below
// 23 bytes zeros and up to eleven base-64 digits of the hash, high ones first, whose characters are
// in ascending order. Eight bytes hold 47 bits of the hash: with n keys about n^2 / 2^48 pairs are
// alike.
//
// KeyFormat::Random makes keys without a common beginning instead: all bytes are random, and no two
// numbers have the same key (below 8 bytes as above). KeyFormat::Mixed makes the same keys, but of
// 8, 16, 24 or 32 bytes: two bits of the first word say which, so a key's size can be told from its
// bytes.
//
// KeyFormat::Of makes the keys that people have, of one size for each kind; no two numbers have the
// same key.
//
//   decimal  16  digits of a number below 10^16
//   hex      16  digits of a random word
//   user     21  user:0123456789:field, of which five in a row have the same number
//   uuid     36  of version 4
//   url      46  https://shop.example/abc/item/0123456789abcdef
//
// KeyFormat::OfFile makes the keys of a file (key_file.h): number n is its line n + 1. In memory
// the size of each key stands before its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "bench/key_file.h"

namespace skep::bench {

// The sizes of a mixture: each multiple of a word up to four of them.
inline constexpr size_t kMixedStepBytes = 8;
inline constexpr size_t kMixedSizes = 4;
inline constexpr size_t kMixedBytesMax = kMixedSizes * kMixedStepBytes;
inline bool IsMixedSize(size_t bytes) {
  return bytes != 0 && bytes % kMixedStepBytes == 0 && bytes <= kMixedBytesMax;
}

enum class KeyKind : uint8_t { kBinary, kDecimal, kHex, kUser, kUuid, kUrl };
inline constexpr KeyKind kKeyKinds[] = {KeyKind::kBinary, KeyKind::kDecimal, KeyKind::kHex,
                                        KeyKind::kUser,   KeyKind::kUuid,    KeyKind::kUrl};
std::string_view NameOf(KeyKind kind);
std::optional<KeyKind> KeyKindNamed(std::string_view name);

class KeyFormat {
 public:
  static constexpr size_t kBytesMin = 8;
  static constexpr size_t kShortBytesMin = 4;  // of YCSB's keys and random ones
  static constexpr size_t kDecimalBytesMin = 23;

  // `bytes` >= kShortBytesMin; for text keys kBytesMin.
  explicit KeyFormat(size_t bytes) : KeyFormat(bytes, Kind::kYcsb) {}
  static KeyFormat Text(size_t bytes) { return KeyFormat(bytes, Kind::kText); }
  static KeyFormat Random(size_t bytes) { return KeyFormat(bytes, Kind::kRandom); }

  // `bytes` counts for kBinary only, which are those of Random.
  static KeyFormat Of(KeyKind kind, size_t bytes);
  static KeyFormat Mixed() { return KeyFormat(kMixedBytesMax, Kind::kMixed); }
  // Numbers must be below the file's count. `file` must outlive the format.
  static KeyFormat OfFile(const KeyFile& file) {
    KeyFormat format(sizeof(FileKeyBytes) + file.bytes_max(), Kind::kFile);
    format.file_ = &file;
    return format;
  }

  // Returns the size of a key, or of the largest key in a mixture.
  size_t key_bytes() const { return bytes_ - (kind_ == Kind::kFile ? sizeof(FileKeyBytes) : 0); }
  // Returns the bytes that Render writes.
  size_t bytes() const { return bytes_; }
  // Writes bytes() bytes, which begin with the key of that number.
  void Render(uint64_t number, char* to) const;
  // Returns the key that Render wrote.
  std::string_view KeyAt(const char* rendered) const {
    if (kind_ != Kind::kMixed && kind_ != Kind::kFile) [[likely]]
      return {rendered, bytes_};
    if (kind_ == Kind::kFile) {
      FileKeyBytes bytes;
      std::memcpy(&bytes, rendered, sizeof(bytes));
      return {rendered + sizeof(bytes), bytes};
    }
    const size_t steps =
        static_cast<unsigned char>(rendered[kMixedStepBytes - 1]) % kMixedSizes + 1;
    return {rendered, steps * kMixedStepBytes};
  }

 private:
  enum class Kind : uint8_t {
    kYcsb,
    kText,
    kRandom,
    kMixed,
    kDecimal,
    kHex,
    kUser,
    kUuid,
    kUrl,
    kFile
  };
  using FileKeyBytes = uint16_t;
  static_assert(KeyFile::kKeyBytesMax <= UINT16_MAX);

  KeyFormat(size_t bytes, Kind kind) : bytes_(bytes), kind_(kind) {}

  size_t bytes_;
  Kind kind_;
  const KeyFile* file_ = nullptr;  // of kFile
};

// Provides values: windows of one random text, so that a value costs no work while the clock runs,
// no two neighbours are equal, and the values cannot be compressed. Thread-safe.
class ValuePool {
 public:
  ValuePool(size_t value_bytes, uint64_t seed);

  // Makes values of 8, 16, 24 and 32 bytes, in turn.
  static ValuePool Mixed(uint64_t seed) {
    ValuePool pool(kMixedBytesMax, seed);
    pool.mixed_ = true;
    return pool;
  }

  bool mixed() const { return mixed_; }
  // Returns the size of a value, or of the largest value in a mixture.
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
  static constexpr size_t kStrideBytes = 73;  // prime, so that all windows are used

  size_t value_bytes_;
  bool mixed_ = false;
  std::string text_;
};

}  // namespace skep::bench
