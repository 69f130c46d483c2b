// large_put.h: functions that put members into the segments of a large collection without anybody
// having read them, and those that make the sums of such puts.
//
// A put finds its member in the segment (large_segment.h), stores it there if it is new or other
// bytes than before, and says what it has done. One atomic batch has puts into several segments,
// one behind the other, then the sums: each put but the first gets as its operand, behind its own,
// what the put before has returned (kOperandOfSlot), and each sum what the last put has returned.
// That is a tally of all puts up to there:
//
//   offset  size  field                                                          little-endian
//        0     8  bytes   that the pieces of the collection have more now
//        8     4  puts    how many puts there were
//       12     4  writes  how many of them have changed something
//       16        a bit for each put, the first one the lowest of its byte: its member is new
//
//   name                 on              operand
//   large-segment-put    a segment       stamp 8, bytes max 4, form 1, only new 1, piece; tally
//   large-counts-tally   node of counts  bytes of the list 4, first put 4, count max 8; the list:
//                        (large_counts.h)  varint n, text place, ...; tally
//   large-hash-tally     a record        id 8, levels of counts 8; tally
//   large-set-tally      (large_record.h)
//
// large-segment-put  The segment gets the stamp if the put changes it. The form is 'f', a piece is
//                    text field, text value, or 'm', a text. With `only new` a member that is there
//                    is left as it is. Integer: kIsNew and kIsLong, as bits; the segment is long if
//                    its pieces have more than `bytes max` bytes. Returned: the tally.
// large-counts-tally The next n puts are at the place: what they have added is added to its entry.
//                    Integer: if such an entry then counts more than `count max`, the number of a
//                    put at its place, counted from 1; else 0.
// large-...-tally    Adds the members and bytes. Integer: the members then.
//
// A put is kAborted if the segment is absent, ends before the member, has a field with a deadline
// in front of it (hash_fields.h); and so is a sum whose node has not the places or whose record
// has another id, or other levels, or fields with deadlines. A put is kTooLarge if the pieces would
// have more than twice `bytes max`. What changes nothing writes nothing.
//
// Cost: of a put, a search for its member (equal_pieces.h), or a walk to it, and if it changes
// something a copy of the segment; of a sum, a copy of the node or record.
//
// Thread safety: all functions are pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "skep/scratch.h"
#include "types/function_table.h"
#include "types/large_exchange.h"

namespace skep::types {

struct Put {
  uint64_t stamp;          // that the segment gets
  uint32_t bytes_max;      // of pieces, that a segment is meant to have
  bool has_value;          // the piece is a field and its value
  bool only_new;           // a member that is there is left as it is
  std::string_view piece;  // as it lies in a segment
};
// Operands without a tally.
std::string_view WritePut(const Put& put, Scratch& scratch);
std::string_view WriteRecordTally(uint64_t id, uint64_t levels, Scratch& scratch);
std::string_view WriteCountsTally(uint32_t first_put, uint64_t count_max, std::string_view list,
                                  Scratch& scratch);
// Appends to the list of WriteCountsTally that the next `puts` puts are at the place.
void AppendPlace(uint64_t puts, std::string_view place, std::string& list);

std::span<const TypeFunction> LargePutFunctions();

}  // namespace skep::types
