// log_change.h: the change that a write has made to a keyspace, as the log has it.
//
// A batch that has changed something is one record of the log. Its payload:
//
//   +------+----------+------------+--------------+--------+--------+----
//   | type | keyspace | now        | base version | change | change | ...
//   | 1    | varint   | varint, ms | varint       |        |        |
//   +------+----------+------------+--------------+--------+--------+----
//
// A change:
//   +------+-----------------+------------+-----+-------------------------------------------------
//   | kind | version - base  | key length | key | by kind (below)
//   | 1    | varint          | varint     |     |
//   +------+-----------------+------------+-----+-------------------------------------------------
//   put             value length varint, value                     the key has no deadline
//   put until       deadline varint, value length varint, value
//   put typed       type 1, deadline varint (0: none), value length varint, value
//   erase           -
//   set deadline    deadline varint; 0: none any more
//   move            length varint, the key it goes to
//   apply           element 1, name length varint, name, operand length varint, operand
//                   a function of elements (kind update) or a plain one, on the value at hand
//   erase range     length varint, upper bound                     the key is the lower one
//   erase from      -                                              there is no upper bound
//   erase all       -                                              the key is empty
//
// Changes of a keyspace are replayed in the order of their versions, those of one version in the
// order of the record. Time does not pass in a replay: a key that had expired when it was written
// is erased by a change of its own first. A function of a collection sees the `now` of its record
// again, by which fields of a hash have expired. So each change does again exactly what it did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "skep/batch.h"
#include "skep/status.h"

namespace skep::durable {

struct LogChange {
  enum class Kind : uint8_t {
    kPut = 1,
    kPutUntil,
    kErase,
    kSetDeadline,
    kMove,
    kApply,
    kEraseRange,
    kEraseFrom,
    kEraseAll,
    kPutTyped,  // since version 3: a value that is not of kPlainType
  };
  Kind kind = Kind::kPut;
  Version version = 0;
  std::string_view key = {};
  std::string_view value = {};  // put: the value; move: the key; erase range: the upper bound;
                                // apply: the operand
  uint8_t type = kPlainType;    // put typed
  uint64_t deadline_ms = 0;     // in a replay, apply: the time that the function has seen; else 0
  const Function* function = nullptr;  // apply
};

// Writes the payload of one batch. Thread safety: one owner.
class ChangeEncoder {
 public:
  // Appends to `to`, which outlives it. No version is below `base`.
  ChangeEncoder(std::string& to, uint32_t keyspace, uint64_t now_ms, Version base);
  void Add(const LogChange& change);

 private:
  std::string& to_;
  const Version base_;
};

// Reads the payload of one batch. The changes are views of it.
class ChangeDecoder {
 public:
  //   kCorrupt  this is not the payload of a batch, or is of a newer format; `detail` is the offset
  //             in it
  static Result<ChangeDecoder> Open(std::string_view payload);

  uint32_t keyspace() const { return keyspace_; }
  uint64_t now_ms() const { return now_ms_; }
  // The next change; nothing at the end.
  //   kCorrupt          as Open()
  //   kInvalidArgument  a function that is not registered: missing_function() is its name
  Result<std::optional<LogChange>> Next();
  const std::string& missing_function() const { return missing_function_; }
  // The next change, as Next(); but where a function is not registered the change has none.
  Result<std::optional<LogChange>> NextOfAny();
  // The name of the function of the last kApply, and its elements; nothing if it is a plain one.
  std::string_view function_name() const { return function_name_; }
  std::optional<Element> function_element() const { return function_element_; }

 private:
  explicit ChangeDecoder(std::string_view payload) : payload_(payload), left_(payload) {}
  std::unexpected<Status> Corrupt() const;
  bool ReadFields(LogChange& change);
  bool ReadFunction(LogChange& change);

  std::string_view payload_;
  std::string_view left_;
  uint32_t keyspace_ = 0;
  uint64_t now_ms_ = 0;
  Version base_ = 0;
  std::string missing_function_;
  std::string_view function_name_;
  std::optional<Element> function_element_;
};

}  // namespace skep::durable
