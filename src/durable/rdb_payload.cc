#include "durable/rdb_payload.h"

#include <liblzf/lzf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/decimal.h"
#include "durable/rdb_crc64.h"
#include "durable/rdb_input.h"
#include "durable/rdb_reader.h"

namespace skep::durable {
namespace {

constexpr char kStringType = 0;
constexpr size_t kVersionBytes = 2;
constexpr size_t kFooterBytes = kVersionBytes + 8;
constexpr size_t kIntegerDigitsMax = 11;    // of a string that is written as an integer
constexpr size_t kCompressedBytesMin = 21;  // shorter strings are not compressed
constexpr size_t kSavedBytesMin = 4;        // that compression must save
constexpr char kLzfString = static_cast<char>(0xc3);

template <typename T>
void AppendNumber(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendBigEndian(std::string& to, uint64_t number, size_t bytes) {
  while (bytes-- > 0) to.push_back(static_cast<char>(number >> (8 * bytes)));
}

void AppendLength(std::string& to, uint64_t length) {
  if (length < 1 << 6) return AppendBigEndian(to, length, 1);
  if (length < 1 << 14) return AppendBigEndian(to, length | 1 << 14, 2);
  to.push_back(static_cast<char>(length <= UINT32_MAX ? 0x80 : 0x81));
  AppendBigEndian(to, length, length <= UINT32_MAX ? 4 : 8);
}

// Appends the string as an integer. False if it is none of 32 bits.
bool AppendInteger(std::string& to, std::string_view value) {
  const auto number = value.size() <= kIntegerDigitsMax ? ParseInt64(value) : std::nullopt;
  if (!number || *number < INT32_MIN || *number > INT32_MAX) return false;
  const auto fits = [&](int64_t most) { return *number >= -most - 1 && *number <= most; };
  if (fits(INT8_MAX)) {
    to.push_back(static_cast<char>(0xc0));
    AppendNumber(to, static_cast<int8_t>(*number));
  } else if (fits(INT16_MAX)) {
    to.push_back(static_cast<char>(0xc1));
    AppendNumber(to, static_cast<int16_t>(*number));
  } else {
    to.push_back(static_cast<char>(0xc2));
    AppendNumber(to, static_cast<int32_t>(*number));
  }
  return true;
}

// Appends the string compressed. False if that saves nothing.
bool AppendCompressed(std::string& to, std::string_view value) {
  if (value.size() < kCompressedBytesMin || value.size() > kCompressedBytesMax) return false;
  std::string packed(value.size() - kSavedBytesMin, '\0');
  const unsigned bytes = lzf_compress(value.data(), static_cast<unsigned>(value.size()),
                                      packed.data(), static_cast<unsigned>(packed.size()));
  if (bytes == 0) return false;
  to.push_back(kLzfString);
  AppendLength(to, bytes);
  AppendLength(to, value.size());
  to.append(packed, 0, bytes);
  return true;
}

// Bytes in memory, as a file that is only read.
class BytesFile final : public File {
 public:
  explicit BytesFile(std::string_view bytes) : bytes_(bytes) {}

  Result<size_t> ReadAt(uint64_t offset, char* to, size_t bytes) override {
    const std::string_view rest = bytes_.substr(std::min<uint64_t>(offset, bytes_.size()));
    const size_t count = std::min(bytes, rest.size());
    std::memcpy(to, rest.data(), count);
    return count;
  }
  Status Append(std::string_view) override { return kReadOnly; }
  Status WriteAt(uint64_t, std::string_view) override { return kReadOnly; }
  Status Sync() override { return kReadOnly; }
  Status Truncate(uint64_t) override { return kReadOnly; }
  Status Allocate(uint64_t) override { return kReadOnly; }
  Result<uint64_t> Size() override { return bytes_.size(); }

 private:
  static constexpr Status kReadOnly{Code::kNotSupported, "bytes in memory are only read"};

  const std::string_view bytes_;
};

}  // namespace

std::string DumpString(std::string_view value) {
  std::string payload(1, kStringType);
  if (!AppendInteger(payload, value) && !AppendCompressed(payload, value)) {
    AppendLength(payload, value.size());
    payload += value;
  }
  AppendNumber(payload, kRdbPayloadVersion);
  AppendNumber(payload, RdbCrc64(payload));
  return payload;
}

Result<std::string> RestoreString(std::string_view payload, size_t bytes_max) {
  constexpr Status kWrongFooter{Code::kCorrupt, "DUMP payload version or checksum are wrong"};
  if (payload.size() < kFooterBytes) return Fail(kWrongFooter);
  const std::string_view value = payload.substr(0, payload.size() - kFooterBytes);
  const char* const footer = payload.data() + value.size();
  uint16_t version = 0;
  uint64_t crc = 0;
  std::memcpy(&version, footer, sizeof(version));
  std::memcpy(&crc, footer + kVersionBytes, sizeof(crc));
  const uint64_t summed = RdbCrc64(payload.substr(0, value.size() + kVersionBytes));
  if (version > kRdbVersionMax || crc != summed) return Fail(kWrongFooter);
  if (value.empty()) return Fail(Code::kInvalidArgument, "Bad data format");
  if (value[0] != kStringType) {
    return Fail(Code::kNotSupported, "DUMP payload is of a type that is not supported",
                static_cast<uint8_t>(value[0]));
  }
  BytesFile file(value.substr(1));
  RdbInput input(file, value.size() - 1, bytes_max);
  std::string text;
  input.String(&text);
  if (input.status().code() == Code::kTooLarge) {
    return Fail(Code::kTooLarge, "value exceeds the maximum size", bytes_max);
  }
  if (!input.ok()) return Fail(Code::kInvalidArgument, "Bad data format");
  return text;
}

}  // namespace skep::durable
