// Property: whatever the bytes of a payload, RESTORE ends with a value within the limit or an
// error, and a value that it takes is dumped and restored as the same; a collection has members.
// The fuzzer's bytes are tried as they are, and with a right footer, since it would never find a
// checksum.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "durable/rdb_collection.h"
#include "durable/rdb_crc64.h"
#include "durable/rdb_payload.h"
#include "types/value_type.h"

namespace {

constexpr skep::durable::RestoreLimits kLimits = {.string_bytes = 4096, .collection_bytes = 4096};

void Check(std::string_view payload) {
  using namespace skep;
  const auto value = durable::RestoreValue(payload, kLimits);
  if (!value) return;
  SKEP_CHECK(value->bytes.size() <= kLimits.string_bytes);
  if (value->type == types::kString) {
    SKEP_CHECK(durable::RestoreValue(durable::DumpString(value->bytes), kLimits) == *value);
    return;
  }
  uint64_t members = 0;
  SKEP_CHECK(durable::ForEachMember(value->type, value->bytes,
                                    [&](const durable::RdbMember&) { ++members; }));
  SKEP_CHECK(members > 0);
  const auto dumped = durable::DumpCollection(value->type, value->bytes);
  SKEP_CHECK(dumped && durable::RestoreValue(*dumped, kLimits) == *value);
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
