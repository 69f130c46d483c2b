#include "durable/log_format.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>

#include "base/crc32c.h"

namespace skep::durable {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kPrefix = "log-";
constexpr std::string_view kSuffix = ".skl";

}  // namespace

void WriteHeader(const RecordHeader& header, char* to) {
  std::memcpy(to + 4, &header.payload_crc, 4);
  std::memcpy(to + 8, &header.payload_bytes, 8);
  std::memcpy(to + 16, &header.position, 8);
  const uint32_t crc = Crc32c({to + 4, kRecordHeaderBytes - 4});
  std::memcpy(to, &crc, 4);
}

uint64_t PositionIn(const char* header) {
  uint64_t position = 0;
  std::memcpy(&position, header + 16, 8);
  return position;
}

std::optional<RecordHeader> ReadHeader(const char* from, uint64_t position) {
  uint32_t crc = 0;
  RecordHeader header;
  std::memcpy(&crc, from, 4);
  std::memcpy(&header.payload_crc, from + 4, 4);
  std::memcpy(&header.payload_bytes, from + 8, 8);
  header.position = PositionIn(from);
  if (header.position != position || header.payload_bytes > kRecordBytesMax ||
      crc != Crc32c({from + 4, kRecordHeaderBytes - 4})) {
    return std::nullopt;
  }
  return header;
}

std::string SegmentName(uint64_t position) {
  return fmt::format("{}{:016x}{}", kPrefix, position, kSuffix);
}

std::optional<uint64_t> PositionOfSegment(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  uint64_t position = 0;
  const char* const digits = name.data() + kPrefix.size();
  const auto [end, error] = std::from_chars(digits, name.data() + name.size(), position, 16);
  if (error != std::errc() || SegmentName(position) != name) return std::nullopt;
  return position;
}

}  // namespace skep::durable
