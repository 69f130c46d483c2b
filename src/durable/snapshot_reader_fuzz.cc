// Property: whatever the bytes of a file, as they are and with all CRCs made right, what is read of
// it has a bound that follows from its size; salvage finds at least all that the reader finds.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "durable/snapshot_reader.h"
#include "durable/snapshot_salvage.h"
#include "durable/snapshot_test.h"
#include "sim/sim_file.h"

namespace skep::durable {
namespace {

constexpr const char* kPath = "file";

// Keeps account of what it is shown, and looks at all of it.
struct Account {
  uint64_t items = 0;
  uint64_t value_bytes = 0;
  uint64_t sum = 0;

  Status Visit(const SnapshotItem& item) {
    SKEP_CHECK(item.key.size() <= kSnapshotKeyBytesMax);
    SKEP_CHECK(item.value.size() <= kSnapshotValueBytesMax);
    ++items;
    value_bytes += item.value.size();
    sum += Crc32c(item.key, Crc32c(item.value));
    return {};
  }
  bool operator==(const Account&) const = default;
};

// Whether the file is a snapshot and all of it can be read.
bool ReadAll(FileSystem& files, uint64_t file_bytes, Account* account) {
  const auto reader = SnapshotReader::Open(files, kPath);
  if (!reader) {
    SKEP_CHECK(reader.error().code() == Code::kNotSupported ||
               (reader.error().code() == Code::kCorrupt && reader.error().detail() <= file_bytes));
    return false;
  }
  bool is_sound = true;
  for (size_t i = 0; i < (*reader)->block_count(); ++i) {
    const Status status =
        (*reader)->ReadBlock(i, [&](const SnapshotItem& item) { return account->Visit(item); });
    SKEP_CHECK(status.ok() || status.code() == Code::kCorrupt);
    SKEP_CHECK(status.ok() || status.detail() == (*reader)->block(i).offset);
    is_sound = is_sound && status.ok();
  }
  SKEP_CHECK(!is_sound || account->items == (*reader)->items());
  return is_sound;
}

void Check(std::string_view bytes) {
  Trace trace;
  SimFileSystem files(bytes.size(), trace);
  StoreBytes(files, kPath, bytes);
  Account read;
  const bool is_sound = ReadAll(files, bytes.size(), &read);
  SKEP_CHECK(read.value_bytes <= kSnapshotExpansionMax * bytes.size());

  Account salvaged;
  const auto salvage = SalvageBlocks(
      files, kPath, [&](uint32_t, const SnapshotItem& item) { return salvaged.Visit(item); });
  if (!salvage) {
    SKEP_CHECK(salvage.error().code() == Code::kNotSupported);
    return;
  }
  SKEP_CHECK(salvage->items == salvaged.items);
  SKEP_CHECK(salvaged.value_bytes <= kSnapshotExpansionMax * bytes.size());
  if (is_sound) SKEP_CHECK(salvage->lost.empty() && salvaged == read);
  for (const SnapshotSalvage::Loss& loss : salvage->lost) {
    // A lost part has no bytes only where the file ends too early.
    SKEP_CHECK(loss.bytes > 0 || loss.offset == bytes.size());
    SKEP_CHECK(loss.offset + loss.bytes <= bytes.size());
  }
}

}  // namespace
}  // namespace skep::durable

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  skep::durable::Check(bytes);
  skep::durable::Reseal(bytes);
  skep::durable::Check(bytes);
  return 0;
}
