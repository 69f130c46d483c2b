// Any bytes, as what a peer sends: as messages, and as the bodies that messages have.
//
//   byte 0     how many bytes a read gives at most
//   then       the bytes
//
// Properties: nothing is read beyond what has come; the messages are the same however the bytes are
// cut, and encoded again they are the bytes that they were; a hello and the operations of a Post
// that are accepted keep their promises, and are encoded to the bytes that they were.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "rma/message_stream.h"
#include "rma/post_message.h"
#include "rma/testing/string_stream.h"

namespace skep::rma {
namespace {

constexpr RegionExtent kRegions[] = {{.bytes = 4096, .access = Access::kReadWrite},
                                     {.bytes = 64, .access = Access::kRead}};

void CheckHello(std::string_view body) {
  const auto hello = DecodeHello(body);
  if (!hello) return;
  SKEP_CHECK(hello->regions.size() <= kRegionsMax);
  SKEP_CHECK(EncodeHello(*hello) == body);
}

void CheckPost(std::string_view body) {
  std::vector<Operation> operations;
  if (!DecodePost(body, kRegions, operations)) return;
  SKEP_CHECK(!operations.empty() && PostBytesOf(operations) <= kPostBytesMax);
  for (const Operation& operation : operations) {
    SKEP_CHECK(Allow(kRegions, operation));
    if (operation.kind == Operation::Kind::kRead) continue;
    const auto* const from = static_cast<const char*>(operation.local);
    SKEP_CHECK(from >= body.data() && from + operation.bytes <= body.data() + body.size());
  }
  std::string again(EncodedPostBytes(operations), '\0');
  EncodePost(operations, again.data());
  SKEP_CHECK(again.size() == body.size());
  SKEP_CHECK(again == body);
}

// The messages in the bytes, encoded again.
std::string Decode(std::string_view bytes, size_t give_max) {
  StringStream from;
  from.bytes = bytes;
  from.is_ended = true;
  from.give_max = give_max;
  StringStream to;
  MessageStream in(from);
  MessageStream out(to);
  in.set_limits({.hello_bytes_max = kHelloBytesMax,
                 .call_bytes_max = 1 << 16,
                 .post_bytes_max = kPostBodyBytesMax});
  bool is_good = true;
  while (is_good && *in.Receive()) {
    auto next = in.Next();
    for (; next && *next; next = in.Next()) {
      out.Add(**next);
      if ((*next)->kind == MessageKind::kHello) CheckHello((*next)->body);
      if ((*next)->kind == MessageKind::kPost) CheckPost((*next)->body);
    }
    is_good = next.has_value();
  }
  SKEP_CHECK(out.Send().ok());
  return to.bytes;
}

}  // namespace
}  // namespace skep::rma

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skep::rma;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = Decode(bytes, SIZE_MAX);
  SKEP_CHECK(bytes.starts_with(whole));
  SKEP_CHECK(Decode(bytes, size_t{data[0]} + 1) == whole);
  CheckHello(bytes);
  CheckPost(bytes);
  return 0;
}
