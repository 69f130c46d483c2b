#include "server/call.h"

#include <fmt/format.h>

#include <cstring>

namespace skep {

void Call::Bulk(const Batch& batch, uint32_t slot) const {
  const Outcome& out = batch.outcome(slot);
  if (out.pinned == 0) [[likely]]
    return reply().Bulk(out.value);
  RespWriter writer = reply();
  writer.BeginBulk(batch.pinned(slot)->size());
  session_.Refer(batch.pinned(slot));
  writer.EndBulk();
}

void Call::Error(std::string_view text) const {
  host_.CountError(text);
  reply().Error(text);
}

void Call::Error(Status status) const {
  switch (status.code()) {
    case Code::kOutOfMemory:
      return Error(kOutOfMemory);
    case Code::kSnapshotTooOld:
      return Error("SNAPSHOTTOOOLD the scan took longer than snapshot-age-ms; begin it again");
    case Code::kTooLarge:
      return Error(fmt::format("ERR {} ({} bytes)", status.what(), status.detail()));
    case Code::kIo:
      return Error(fmt::format("MISCONF the log cannot be written, so writes are refused: {} ({})",
                               status.what(), strerrordesc_np(static_cast<int>(status.detail()))));
    case Code::kMoved:
      return Error(fmt::format("WRONGRANGE {} (version {})", status.what(), status.detail()));
    case Code::kWrongType:
      return Error(kWrongType);
    default:
      return Error(fmt::format("ERR {}", status.what()));
  }
}

bool Call::Refused(const Outcome& out) const {
  if (out.verdict != Verdict::kRefused) return false;
  Error(out.status);
  return true;
}

bool Call::Refused(const Batch& batch) const { return Refused(batch, 0, batch.size()); }

bool Call::Refused(const Batch& batch, uint32_t slot, size_t count) const {
  for (const uint32_t end = slot + static_cast<uint32_t>(count); slot < end; ++slot) {
    if (Refused(batch.outcome(slot))) return true;
  }
  return false;
}

void Call::ReserveReply(const Batch& batch) const {
  constexpr size_t kLargeBytes = 1 << 20;
  constexpr size_t kHeadBytesMax = 16;  // of a value: its length and the final CRLF
  if (batch.answer_bytes() < kLargeBytes) return;
  size_t bytes = session_.out.size();
  for (uint32_t slot = 0; slot < batch.size(); ++slot) {
    bytes += batch.outcome(slot).value.size() + 2 * kHeadBytesMax;
    batch.items(slot).ForEachSpan(
        [&](const ItemSpan& run) { bytes += run.count * (run.stride() + 3 * kHeadBytesMax); });
  }
  session_.out.reserve(bytes);
}

}  // namespace skep
