// post_message.h: the operations of a Post as a message.
//
//   offset  size  field
//        0     4  count    of operations
//        4     4  (zero)
//        8    16  each operation: offset 8, bytes 4, region 2, kind 2
//                 the bytes of those that write, one's after the other's        all little-endian
//
// The answer, kPosted, is the bytes of those that read, one's after the other's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rma/hello.h"

namespace skep::rma {

inline constexpr uint32_t kPostOperationsMax = 4096;
// Of a Post's operations together, with kOperationBytes for each.
inline constexpr uint64_t kPostBytesMax = uint64_t{16} << 20;
inline constexpr size_t kOperationBytes = 16;
inline constexpr size_t kPostBodyBytesMax = 8 + kPostBytesMax;

// What the operations of one kind move.
size_t BytesOf(std::span<const Operation> operations, Operation::Kind kind);
// Of all together, with kOperationBytes for each.
uint64_t PostBytesOf(std::span<const Operation> operations);

size_t EncodedPostBytes(std::span<const Operation> operations);
// Writes so many bytes. The operations are allowed by the peer's regions.
void EncodePost(std::span<const Operation> operations, char* to);

// False if it is none, or one that the regions do not allow. `local` of those that write is in
// `body`; of others it is null.
bool DecodePost(std::string_view body, std::span<const RegionExtent> regions,
                std::vector<Operation>& operations);

}  // namespace skep::rma
