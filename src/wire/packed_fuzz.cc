// Property: whatever the bytes are, decoding requests, replies and pages of links reads nothing
// outside them; what is decoded and encoded again is the same.
//
// Input: byte 0 is how many requests, byte 1 chooses the kind and flags, the rest is the payload.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "wire/packed_reply.h"
#include "wire/packed_request.h"
#include "wire/packed_top.h"

namespace skep::packed {
namespace {

void CheckEncodedAgain(const Batch& batch) {
  std::string once;
  AppendBatch(once, {}, batch);
  Batch decoded(batch.kind());
  const Header header = Read<Header>(once);
  SKEP_CHECK(
      TakeRequests(std::string_view(once).substr(sizeof(Header)), header.count, kNoLimit, decoded)
          .ok());
  std::string twice;
  AppendBatch(twice, {}, decoded);
  SKEP_CHECK(once == twice);
}

void CheckTop(std::string_view bytes) {
  LeafLinks page;
  if (!ReadTop(bytes, &page)) return;
  std::string once;
  AppendTop(once, page);
  LeafLinks decoded;
  SKEP_CHECK(ReadTop(once, &decoded));
  std::string twice;
  AppendTop(twice, decoded);
  SKEP_CHECK(once == twice);
}

void CheckTopQuestion(std::string_view bytes) {
  TopQuestion question;
  if (!ReadTopQuestion(bytes, &question)) return;
  std::string once;
  AppendTopQuestion(once, question);
  TopQuestion decoded;
  SKEP_CHECK(ReadTopQuestion(once, &decoded));
  SKEP_CHECK(decoded.links_max == question.links_max && decoded.from == question.from);
}

void Run(uint8_t count, uint8_t choice, std::string_view bytes) {
  const bool atomic = (choice & 1) != 0;
  const Header header{.payload_bytes = static_cast<uint32_t>(bytes.size()),
                      .kind = atomic ? Kind::kAtomic : Kind::kBatch,
                      .flags = static_cast<uint8_t>(choice & (kAtSnapshot | kHasScanLimits)),
                      .count = count};
  Batch batch(atomic ? Batch::Kind::kAtomic : Batch::Kind::kUnordered);
  std::string_view payload = bytes;
  if (TakeSettings(header, payload) && TakeRequests(payload, count, kNoLimit, batch).ok()) {
    CheckEncodedAgain(batch);
  }
  CheckTop(bytes);
  CheckTopQuestion(bytes);
  Batch answered;
  for (uint32_t i = 0; i < count; ++i) answered.Get("k");
  if (!ReadReply(header, bytes, answered).ok()) return;
  // All outcomes can be read, and encoded again.
  std::string reply;
  AppendReply(reply, {.flags = kWantDeadlines | kWantVersions}, answered, 0, count);
}

}  // namespace
}  // namespace skep::packed

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 4096) return 0;
  skep::packed::Run(data[0], data[1], {reinterpret_cast<const char*>(data) + 2, size - 2});
  return 0;
}
