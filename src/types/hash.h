// hash.h: a hash in one value.
//
//   +-----------------+--------------+--------------+--------------+----
//   | varint, fields  | field, text  | value, text  | field, text  | ...      text.h
//   +-----------------+--------------+--------------+--------------+----
//
// Fields are in the order in which they came. A field of 8 bytes with a value of 8 takes 18 bytes.
// A hash of which a field has a deadline is of another form, which hash_fields.h draws.
//
// The functions, their operands, and what they return beside the answer of an error:
//
//   name              operand            integer                  returned
//   hash-set          field, value, ...  how many fields are new
//   hash-set-new      field, value       1: the field is new; else 0, and nothing is changed
//   hash-get          field, ...                                  for each its value, or none
//   hash-length                          how many fields
//   hash-value-bytes  field              of its value; -1: none
//   hash-all                                                      field, value, ...
//   hash-delete       field, ...         how many there were
//   hash-add          field, a decimal   the sum                  the sum, its bytes alone
//   hash-add-float    field, a number                             likewise
//   hash-draw         DrawRequest                                 field, value, ...
//   hash-scan         from, count                                the next field, or none; then
//                                                                field, value, ...
// Of deadlines; a FieldDeadline is that of hash_fields.h, and a code a number of 8 bytes:
//   hash-expire       FieldDeadline,     how many are changed    a code for each: -2 no such field,
//                     field, ...                                 0 not changed, 1 done, 2 deleted
//   hash-deadlines    field, ...                                 -2; -1 no deadline; the deadline
//   hash-persist      field, ...         how many are changed    -2; -1 no deadline; 1 done
//   hash-take         field, ...                                 as hash-get; they are deleted
//   hash-get-until    FieldDeadline,                             as hash-get; they get the deadline
//                     field, ...
//   hash-set-until    FieldDeadline,     1: they are set; 0: the
//                     field, value, ...  condition does not hold
//   hash-drop-due     field, ...         the earliest deadline
//                                        that is left; 0: none
// hash-drop-due removes the fields that are due, and needs no operand: it has fields where the hash
// is large, of which it looks at these only.
//
// Cost: a look at each field; to store, a copy of the hash. hash-set and hash-delete of more than
// kFewFields fields look each up in a table, so that many take no longer for each than few.
#pragma once

#include <cstddef>

namespace skep::types {

inline constexpr size_t kFewFields = 8;

}  // namespace skep::types
