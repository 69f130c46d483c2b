// large_segment.h: the value of a segment, which has some of the members of a large collection
// (collections/layout.h says where segments lie).
//
//   +----------+---------------------+--------+-----------------+--------+--------+----
//   | stamp, 8 | varint, fence bytes | fence  | varint, pieces  | piece  | piece  | ...
//   |          | + 1; 0: none        |        |                 |        |        |
//   +----------+---------------------+--------+-----------------+--------+--------+----
//
// The stamp is another one after every write of the segment, so whoever has read a segment can
// change it where it lies, on the condition that it is as it was read, without bringing its bytes.
//
// The function large-segment-edit does that. Operand, numbers little-endian:
//
//   offset  size  field
//        0     8  stamp   that the segment must have; else it is kAborted, as for an absent one
//        8     1  action
//        9        the rest, by the action
//
//   action     rest
//   'k' keep   nothing: the segment is only required to be as it was
//   's' splice stamp, 8; varints: pieces of the segment then, offset in the body, bytes that go
//              there; and the bytes that come instead
//   'r' replace  the whole value, with its new stamp
//   'd' delete   nothing
//
// Cost: of a splice and of a replacement, a copy of the segment.
//
// Thread safety: all functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "skep/scratch.h"
#include "types/function_table.h"
#include "types/text.h"

namespace skep::types {

struct Segment {
  uint64_t stamp = 0;
  std::optional<std::string_view> fence;
  uint64_t pieces = 0;
  std::string_view body;
};
// Nothing if the bytes are no segment. The result views them.
std::optional<Segment> ReadSegment(std::string_view bytes);
std::string WriteSegment(const Segment& segment);
// Writes all of a segment but its body, in so many bytes.
void WriteHeader(const Segment& segment, TextWriter& writer);
size_t HeaderBytes(const Segment& segment);

// What becomes of the body of a segment whose fence stays.
struct Splice {
  uint64_t stamp;   // the new one
  uint64_t pieces;  // of the segment then
  size_t offset;    // in the body, where `removed` bytes go and `inserted` come
  size_t removed;
  std::string_view inserted;
};

// What becomes of some bytes of a body.
struct BodyEdit {
  size_t at;
  size_t removed;
  std::string_view inserted;
};
// The bytes of a segment that is as `segment` says but for its body, which is the old one with the
// edit. The edit lies in the old body.
std::string_view SplicedSegment(const Segment& segment, std::string_view old_body,
                                const BodyEdit& edit, Scratch& scratch);

// Operands of large-segment-edit, for a segment that has the stamp `seen`.
std::string_view KeepSegment(uint64_t seen, Scratch& scratch);
std::string_view SpliceSegment(uint64_t seen, const Splice& splice, Scratch& scratch);
std::string_view ReplaceSegment(uint64_t seen, std::string_view bytes, Scratch& scratch);
std::string_view DeleteSegment(uint64_t seen, Scratch& scratch);

std::span<const TypeFunction> LargeSegmentFunctions();

}  // namespace skep::types
