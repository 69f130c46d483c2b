#include "rma/post_message.h"

#include <cstring>

namespace skep::rma {
namespace {

struct PostHeader {
  uint32_t count;
  uint32_t zero;
};

struct EncodedOperation {
  uint64_t offset;
  uint32_t bytes;
  uint16_t region;
  uint16_t kind;
};
static_assert(sizeof(EncodedOperation) == kOperationBytes);
static_assert(kRegionsMax <= UINT16_MAX);

template <typename T>
void Put(const T& value, char*& to) {
  std::memcpy(to, &value, sizeof(value));
  to += sizeof(value);
}

// The caller knows that there are so many bytes.
template <typename T>
T Take(std::string_view& from) {
  T value;
  std::memcpy(&value, from.data(), sizeof(value));
  from.remove_prefix(sizeof(value));
  return value;
}

// Points the operations that write to their bytes; false if these are not all there is.
bool FindWritten(std::string_view bytes, std::vector<Operation>& operations) {
  for (Operation& operation : operations) {
    if (operation.kind == Operation::Kind::kRead) continue;
    if (operation.bytes > bytes.size()) return false;
    operation.local = const_cast<char*>(bytes.data());
    bytes.remove_prefix(operation.bytes);
  }
  return bytes.empty();
}

}  // namespace

size_t BytesOf(std::span<const Operation> operations, Operation::Kind kind) {
  size_t bytes = 0;
  for (const Operation& operation : operations) {
    if (operation.kind == kind) bytes += operation.bytes;
  }
  return bytes;
}

uint64_t PostBytesOf(std::span<const Operation> operations) {
  uint64_t bytes = operations.size() * kOperationBytes;
  for (const Operation& operation : operations) bytes += operation.bytes;
  return bytes;
}

size_t EncodedPostBytes(std::span<const Operation> operations) {
  return sizeof(PostHeader) + operations.size() * kOperationBytes +
         BytesOf(operations, Operation::Kind::kWrite);
}

void EncodePost(std::span<const Operation> operations, char* to) {
  Put(PostHeader{.count = static_cast<uint32_t>(operations.size()), .zero = 0}, to);
  for (const Operation& operation : operations) {
    Put(EncodedOperation{.offset = operation.offset,
                         .bytes = operation.bytes,
                         .region = static_cast<uint16_t>(operation.region),
                         .kind = static_cast<uint16_t>(operation.kind)},
        to);
  }
  for (const Operation& operation : operations) {
    if (operation.kind == Operation::Kind::kRead) continue;
    std::memcpy(to, operation.local, operation.bytes);
    to += operation.bytes;
  }
}

bool DecodePost(std::string_view body, std::span<const RegionExtent> regions,
                std::vector<Operation>& operations) {
  operations.clear();
  if (body.size() < sizeof(PostHeader)) return false;
  const auto header = Take<PostHeader>(body);
  if (header.zero != 0 || header.count == 0 || header.count > kPostOperationsMax) return false;
  if (body.size() < header.count * kOperationBytes) return false;
  uint64_t bytes = header.count * kOperationBytes;
  for (uint32_t i = 0; i < header.count; ++i) {
    const auto encoded = Take<EncodedOperation>(body);
    if (encoded.kind > static_cast<uint16_t>(Operation::Kind::kWrite)) return false;
    operations.push_back({.kind = static_cast<Operation::Kind>(encoded.kind),
                          .region = encoded.region,
                          .offset = encoded.offset,
                          .bytes = encoded.bytes});
    if (!Allow(regions, operations.back())) return false;
    bytes += encoded.bytes;
  }
  return bytes <= kPostBytesMax && FindWritten(body, operations);
}

}  // namespace skep::rma
