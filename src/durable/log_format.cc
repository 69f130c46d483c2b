#include "durable/log_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

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

std::string SegmentName(const SegmentId& segment) {
  if (segment.epoch == 0) return fmt::format("{}{:016x}{}", kPrefix, segment.begin, kSuffix);
  return fmt::format("{}{:016x}-{:08x}{}", kPrefix, segment.begin, segment.epoch, kSuffix);
}

std::optional<SegmentId> ReadSegmentName(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  SegmentId segment;
  const char* const end = name.data() + name.size();
  auto [at, error] = std::from_chars(name.data() + kPrefix.size(), end, segment.begin, 16);
  if (error == std::errc() && at != end && *at == '-') {
    at = std::from_chars(at + 1, end, segment.epoch, 16).ptr;
  }
  if (SegmentName(segment) != name) return std::nullopt;  // another spelling of the numbers
  return segment;
}

// In the order of epochs, each segment supersedes the earlier ones that begin where it does or
// behind.
std::vector<SegmentId> TakeSuperseded(std::vector<SegmentId>& segments) {
  std::ranges::sort(segments, {}, [](const SegmentId& s) { return std::pair(s.epoch, s.begin); });
  std::vector<SegmentId> superseded;
  std::vector<SegmentId> chain;
  for (const SegmentId& segment : segments) {
    while (!chain.empty() && chain.back().begin >= segment.begin) {
      superseded.push_back(chain.back());
      chain.pop_back();
    }
    chain.push_back(segment);
  }
  segments = std::move(chain);
  return superseded;
}

}  // namespace skep::durable
