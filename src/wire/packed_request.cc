#include "wire/packed_request.h"

#include <algorithm>
#include <vector>

#include "base/varint.h"
#include "engine/batch_writer.h"
#include "wire/byte_writer.h"

namespace skep::packed {
namespace {

constexpr Status kMalformedMessage(Code::kCorrupt, "the message is malformed");
// Limit of a request, without key, value and operand bytes.
constexpr size_t kRequestBytesMax = 80;

// Limit of a named function, without its name.
constexpr size_t kFunctionBytesMax = 16;

uint64_t NumberOf(const Request& request) {
  if (request.op == Op::kSample) return request.random;
  return request.op == Op::kWalk ? request.cursor : request.watch;
}

// Writes requests one after the other, leaving out fields that are as in the one before.
class RequestWriter {
 public:
  explicit RequestWriter(char* at) : writer_(at) {}

  void Add(const Request& request, Hint hint, bool begins_part) {
    const bool has_value = HasValue(request.op);
    const bool same_value = has_value && has_value_ && request.value == value_;
    const bool sends_value = has_value && !same_value;
    const bool same_sizes = has_sizes_ && request.key.size() == key_bytes_ &&
                            (!sends_value || (has_value_ && request.value.size() == value_bytes_));
    const uint8_t fields = FieldsOf(request, hint, begins_part);
    writer_.Byte(
        static_cast<uint8_t>(static_cast<uint8_t>(request.op) | (same_sizes ? kSameSizes : 0) |
                             (same_value ? kSameValue : 0) | (fields != 0 ? kHasFields : 0)));
    if (fields != 0) AddFields(request, hint, fields);
    AddOperand(request);
    if (!same_sizes) {
      writer_.Varint(request.key.size());
      if (sends_value) writer_.Varint(request.value.size());
      key_bytes_ = request.key.size();
      has_sizes_ = true;
    }
    writer_.Bytes(request.key);
    if (!sends_value) return;
    writer_.Bytes(request.value);
    value_ = request.value;
    value_bytes_ = request.value.size();
    has_value_ = true;
  }
  char* end() const { return writer_.at(); }

 private:
  static uint8_t FieldsOf(const Request& request, Hint hint, bool begins_part) {
    return static_cast<uint8_t>(
        (request.flags != 0 ? kFlags : 0) | (request.when != 0 ? kWhen : 0) |
        (request.limit != kNoLimit ? kLimit : 0) | (request.deadline_ms != 0 ? kDeadline : 0) |
        (hint.bits != 0 ? kHint : 0) | (begins_part ? kPart : 0));
  }

  void AddFields(const Request& request, Hint hint, uint8_t fields) {
    writer_.Byte(fields);
    if ((fields & kFlags) != 0) writer_.Byte(request.flags);
    if ((fields & kWhen) != 0) writer_.Byte(request.when);
    if ((fields & kLimit) != 0) writer_.Varint(request.limit);
    if ((fields & kDeadline) != 0) writer_.Varint(request.deadline_ms + 1);
    if ((fields & kHint) != 0) writer_.Fixed(hint.bits);
  }

  void AddOperand(const Request& request) {
    switch (OperandOf(request)) {
      case Operand::kNone:
        return;
      case Operand::kBytes:
        writer_.Varint(request.other.size());
        return writer_.Bytes(request.other);
      case Operand::kDigest:
        return writer_.Fixed(request.digest);
      case Operand::kByteRange:
        return writer_.Fixed(request.bytes);
      case Operand::kNumber:
        if (request.op == Op::kApply) return AddFunction(request.function);
        return writer_.Varint(NumberOf(request));
    }
  }

  void AddFunction(const Function* function) {
    const auto found = std::ranges::find(functions_, function);
    writer_.Varint(static_cast<uint64_t>(found - functions_.begin()));
    if (found != functions_.end()) return;
    functions_.push_back(function);
    const std::string_view name = function == nullptr ? std::string_view() : function->name;
    writer_.Byte(function == nullptr ? 0 : static_cast<uint8_t>(function->kind));
    writer_.Byte(function == nullptr ? 0 : static_cast<uint8_t>(function->element));
    writer_.Varint(name.size());
    writer_.Bytes(name);
  }

