// Property: whatever the bytes of a file, what is read of it depends on the bytes alone, not on how
// many a read gives, and has a bound that follows from the file's size.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "durable/rdb_test.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skep::durable;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const RdbContents read = ReadRdbBytes(bytes, 1);
  const RdbContents again = ReadRdbBytes(bytes, 2);
  SKEP_CHECK(read.status == again.status && read.entries == again.entries);
  SKEP_CHECK(read.status.code() != skep::Code::kCorrupt || read.status.detail() <= size);
  uint64_t value_bytes = 0;
  for (const RdbEntry& entry : read.entries) value_bytes += entry.key.size() + entry.value.size();
  // A string is at most 88 times what is compressed, and the text of a packed number at most 16
  // times the number.
  SKEP_CHECK(value_bytes <= 88 * 16 * size);
  return 0;
}
