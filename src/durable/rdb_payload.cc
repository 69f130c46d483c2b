#include "durable/rdb_payload.h"

#include <liblzf/lzf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/decimal.h"
#include "durable/rdb_collection.h"
#include "durable/rdb_crc64.h"
#include "durable/rdb_input.h"
#include "durable/rdb_reader.h"
#include "durable/rdb_types.h"
#include "types/collection.h"
#include "types/hash_fields.h"
#include "types/value_type.h"

namespace skep::durable {
namespace {

constexpr Status kBadData(Code::kInvalidArgument, "Bad data format");
constexpr size_t kVersionBytes = 2;
constexpr size_t kFooterBytes = kVersionBytes + 8;
constexpr size_t kIntegerDigitsMax = 11;    // of a string that is written as an integer
constexpr size_t kCompressedBytesMin = 21;  // shorter strings are not compressed
constexpr size_t kSavedBytesMin = 4;        // that compression must save
// Of a packed string, beyond twice what the collection takes: its head and end.
constexpr size_t kPackedBytesMore = 64;
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

void AppendString(std::string& to, std::string_view value, bool compresses) {
  if (AppendInteger(to, value) || (compresses && AppendCompressed(to, value))) return;
  AppendLength(to, value.size());
  to += value;
}

// The payload with its footer.
std::string Sealed(std::string payload, uint16_t version = kRdbPayloadVersion) {
  AppendNumber(payload, version);
  AppendNumber(payload, RdbCrc64(payload));
  return payload;
}

bool IsSealed(std::string_view payload) {
  if (payload.size() < kFooterBytes) return false;
  const char* const footer = payload.data() + payload.size() - kFooterBytes;
  uint16_t version = 0;
  uint64_t crc = 0;
  std::memcpy(&version, footer, sizeof(version));
  std::memcpy(&crc, footer + kVersionBytes, sizeof(crc));
  return version <= kRdbVersionMax &&
         crc == RdbCrc64(payload.substr(0, payload.size() - sizeof(crc)));
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

Result<RestoredValue> ReadString(std::string_view bytes, size_t bytes_max) {
  BytesFile file(bytes);
  RdbInput input(file, bytes.size(), bytes_max);
  RestoredValue restored;
  input.String(&restored.bytes);
  if (input.status().code() == Code::kTooLarge) {
    return Fail(Code::kTooLarge, "value exceeds the maximum size", bytes_max);
  }
  if (!input.ok()) return Fail(kBadData);
  return restored;
}

// Reads a value behind its type.
Result<RestoredValue> ReadCollection(std::string_view value, uint8_t kind, size_t bytes_max) {
  const Status too_large(Code::kTooLarge, "a collection exceeds the maximum size", bytes_max);
  // What Redis packs takes at most twice as many bytes here.
  const size_t string_bytes_max = 2 * bytes_max + kPackedBytesMore;
  BytesFile file(value.substr(1));
  RdbInput input(file, value.size() - 1, string_bytes_max);
  CollectionBuilder builder(kind);
  ReadRdbMembers(input, static_cast<uint8_t>(value[0]), [&](const RdbMember& member) {
    builder.Add(member);
    if (builder.bytes() > bytes_max) input.Fail(too_large);
  });
  if (input.status().code() == Code::kTooLarge) return Fail(too_large);
  if (!input.ok()) return Fail(kBadData);
  if (builder.members() == 0) return Fail(kBadData);
  auto bytes = builder.Take();
  if (!bytes) return Fail(kBadData);
  if (bytes->size() > bytes_max) return Fail(too_large);
  return RestoredValue{.type = kind, .bytes = std::move(*bytes)};
}

std::string DumpFieldsWithDeadlines(const types::HashFields& fields, bool compresses) {
  uint64_t first_ms = UINT64_MAX;
  for (const types::HashField& field : fields) {
    if (field.deadline_ms != 0) first_ms = std::min(first_ms, field.deadline_ms);
  }
  std::string payload(1, static_cast<char>(RdbType::kHashMetadata));
  AppendNumber(payload, first_ms);
  AppendLength(payload, fields.size());
  for (const auto& [name, value, deadline_ms] : fields) {
    AppendLength(payload, deadline_ms == 0 ? 0 : deadline_ms - first_ms + 1);
    AppendString(payload, name, compresses);
    AppendString(payload, value, compresses);
  }
  return Sealed(std::move(payload), kRdbVersionOfDeadlines);
}

}  // namespace

std::string DumpString(std::string_view value) {
  std::string payload(1, static_cast<char>(RdbTypeOf(types::kString)));
  AppendString(payload, value, value.size() <= kCompressedBytesMax);
  return Sealed(std::move(payload));
}

std::optional<std::string> DumpCollection(uint8_t kind, std::string_view value) {
  const bool compresses = value.size() <= kCompressedBytesMax;
  if (kind == types::kHash && types::HasDeadlineForm(value)) {
    const auto fields = types::ReadHash(value);
    if (!fields || fields->empty()) return std::nullopt;
    return DumpFieldsWithDeadlines(*fields, compresses);
  }
  const auto counted = types::ReadCounted(value);
  if (!counted) return std::nullopt;
  std::string payload(1, static_cast<char>(RdbTypeOf(kind)));
  AppendLength(payload, counted->members);
  const bool is_right = ForEachMember(kind, value, [&](const RdbMember& member) {
    AppendString(payload, member.member, compresses);
    if (kind == types::kHash) AppendString(payload, member.value, compresses);
    if (kind == types::kSortedSet) AppendNumber(payload, member.score);
  });
  return is_right ? std::optional(Sealed(std::move(payload))) : std::nullopt;
}

Result<RestoredValue> RestoreValue(std::string_view payload, const RestoreLimits& limits) {
  if (!IsSealed(payload)) {
    return Fail(Code::kCorrupt, "DUMP payload version or checksum are wrong");
  }
  const std::string_view value = payload.substr(0, payload.size() - kFooterBytes);
  if (value.empty()) return Fail(kBadData);
  const auto rdb_type = static_cast<uint8_t>(value[0]);
  const uint8_t kind = KindOfRdbType(rdb_type);
  if (kind == types::kString && rdb_type != RdbTypeOf(types::kString)) {
    return Fail(Code::kNotSupported, "DUMP payload is of a type that is not supported", rdb_type);
  }
  return kind == types::kString ? ReadString(value.substr(1), limits.string_bytes)
                                : ReadCollection(value, kind, limits.collection_bytes);
}

}  // namespace skep::durable