  ByteWriter writer_;
  std::vector<const Function*> functions_;  // functions that were named
  bool has_sizes_ = false;
  bool has_value_ = false;
  size_t key_bytes_ = 0;
  size_t value_bytes_ = 0;
  std::string_view value_;
};

}  // namespace

Operand OperandOf(const Request& request) {
  switch (request.op) {
    case Op::kGet:
      return request.has(Request::kByteRange) ? Operand::kByteRange : Operand::kNone;
    case Op::kPut:
    case Op::kUpdate:
    case Op::kDelete:
      // Whatever the operand is, an engine refuses several conditions, and conditions that the op
      // cannot have.
      switch (request.when) {
        case Request::kEquals:
        case Request::kDiffers:
          return Operand::kBytes;
        case Request::kDigestEquals:
        case Request::kDigestDiffers:
          return Operand::kDigest;
        default:
          return Operand::kNone;
      }
    case Op::kMove:
    case Op::kRequireValue:
      return Operand::kBytes;
    case Op::kRequireDigest:
      return Operand::kDigest;
    case Op::kApply:
    case Op::kSample:
    case Op::kWalk:
    case Op::kRequireUnchanged:
      return Operand::kNumber;
    default:
      return IsRange(request.op) && !request.has(Request::kNoUpperBound) ? Operand::kBytes
                                                                         : Operand::kNone;
  }
}

void AppendBatch(std::string& to, Header header, const Batch& batch, uint64_t snapshot,
                 std::span<const Hint> hints) {
  const bool limits = batch.scan_bytes_max() != SIZE_MAX || batch.scan_visits_max() != kNoLimit;
  header.kind = batch.kind() == Batch::Kind::kAtomic ? Kind::kAtomic : Kind::kBatch;
  header.count = static_cast<uint32_t>(batch.size());
  header.flags = static_cast<uint8_t>(header.flags | (snapshot != 0 ? kAtSnapshot : 0) |
                                      (limits ? kHasScanLimits : 0));
  const size_t begin = BeginMessage(to, header);
  if (header.has(kAtSnapshot)) AppendVarint(to, snapshot);
  if (header.has(kHasScanLimits)) {
    AppendVarint(to, batch.scan_bytes_max());
    AppendVarint(to, batch.scan_visits_max());
  }
  size_t bytes_max = to.size();
  for (const Request& request : batch.requests()) {
    bytes_max += kRequestBytesMax + request.key.size() + request.value.size();
    if (OperandOf(request) == Operand::kBytes) bytes_max += request.other.size();
    if (request.op == Op::kApply && request.function != nullptr) {
      bytes_max += kFunctionBytesMax + request.function->name.size();
    }
  }
  const size_t used = to.size();
  to.resize_and_overwrite(bytes_max, [&](char* bytes, size_t) {
    RequestWriter writer(bytes + used);
    auto part = batch.part_begins().begin();
    uint32_t slot = 0;
    for (const Request& request : batch.requests()) {
      bool begins_part = false;
      for (; part != batch.part_begins().end() && *part == slot; ++part) begins_part = true;
      writer.Add(request, hints.empty() ? request.hint : hints[slot], begins_part);
      ++slot;
    }
    return static_cast<size_t>(writer.end() - bytes);
  });
  EndMessage(to, begin);
}

Result<BatchSettings> TakeSettings(const Header& header, std::string_view& payload) {
  BatchSettings settings;
  bool fits = true;
  if (header.has(kAtSnapshot)) fits = TakeVarint(payload, &settings.snapshot);
  if (header.has(kHasScanLimits)) {
    fits = fits && TakeVarint(payload, &settings.scan_bytes_max) &&
           TakeVarint(payload, &settings.scan_visits_max);
  }
  if (!fits) return Fail(kMalformedMessage);
  return settings;
}

namespace {

// Reads requests one after the other.
class RequestReader {
 public:
  RequestReader(std::string_view payload, uint32_t count_limit, const StoreNow& now, bool pins)
      : left_(payload), count_limit_(count_limit), now_(now), pins_(pins) {}

  // False: the next bytes are no request.
  bool Take(Batch& batch) {
    uint8_t first = 0;
    if (!TakeByte(left_, &first) || (first & kOpMask) > static_cast<uint8_t>(Op::kRequireEmpty)) {
      return false;
    }
    Request request;
    request.op = static_cast<Op>(first & kOpMask);
    if ((first & kHasFields) != 0 && !TakeFields(batch, request)) return false;
    if (const Operand operand = OperandOf(request);
        operand != Operand::kNone && !TakeOperand(operand, request)) {
      return false;
    }
    const bool has_value = HasValue(request.op);
    const bool same_value = (first & kSameValue) != 0;
    if (same_value && !(has_value && has_value_)) return false;
    const bool takes_value = has_value && !same_value;
    if (!TakeSizes((first & kSameSizes) != 0, takes_value)) return false;
    if (!TakeFront(left_, key_bytes_, &request.key)) return false;
    if (takes_value) {
      if (!TakeFront(left_, value_bytes_, &value_)) return false;
      has_value_ = true;
    }
    if (has_value) request.value = value_;
    if (request.op == Op::kCount && !CountsAll(request)) {
      request.limit = std::min(request.limit, count_limit_);
    }
    const bool returns = request.op == Op::kGet || request.has(Request::kReturnPrevious);
    if (pins_ && returns && !IsRange(request.op)) request.flags |= Request::kMayPin;
    batch.Add(request);
    return true;
  }
  bool done() const { return left_.empty(); }

