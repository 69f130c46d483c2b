// value_parts.h: functions (skep/function.h) that change parts of a value which an engine does not
// hold as one string, so that they cost what they touch.
//
// Such a function has two bodies. Function::body sees the value as a string and returns a new one;
// Function::parts_body sees a value that is in parts and says which bytes change. Both do the same.
// It only makes a value longer or changes bytes of it: none ever gets shorter. It may also only
// look at it.
//
// Thread safety: parts bodies are as pure as all functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "skep/function.h"
#include "skep/scratch.h"
#include "skep/status.h"

namespace skep {

// A value that is present, and that may be read by parts.
class ValueParts {
 public:
  virtual ~ValueParts() = default;
  virtual size_t size() const = 0;
  // Copies the bytes from `offset` on. Requires that the value has them.
  // Cost: of the bytes that are copied.
  virtual void Read(size_t offset, std::span<char> to) const = 0;
};

// Bytes that are written at an offset. Between the end of the value and that of its first byte
// there are zeros.
struct PartEdit {
  size_t offset;
  std::string_view bytes;
};

struct PartsInput {
  const ValueParts& value;
  std::string_view operand;
  Scratch* scratch;          // as in FunctionInput
  const Function* function;  // the one that runs
  size_t value_bytes_max;    // a value must not become larger
};

struct PartsEffect {
  bool changes = false;              // a write, even if no byte becomes another one
  size_t size = 0;                   // changes: of the value then; no edit is behind it
  std::vector<PartEdit> edits = {};  // changes: done in this order
  std::string_view returned = {};    // bytes for the caller, in the scratch
  int64_t integer = 0;
  size_t seen_bytes = 0;  // bytes of the value that the function has looked at, beside its edits
  Status status = {};     // an error: the value is kept
};

}  // namespace skep
