// Property: whatever the bytes of a payload, RESTORE ends with a string within the limit or an
// error, and a string that it takes is dumped and restored as the same. The fuzzer's bytes are
// tried as they are, and with a right footer, since it would never find a checksum.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "durable/rdb_crc64.h"
#include "durable/rdb_payload.h"

namespace {

constexpr size_t kBytesMax = 4096;

void Check(std::string_view payload) {
  const auto value = skep::durable::RestoreString(payload, kBytesMax);
  if (!value) return;
  SKEP_CHECK(value->size() <= kBytesMax);
  SKEP_CHECK(skep::durable::RestoreString(skep::durable::DumpString(*value), kBytesMax) == *value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string payload(reinterpret_cast<const char*>(data), size);
  Check(payload);
  const uint16_t version = skep::durable::kRdbPayloadVersion;
  payload.append(reinterpret_cast<const char*>(&version), sizeof(version));
  const uint64_t crc = skep::durable::RdbCrc64(payload);
  payload.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  Check(payload);
  return 0;
}
