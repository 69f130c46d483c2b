#include "durable/log_change.h"

#include "base/varint.h"
#include "durable/log_format.h"

namespace skep::durable {
namespace {

using Kind = LogChange::Kind;

constexpr char kPlain = '\xff';  // stands where the element would

}  // namespace

ChangeEncoder::ChangeEncoder(std::string& to, uint32_t keyspace, uint64_t now_ms, Version base)
    : to_(to), base_(base) {
  to_.push_back(static_cast<char>(RecordType::kChanges));
  AppendVarint(to_, keyspace);
  AppendVarint(to_, now_ms);
  AppendVarint(to_, base);
}

void ChangeEncoder::Add(const LogChange& change) {
  to_.push_back(static_cast<char>(change.kind));
  AppendVarint(to_, change.version - base_);
  AppendBytes(to_, change.key);
  switch (change.kind) {
    case Kind::kPutTyped:
      to_.push_back(static_cast<char>(change.type));
      [[fallthrough]];
    case Kind::kPutUntil:
      AppendVarint(to_, change.deadline_ms);
      [[fallthrough]];
    case Kind::kPut:
    case Kind::kMove:
    case Kind::kEraseRange:
      AppendBytes(to_, change.value);
      break;
    case Kind::kSetDeadline:
      AppendVarint(to_, change.deadline_ms);
      break;
    case Kind::kApply:
      to_.push_back(change.function->kind == FunctionKind::kPlain
                        ? kPlain
                        : static_cast<char>(change.function->element));
      AppendBytes(to_, change.function->name);
      AppendBytes(to_, change.value);
      break;
    case Kind::kErase:
    case Kind::kEraseFrom:
    case Kind::kEraseAll:
      break;
  }
}

std::unexpected<Status> ChangeDecoder::Corrupt() const {
  return Fail(Code::kCorrupt, "a record of the log is not what it should be",
              payload_.size() - left_.size());
}

Result<ChangeDecoder> ChangeDecoder::Open(std::string_view payload) {
  ChangeDecoder decoder(payload);
  std::string_view& left = decoder.left_;
  uint64_t keyspace = 0;
  if (left.empty() || left[0] != static_cast<char>(RecordType::kChanges)) return decoder.Corrupt();
  left.remove_prefix(1);
  if (!TakeVarint(left, &keyspace) || keyspace > UINT32_MAX ||
      !TakeVarint(left, &decoder.now_ms_) || !TakeVarint(left, &decoder.base_)) {
    return decoder.Corrupt();
  }
  decoder.keyspace_ = static_cast<uint32_t>(keyspace);
  return decoder;
}

Result<std::optional<LogChange>> ChangeDecoder::Next() {
  auto change = NextOfAny();
  if (change && *change && (*change)->kind == Kind::kApply && (*change)->function == nullptr) {
    missing_function_ = function_name_;
    return Fail(Code::kInvalidArgument, "the log has a function that is not registered");
  }
  return change;
}

Result<std::optional<LogChange>> ChangeDecoder::NextOfAny() {
  if (left_.empty()) return std::nullopt;
  LogChange change{.kind = static_cast<Kind>(left_[0])};
  uint64_t above_base = 0;
  std::string_view left = left_.substr(1);
  if (!TakeVarint(left, &above_base) || !TakeBytes(left, &change.key)) return Corrupt();
  change.version = base_ + above_base;
  left_ = left;
  if (!ReadFields(change)) return Corrupt();
  return change;
}

// Reads the fields behind the key. False: they are not all there, or there is no such kind.
bool ChangeDecoder::ReadFields(LogChange& change) {
  switch (change.kind) {
    case Kind::kPutTyped:
      if (left_.empty()) return false;
      change.type = static_cast<uint8_t>(left_[0]);
      left_.remove_prefix(1);
      if (change.type == kPlainType) return false;
      [[fallthrough]];
    case Kind::kPutUntil:
      if (!TakeVarint(left_, &change.deadline_ms)) return false;
      [[fallthrough]];
    case Kind::kPut:
    case Kind::kMove:
    case Kind::kEraseRange:
      return TakeBytes(left_, &change.value);
    case Kind::kSetDeadline:
      return TakeVarint(left_, &change.deadline_ms);
    case Kind::kApply:
      return ReadFunction(change);
    case Kind::kErase:
    case Kind::kEraseFrom:
    case Kind::kEraseAll:
      return true;
  }
  return false;
}

bool ChangeDecoder::ReadFunction(LogChange& change) {
  if (left_.empty()) return false;
  const char element = left_[0];
  left_.remove_prefix(1);
  std::string_view& name = function_name_;
  if (!TakeBytes(left_, &name) || !TakeBytes(left_, &change.value)) return false;
  function_element_.reset();
  if (element == kPlain) {
    change.function = FindFunction(name);
  } else if (static_cast<uint8_t>(element) < kElements) {
    function_element_ = static_cast<Element>(element);
    change.function = FindFunction(FunctionKind::kUpdate, name, *function_element_);
  } else {
    return false;
  }
  return true;
}

}  // namespace skep::durable
