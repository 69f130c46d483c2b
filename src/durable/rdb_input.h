// rdb_input.h: the bytes of an RDB file, and the numbers and strings that they are made of.
//
//   length   first byte   then
//            00nnnnnn             n
//            01nnnnnn     1 byte  n, big-endian
//            10000000     4 bytes big-endian
//            10000001     8 bytes big-endian
//   string   a length, and so many bytes; or
//            11000000     1 byte  a signed number, little-endian, whose decimal digits it is
//            11000001     2 bytes
//            11000010     4 bytes
//            11000011     compressed by LZF: length in the file, length in fact, the bytes
//
// No length is believed before it is compared with what the file has left. LZF makes three bytes of
// at most 264, so a string never takes more than 88 times what the file has left.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"
#include "skep/status.h"

namespace skep::durable {

// The greatest length of a string in Redis.
inline constexpr uint64_t kRdbStringBytesMax = 512 * 1024 * 1024;

// Reads an RDB file until the first error, which it keeps. Everything that is read afterwards is
// zero or empty, so that only loops need to look for errors. An error's `detail` is the offset in
// the file, where its code does not say otherwise.
//   kCorrupt   the file ends too early; a length or a string is malformed
//   kTooLarge  a string is longer than `string_bytes_max`, which is the detail
//   kIo        the file cannot be read
// Thread safety: one owner. Memory: 64 KiB, and the string that is read.
class RdbInput {
 public:
  // `file` must outlive it, and has this many bytes.
  RdbInput(File& file, uint64_t file_bytes, uint64_t string_bytes_max = kRdbStringBytesMax);

  bool ok() const { return status_.ok(); }
  Status status() const { return status_; }
  // The offset of the next byte.
  uint64_t offset() const { return offset_; }
  uint64_t left() const { return file_bytes_ - offset_; }
  // The checksum of all bytes so far.
  uint64_t Crc();

  uint8_t Byte() { return Number<uint8_t>(); }
  // A number in all its bytes, little-endian.
  template <typename T>
  T Number() {
    T number = 0;
    Take(reinterpret_cast<char*>(&number), sizeof(number));
    return number;
  }
  uint64_t Length();
  void String(std::string* to);

  void Skip(uint64_t bytes) { Take(nullptr, bytes); }
  void SkipString();

  // Notes an error of the caller, who knows what the bytes mean. The first error counts.
  void Fail(Status status);

 private:
  // The meaning of a string's first byte.
  struct StringHead {
    enum class Kind : uint8_t { kBytes, kInt8, kInt16, kInt32, kLzf };
    Kind kind;
    uint64_t bytes = 0;  // kBytes, kLzf: in the file
    uint64_t unpacked_bytes = 0;
  };

  // Copies the next bytes to `to`; null: skips them.
  void Take(char* to, uint64_t bytes);
  bool Refill();
  uint64_t LengthFrom(uint8_t first, uint64_t at);
  StringHead Head();
  void Unpack(const StringHead& head, uint64_t at, std::string* to);

  File& file_;
  const uint64_t file_bytes_;
  const uint64_t string_bytes_max_;
  Status status_;
  uint64_t offset_ = 0;
  const std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0;  // the next byte in the buffer
  size_t end_ = 0;
  size_t summed_ = 0;  // the bytes of the buffer before this are in crc_
  uint64_t crc_ = 0;
  std::string packed_;
};

}  // namespace skep::durable