 private:
  bool TakeFields(Batch& batch, Request& request) {
    uint8_t fields = 0;
    if (!TakeByte(left_, &fields) || fields == 0 || (fields & ~kFields) != 0) return false;
    if ((fields & kFlags) != 0 && !TakeByte(left_, &request.flags)) return false;
    if ((fields & kWhen) != 0 && !TakeByte(left_, &request.when)) return false;
    if ((fields & kLimit) != 0) {
      uint64_t limit = 0;
      if (!TakeVarint(left_, &limit) || limit > kNoLimit) return false;
      request.limit = static_cast<uint32_t>(limit);
    }
    if ((fields & kDeadline) != 0) {
      if (!TakeVarint(left_, &request.deadline_ms)) return false;
      request.deadline_ms = now_.FromWall(request.deadline_ms - 1);
    }
    if ((fields & kHint) != 0 && !TakeFixed(left_, &request.hint.bits)) return false;
    if ((fields & kPart) != 0) batch.BeginPart();
    return true;
  }

  bool TakeOperand(Operand operand, Request& request) {
    if (operand == Operand::kBytes) return TakeBytes(left_, &request.other);
    if (operand == Operand::kDigest) {
      request.digest = {};
      return TakeFixed(left_, &request.digest);
    }
    if (operand == Operand::kByteRange) {
      request.bytes = {};
      return TakeFixed(left_, &request.bytes);
    }
    uint64_t number = 0;
    if (!TakeVarint(left_, &number)) return false;
    switch (request.op) {
      case Op::kApply:
        if (number > functions_.size()) return false;
        if (number == functions_.size() && !TakeFunction()) return false;
        request.function = functions_[number];
        break;
      case Op::kSample:
        request.random = number;
        break;
      case Op::kWalk:
        request.cursor = number;
        break;
      default:
        request.watch = number;
        break;
    }
    return true;
  }

  bool TakeFunction() {
    uint8_t kind = 0;
    uint8_t element = 0;
    std::string_view name;
    if (!TakeByte(left_, &kind) || kind > static_cast<uint8_t>(FunctionKind::kFilter) ||
        !TakeByte(left_, &element) || element >= kElements || !TakeBytes(left_, &name)) {
      return false;
    }
    const auto of = static_cast<FunctionKind>(kind);
    const Function* const function = of == FunctionKind::kPlain
                                         ? FindFunction(name)
                                         : FindFunction(of, name, static_cast<Element>(element));
    // Functions of other values than plain ones are not for messages, which have no types.
    const bool is_plain = function != nullptr && function->type == kPlainType;
    functions_.push_back(is_plain ? function : nullptr);
    return true;
  }

  bool TakeSizes(bool same, bool takes_value) {
    if (same) return has_sizes_ && (!takes_value || has_value_);
    uint64_t key_bytes = 0;
    if (!TakeVarint(left_, &key_bytes)) return false;
    key_bytes_ = key_bytes;
    has_sizes_ = true;
    if (!takes_value) return true;
    uint64_t value_bytes = 0;
    if (!TakeVarint(left_, &value_bytes)) return false;
    value_bytes_ = value_bytes;
    return true;
  }

  std::string_view left_;
  std::vector<const Function*> functions_;  // named functions; null: not known here
  const uint32_t count_limit_;
  const StoreNow now_;
  const bool pins_;
  bool has_sizes_ = false;
  bool has_value_ = false;
  size_t key_bytes_ = 0;
  size_t value_bytes_ = 0;
  std::string_view value_;
};

}  // namespace

Status TakeRequests(std::string_view payload, uint32_t count, uint32_t count_limit, Batch& batch,
                    const StoreNow& now, bool pins) {
  // In an atomic batch the value may be the operand of a request behind it.
  const bool is_atomic = batch.kind() == Batch::Kind::kAtomic;
  RequestReader reader(payload, count_limit, now, pins && !is_atomic);
  for (uint32_t i = 0; i < count; ++i) {
    if (!reader.Take(batch)) return kMalformedMessage;
  }
  return reader.done() ? Status() : kMalformedMessage;
}

bool TakeGets(std::string_view payload, uint32_t count, std::vector<std::string_view>* keys) {
  uint64_t key_bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t first = 0;
    if (!TakeByte(payload, &first)) return false;
    const bool has_sizes = first == static_cast<uint8_t>(Op::kGet);
    if (!has_sizes && (i == 0 || first != (static_cast<uint8_t>(Op::kGet) | kSameSizes))) {
      return false;
    }
    if (has_sizes && !TakeVarint(payload, &key_bytes)) return false;
    if (key_bytes > payload.size()) return false;
    keys->push_back(payload.substr(0, key_bytes));
    payload.remove_prefix(key_bytes);
  }
  return payload.empty();
}

}  // namespace skep::packed
